"""Values of YAML files that belong to a choice which the command line replaced. They give way, so that no error names a key
that the user did not write: an experiment's options of another class, an environment's model for one role, and a preset's
shape under another model's name.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from rlvr_exp.config.model import Model, base
from rlvr_exp.config.schema import Config
from rlvr_exp.config.schema_match import field_types
from rlvr_exp.config.tree import Path, Tree, dotted
from rlvr_exp.core.errors import InputProblem

SOURCES = ("path", "package", "name")
"""Options of a model that name its weights."""
MODEL_WORDS = frozenset({"model", "model.embedded", *(f"model.{name}" for name in SOURCES)})
"""Words of a command line that choose the model of all roles."""


def give_way(
    tree: Tree,
    files: Collection[str],
    chosen: Mapping[str, str],
    problems: Collection[InputProblem],
    without: Callable[[], Collection[InputProblem]],
) -> list[str]:
    """Remove the values that are a problem only because of the groups that the command line chose.

    Args:
        files: the YAML files that the choices selected.
        chosen: group -> word of the command line, without the stage and the experiment.
        problems: those of the configuration.
        without: the problems of the same command line without these groups.

    Returns:
        A line for each value that was removed.
    """
    found = {}
    for problem in problems:
        path = tuple(problem.where.split("."))
        origins = sorted({origin for leaf, origin in tree.origins.items() if leaf[: len(path)] == path})
        unwritten = [one in files and not _written(_group(one), path[0], chosen) for one in origins]
        if chosen and len(path) > 1 and unwritten and all(unwritten):
            found[path] = (problem, origins)
    known = {problem.where for problem in without()} if found else set()
    lines = []
    for path, (problem, origins) in found.items():
        if problem.where not in known:
            words = chosen.get(path[0]) or " ".join(chosen.values())
            lines.append(f"{dotted(path)}={tree.get(path)} ({', '.join(origins)}): {problem.what}, under {words}")
            tree.remove(path)
    return lines


def _written(group: str, node: str, chosen: Collection[str]) -> bool:
    """Whether a value of a node is what a chosen group stands for, such as data.role under role=writer."""
    return group in chosen and (group == node or group not in field_types(Config))


def share_model(tree: Tree, words: Collection[str]) -> None:
    """Let a chosen model answer in all roles: remove the models that an environment's preset names for single roles.

    Args:
        words: keys and groups of the command line, which is not applied yet.
    """
    model = tree.values.get("model") or {}
    if not (MODEL_WORDS & set(words) or any(map(model.get, SOURCES))):
        return
    for path, origin in list(tree.origins.items()):
        if path[0] == "roles" and path[2:3] == ("model",) and _group(origin) != "experiment":
            tree.remove(path)
            while len(path) > 2 and tree.get(path[:-1]) == {}:
                path = path[:-1]
                tree.remove(path)


def keep_shapes(tree: Tree, shapes: Callable[[], Mapping[str, tuple[str, dict[str, Any]]]]) -> None:
    """A preset's `architecture` is the shape of the preset's own `name`. For another name or path the shape is that of the
    preset with that name, if there is one.

    Args:
        shapes: name of a model -> (file of its preset, its architecture).
    """
    for at in _models(tree):
        named = {key: str(_given(tree, (*at, key)) or "") for key in SOURCES}
        shape_origins = {path: tree.origin(path) for path in tree.origins if path[:-1] == (*at, "architecture")}
        presets = {path for path, origin in shape_origins.items() if _group(origin) == "model"}
        of_preset = {_group(tree.origin((*at, key))) == "model" for key, value in named.items() if value}
        if of_preset == {True} or not any(named.values()):
            continue
        for path in presets:
            tree.remove(path)
        file, shape = shapes().get(
            base(Model(path=named["path"], package=named["package"], name=named["name"])), ("", {})
        )
        if shape and len(presets) == len(shape_origins):
            tree.merge(shape, f"the shape in {file}", (*at, "architecture"))


def _models(tree: Tree) -> Iterator[Path]:
    roles = tree.values.get("roles")
    for at in (("model",), *(("roles", str(role), "model") for role in (roles if isinstance(roles, dict) else ()))):
        if isinstance(_given(tree, at), dict):
            yield at


def _given(tree: Tree, path: Path) -> Any:
    try:
        return tree.get(path)
    except KeyError:
        return None


def _group(origin: str) -> str:
    """The config group of a YAML file, such as conf/model/tiny.yaml; that of an experiment's parts is `experiment`."""
    return origin.split("/")[1] if origin.endswith(".yaml") and origin.count("/") > 1 else ""
