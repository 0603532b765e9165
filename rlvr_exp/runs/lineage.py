"""The training history of a policy: the tasks of every run that its weights come from.

Read from run directories, their configurations and their data. The embedded policies have imitated the train split of their
corpora (docs/default_experiment.md). The history of other weights is unknown.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rlvr_exp.config.compose import compose
from rlvr_exp.config.load import build, load
from rlvr_exp.config.model import EMBEDDED_MODELS, Model, base, continued
from rlvr_exp.config.schema import Config, imitates, trains
from rlvr_exp.core.domains import domains
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.evaluation.leakage import apart
from rlvr_exp.launch.preflight import HELD_OUT, rl_split
from rlvr_exp.records import manifest
from rlvr_exp.tasks.base import Domain, Task


@dataclass(frozen=True)
class TrainedTasks:
    """Tasks that weights were trained on."""

    where: str
    """The run, or the embedded policy."""
    domain: Domain
    tasks: list[Task]


@dataclass(frozen=True)
class Unknown:
    """Weights with an unknown history."""

    where: str


def trained_by(config: Config, where: str, directory: Path | None = None) -> Iterator[TrainedTasks | Unknown]:
    """The tasks of a run, then those of the runs that its initial policy comes from.

    Args:
        directory: the run directory, whose manifest lists the tasks that were left out. None: the run has not started.

    Raises:
        InputError: the data have changed since a run.
    """
    if trains(config.stage):
        domain = domain_of(config)
        if directory is not None:
            check_same_data(domain, directory)
        tasks = _tasks(domain, config, directory)
        yield TrainedTasks(where, domain, tasks)
        yield from shown(config, domain, f"solved examples in the prompts of {where}", tasks)
    yield from _before(config.model)


def shown(config: Config, domain: Domain, where: str, known: Sequence[Task] = ()) -> Iterator[TrainedTasks]:
    """Tasks whose solutions prompts may show, without known ones. A policy learns from them too."""
    if getattr(getattr(config.data, "prompt", None), "shots", 0):
        seen = {task.id: task for task in known}
        if others := [task for task in domain.examples() if seen.get(task.id) != task]:
            yield TrainedTasks(where, domain, others)


def domain_of(config: Config) -> Domain:
    """The domain of a run, with prompts without solved examples."""
    prompt = getattr(config.data, "prompt", None)
    plain = config.data if prompt is None else replace(config.data, prompt=replace(prompt, shots=0))
    return build(plain)


def check_same_data(domain: Domain, directory: Path) -> None:
    """Raise InputError if the data differ from those that the run has recorded."""
    recorded = {name: part["fingerprint"] for name, part in manifest.section(directory, "data").items()}
    now = {name: domain.fingerprint(name) for name in domain.splits()}
    if recorded != now:
        changed = sorted(name for name in {*recorded, *now} if recorded.get(name) != now.get(name))
        what, remedy = "its data have changed since it was run", "restore the data, or run the study in a new folder"
        raise InputError(InputProblem(str(directory), what, ", ".join(changed), "", "", remedy))


def _tasks(domain: Domain, config: Config, directory: Path | None) -> list[Task]:
    section = manifest.section(directory, "train") if directory is not None else {}
    split = section.get("split") or ("train" if imitates(config.stage) else rl_split(domain))
    splits = domain.splits()
    if section:
        left_out = {*section.get("left_out_shared_content", ()), *section.get("left_out_by_tests", ())}
        return [task for task in splits.get(split, ()) if task.id not in left_out]
    names = {*HELD_OUT, config.evaluation.split, config.run.select.split}
    return apart(domain, splits.get(split, ()), [task for name in names for task in splits.get(name, ())]).tasks


def _before(model: Model) -> Iterator[TrainedTasks | Unknown]:
    below = base(model)
    for folder in dict.fromkeys(filter(None, (continued(model), below))):
        if (name := _embedded_in(folder)) is not None:
            yield _corpus(name)
        elif (run := _run_of(Path(folder))) is None:
            yield Unknown(folder)
        else:
            yield from trained_by(load(run / "config.yaml"), str(run), run)
    if not (below or model.from_scratch or model.random_weights):
        yield _corpus(model.embedded)


def _embedded_in(folder: str) -> str | None:
    """The embedded model in a folder, such as the base of an adapter on one."""
    path = Path(folder).resolve()
    return path.name if path.parent == EMBEDDED_MODELS.resolve() else None


def _corpus(name: str) -> TrainedTasks | Unknown:
    """The corpus that an embedded model has imitated: the train split of its domain."""
    corpus = next((one.name for one in domains().values() if name in one.embedded), None)
    if corpus is None:
        return Unknown(str(EMBEDDED_MODELS / name))
    domain = build(compose(["+stage=evaluate", f"data={corpus}"]).config.data)
    return TrainedTasks(f"model={name}", domain, [*domain.splits()["train"]])


def _run_of(checkpoint: Path) -> Path | None:
    """The run directory of a checkpoint folder."""
    run = checkpoint.resolve().parent.parent
    if checkpoint.resolve().parent.name != "checkpoints" or not (run / manifest.NAME).is_file():
        return None
    stage = json.loads((run / manifest.NAME).read_text(encoding="utf-8")).get("stage", "")
    return run if trains(stage) and (run / "config.yaml").is_file() else None
