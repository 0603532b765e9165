"""From the words of a command line to a checked configuration, or to all of its problems at once.

Hydra's parser reads the words and its defaults list selects the YAML files. Types and ranges are checked by
rlvr_exp.config.schema_check, because Hydra stops at the first error. Values of YAML files that belong to a choice which the
command line replaced are removed, so that no error names a key that the user did not write: an experiment's options of
another class, an environment's model for one role, and a preset's shape under another model's name.

Writes nothing and imports nothing heavy.
"""

import copy
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path as Folder
from typing import Any

from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.config_repository import CachingConfigRepository
from hydra._internal.config_search_path_impl import ConfigSearchPathImpl
from hydra._internal.core_plugins.file_config_source import FileConfigSource
from hydra._internal.core_plugins.structured_config_source import StructuredConfigSource
from hydra._internal.defaults_list import Overrides, _create_defaults_list
from hydra._internal.sources_registry import SourcesRegistry
from hydra.core.default_element import ConfigDefault, GroupDefault, ResultDefault
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

from rlvr_exp.config import schema
from rlvr_exp.config.load import inherit_resumed, inherit_run_config, resumed_run
from rlvr_exp.config.model import Model, base
from rlvr_exp.config.names import suggest
from rlvr_exp.config.options import field_types
from rlvr_exp.config.roles import choose_for_roles, complete_roles, spread_roles
from rlvr_exp.config.schema import STAGE_GROUPS, STAGES
from rlvr_exp.config.schema_check import Checked, SchemaMatcher, check, given_choice, option_named, present_nodes
from rlvr_exp.config.suited import follow_batch, suit
from rlvr_exp.config.tree import Path, Tree, conf_directory, dotted
from rlvr_exp.config.words import ParsedOverrides, apply, no_effect, parse
from rlvr_exp.core.errors import InputError, InputProblem

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
    """Whether a chosen group sets a value of a node, such as data.role under role=writer."""
    return group in chosen and (group == node or group not in field_types(schema.Config))


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


def compose(words: Sequence[str]) -> Checked:
    """The checked configuration of one job.

    Raises:
        InputError: with all that is wrong.
    """
    checked = compose_lenient(words)
    if checked.problems:
        raise InputError(*checked.problems)
    return checked


def compose_lenient(words: Sequence[str]) -> Checked:
    """Like `compose`, with the problems in the result."""
    parsed = parse(words)
    resumed = _resume_alone(parsed)
    groups = ConfigGroups(parsed.searchpath)
    choices, values = groups.separate(parsed)
    tree = groups.load(choices, parsed)
    if tree is None:
        return Checked(schema.Config(), Tree(), {}, tuple(dict.fromkeys(parsed.problems)))
    files = set(tree.origins.values())
    share_model(tree, {override.key_or_group for override in parsed.overrides})
    inherit = inherit_resumed if resumed else inherit_run_config
    parsed.searchpath += [folder for folder in inherit(tree, choices, values) if folder not in parsed.searchpath]
    values = apply(tree, choose_for_roles(tree, values, groups.option), parsed.problems)
    if parsed.searchpath:
        tree.put(("run", "searchpath"), [str(folder) for folder in parsed.searchpath], "command line")
    if problem := _foreign_stage(tree.values.get("stage"), choices):
        return Checked(schema.Config(), tree, {}, tuple(dict.fromkeys([*parsed.problems, problem])))
    spread_roles(tree)
    keep_shapes(tree, groups.shapes)
    named = {choice.key_or_group for choice in choices}
    given = {
        one.key_or_group: str(one.input_line) for one in choices if one.key_or_group not in ("stage", "experiment")
    }
    fewer = [word for word in words if word not in given.values()]
    checked, left_out = _complete(tree, named), list[str]()
    while lines := give_way(tree, files, given, checked.problems, lambda: compose_lenient(fewer).problems):
        checked, left_out = _complete(tree, named), [*left_out, *lines]
    effects = no_effect([*choices, *values], tree.values.get("stage"), given_choice(tree))
    problems = tuple(dict.fromkeys([*parsed.problems, *effects, *checked.problems]))
    return replace(checked, problems=problems, left_out=tuple(left_out))


def _complete(tree: Tree, chosen: set[str]) -> Checked:
    """The checked configuration of a tree, with the settings that suit its checkpoint."""
    own = copy.deepcopy(tree)
    settings = suit(own, chosen)
    follow_batch(own)
    complete_roles(own)
    return replace(check(own), settings=settings)


def near_option(words: Sequence[str], name: str) -> str:
    """The full path of the option that a name may mean under the stage and groups of a command line; empty: none."""
    tree = compose_lenient(words).tree
    return option_named(name, SchemaMatcher(tree).root(present_nodes(tree.values.get("stage"), given_choice(tree))))


def _resume_alone(parsed: ParsedOverrides) -> bool:
    """Whether a run is resumed without a stage. The run's own stage is then put among the words."""
    given = {override.key_or_group for override in parsed.overrides}
    if "run.resume" not in given or given & {"stage", "experiment"}:
        return False
    stage, missing = resumed_run(parsed.overrides)
    parsed.problems += missing
    if stage:
        parsed.overrides.insert(0, OverridesParser.create().parse_override(f"+stage={stage}"))
    return bool(stage)


def _foreign_stage(stage: Any, choices: Sequence[Override]) -> InputProblem | None:
    """A preset of the stage group that names no stage of the table, such as a user's own."""
    if stage in (None, "???", *STAGES):
        return None
    chosen = next((choice.value() for choice in choices if choice.key_or_group == "stage"), stage)
    what = f"conf/stage/{chosen}.yaml names a stage that does not exist"
    remedy = "name one of these there; a stage of your own belongs to a domain, see docs/extending.md"
    return InputProblem("stage", what, str(stage), ", ".join(STAGES), suggest(str(stage), STAGES), remedy)


class ConfigGroups:
    """The config groups on the search path, and the YAML that a set of choices makes."""

    def __init__(self, searchpath: Sequence[Folder] = ()):
        registry = SourcesRegistry.instance()
        for source in (
            FileConfigSource,
            StructuredConfigSource,
        ):  # Hydra's scan for plugins imports launchers and sweepers too.
            registry.register(source)
        path = ConfigSearchPathImpl()
        path.append("main", f"file://{conf_directory()}")
        for folder in searchpath:
            path.append("hydra.searchpath", f"file://{folder}")
        path.append("schema", "structured://")
        self._loader = ConfigLoaderImpl(path)
        self._repository = CachingConfigRepository(self._loader.repository)
        self._sources = {source.provider: source.path for source in self._loader.get_sources()}
        main: Any = self._repository.load_config("config")
        self.default: dict[str, str] = {
            str(entry.group): str(entry.value) for entry in main.defaults_list if hasattr(entry, "value")
        }

    def options(self, group: str) -> list[str]:
        return self._repository.get_group_options(group)

    def option(self, group: str, name: str) -> dict[str, Any] | None:
        """The values of an option's file; None without a file, or if it chooses options of other groups than `parallel`."""
        found: Any = self._repository.load_config(f"{group}/{name}")
        if found is None:
            return None
        tree, own = Tree(), OmegaConf.to_container(found.config, resolve=False)
        for entry in found.defaults_list or [ConfigDefault(path="_self_")]:
            if isinstance(entry, GroupDefault) and str(entry.group).strip("/") == "parallel":
                continue
            below = (
                own
                if entry.is_self()
                else self.option(group, str(entry.path))
                if isinstance(entry, ConfigDefault)
                else None
            )
            if not isinstance(below, dict):
                return None
            tree.merge({str(key): value for key, value in below.items()}, "")
        return tree.values

    def shapes(self) -> dict[str, tuple[str, dict[str, Any]]]:
        """The file and the architecture of each preset of a model, by the model's name."""
        found = {}
        for option in self.options("model"):
            model = (self.option("model", option) or {}).get("model") or {}
            if model.get("name") and model.get("architecture"):
                found[str(model["name"])] = (f"conf/model/{option}.yaml", model["architecture"])
        return found

    def separate(self, parsed: ParsedOverrides) -> tuple[list[Override], list[Override]]:
        """Split overrides into group choices and values. All others become problems."""
        choices, values = [], []
        for override in parsed.overrides:
            name = override.key_or_group
            if not self._repository.group_exists(name) or isinstance(override.value(), dict):
                values.append(override)
                continue
            problem = self._choice_problem(override)
            if problem is None:
                choices.append(override)
            else:
                parsed.problems.append(problem)
        self._require_stage(choices, parsed)
        return choices, values

    def _choice_problem(self, override: Override) -> InputProblem | None:
        name, word = override.key_or_group, override.input_line or ""
        known = name in self.default
        if name == "stage" and not isinstance(override.value(), str):
            return InputProblem(name, "one stage for one run", word, ", ".join(self.options(name)), "", "+stage=NAME")
        if not override.is_delete():
            chosen = override.value()
            for option in chosen if isinstance(chosen, list) else [chosen]:
                if not self._repository.config_exists(f"{name}/{option}"):
                    near = suggest(str(option), self.options(name))
                    allowed = ", ".join(self.options(name)) or "nothing"
                    plus = "" if known else "+"
                    remedy = (
                        "a checkpoint: model.name=OWNER/MODEL of the hub, or model.path=FOLDER"
                        if name == "model"
                        else ""
                    )
                    return InputProblem(
                        name, "no such option", str(option), allowed, near and f"{plus}{name}={near}", remedy
                    )
        if known and override.is_add():
            return InputProblem(word, "this group has a choice already", "", "", "", f"drop the +: {word.lstrip('+')}")
        if not known and not override.is_add() and not override.is_force_add():
            return InputProblem(
                word, "this group is added to a run", "", "", "", f"put a + before it: +{word.lstrip('~')}"
            )
        return None

    def _require_stage(self, choices: list[Override], parsed: ParsedOverrides) -> None:
        if any(choice.key_or_group == "stage" for choice in choices):
            return
        # An experiment may depend on the stage; without a stage it cannot be composed, and the rest still can.
        choices[:] = [choice for choice in choices if choice.key_or_group != "experiment"]
        if not any(
            problem.where in ("stage", "run.resume") or "stage=" in problem.where for problem in parsed.problems
        ):
            parsed.problems.append(InputProblem("stage", "not given", "", ", ".join(STAGES), "", "+stage=NAME"))

    def load(self, choices: list[Override], parsed: ParsedOverrides) -> Tree | None:
        """Merge the files that the choices select, in Hydra's order; None, and a problem, when one cannot be read."""
        tree = Tree()
        try:
            for entry in self._defaults(choices, {override.key_or_group for override in parsed.overrides}):
                loaded = self._loader._load_single_config(entry, self._repository)
                content: Any = OmegaConf.to_container(loaded.config, resolve=False)
                folder = Folder(self._sources.get(loaded.provider, "conf"))
                tree.merge(content, f"{folder.name}/{entry.config_path}.yaml")
        except (HydraException, OmegaConfBaseException, YAMLError) as fault:
            parsed.problems.append(InputProblem("configuration files", "; ".join(str(fault).strip().splitlines())))
            return None
        return tree

    def _defaults(self, choices: list[Override], words: set[str]) -> list[ResultDefault]:
        """The files to merge, lowest first: the groups' own, the stage, other additions, the experiment.

        Args:
            words: all keys and groups of the command line.
        """
        ranks = {"stage": 0, "experiment": 2}
        ordered = sorted(choices, key=lambda choice: ranks.get(choice.key_or_group, 1))
        stage = next((str(choice.value()) for choice in choices if choice.key_or_group == "stage"), "")
        if stage in STAGES and not STAGES[stage].shared and not any(one.key_or_group == "parallel" for one in choices):
            # A model's preset names the processes that train it, and this stage runs in one.
            ordered.append(OverridesParser.create().parse_override("parallel=single"))
        overrides = Overrides(self._repository, ordered)
        # Hydra expands the last choice first; what an experiment interpolates has to be known by then. All but the stage
        # under a separate name: a preset may choose other data, and Hydra takes one value for a group's name.
        for name in ("stage", "data", *STAGE_GROUPS):
            given = (choice.value() for choice in choices if choice.key_or_group == name)
            overrides.known_choices["stage" if name == "stage" else f"chosen_{name}"] = str(
                next(given, self.default.get(name))
            )
        model, usual = self._chosen_model(choices, words), self.default["optimizer"]
        overrides.known_choices["chosen_model"] = model
        embedded = model != "own" and not {*SOURCES} & {*((self.option("model", model) or {}).get("model") or {})}
        overrides.known_choices["policy"] = "embedded" if embedded else "loaded"
        for name in self.options("optimizer"):  # What a stage or an experiment chooses for an embedded model alone.
            overrides.known_choices[f"embedded_{name}"] = name if embedded else usual
        found, _ = _create_defaults_list(self._repository, "config", overrides, prepend_hydra=False, skip_missing=False)
        overrides.ensure_overrides_used()
        overrides.ensure_deletions_used()
        return found

    def _chosen_model(self, choices: list[Override], words: set[str]) -> str:
        """The option of `model` that the command line or its experiment names, else the default's; `own`: a checkpoint."""
        if "model" not in words and words & {"model.path", "model.name", "model.package"}:
            return "own"
        found = self.default["model"]
        for choice in sorted(choices, key=lambda choice: choice.key_or_group == "model"):
            if choice.key_or_group == "experiment":
                given: Any = choice.value()
                for name in given if isinstance(given, list) else [given]:
                    entries = getattr(self._repository.load_config(f"experiment/{name}"), "defaults_list", None) or ()
                    chosen = [entry.value for entry in entries if getattr(entry, "group", "") in ("/model", "model")]
                    found = str(chosen[-1]) if chosen else found
            elif choice.key_or_group == "model":
                found = str(choice.value())
        return found
