"""Every check before the first step: problems that refuse the run, and warnings about the number of tasks. The dry plan
and the run execute this one list in the parent process, so that a plan refuses everything that the run would refuse.
Stages repeat single checks, because their data may be a user's own class.

Never imports torch. The run itself finds problems that need the weights, an endpoint or a sandbox.
"""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from rlvr_exp.config.algorithm import ReinforcementLearning
from rlvr_exp.config.compose import compose_lenient
from rlvr_exp.config.data import Manual
from rlvr_exp.config.load import build
from rlvr_exp.config.model import has_adapter, is_adapter
from rlvr_exp.config.names import near_path
from rlvr_exp.config.needs import weights_missing
from rlvr_exp.config.options import SCHEMAS
from rlvr_exp.config.roles import of_role, starts, team_of
from rlvr_exp.config.run import planned
from rlvr_exp.config.schema import STAGES, Config, reads, trains
from rlvr_exp.config.solutions import HINDSIGHT
from rlvr_exp.core.domains import able
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.core.measures import FEW, counted, detectable
from rlvr_exp.episodes.environment import Environment
from rlvr_exp.evaluation.leakage import apart, check_leakage, check_selection
from rlvr_exp.launch.inference_inputs import input_problems
from rlvr_exp.launch.preflight import (
    HELD_OUT,
    domain_of,
    measured_tasks,
    missing_problems,
    preflight_problems,
    rl_split,
)
from rlvr_exp.launch.resume import directory_of
from rlvr_exp.records import manifest
from rlvr_exp.records.rollout_files import RunReader
from rlvr_exp.tasks.base import ContinuesEdits, Domain, RelabelsTasks, Task

WITH_RUN_DATA = "data.path=DIR, data.limit=0"

FOLDS = 5

OF_THE_RUN = ("run.", "seed=", "evaluation.remember=", "evaluation.split=", "evaluation.skip=", "data.fold", "executor")
"""Words of a run that its cross-validation drops and sets itself."""

UNNAMED = Path("outputs/DATE/TIME_chain")
"""Stands for the directory of a chain until it has one."""


def start_problems(config: Config, fetchable: bool) -> Iterator[InputProblem]:
    """Yield every problem that prevents the start.

    Args:
        fetchable: ignore missing files that a command can fetch, as in a plan.
    """
    yield from preflight_problems(config, fetchable)
    yield from stage_problems(config)
    yield from input_problems(config)
    if config.stage == "chain" and not config.chain.problems():
        yield from _of_links(config, fetchable)
    if config.stage == "study" and not config.study.problems():
        yield from _of_jobs(config, fetchable)


def _of_links(config: Config, fetchable: bool) -> Iterator[InputProblem]:
    """Problems of a chain's commands, except for files that an earlier link has yet to write."""
    from rlvr_exp.runs.chain import links_of

    root = directory_of(config) or UNNAMED
    for job in links_of(config.chain, root):
        checked = compose_lenient(list(job.words))
        if checked.config.stage in STAGES and STAGES[checked.config.stage].direct:
            what = "has no run directory, so that it is no link"
            yield InputProblem(
                f"chain.links.{job.name}", what, f"+stage={checked.config.stage}", remedy="run it after the chain"
            )
        for problem in checked.problems or start_problems(checked.config, fetchable):
            if f"{root}/" not in f"{problem.what} {problem.got}":
                yield replace(problem, where=f"chain.links.{job.name}: {problem.where}")


def _of_jobs(config: Config, fetchable: bool) -> Iterator[InputProblem]:
    """Problems of a study's runs. Runs of an arm differ only by their seeds, so the first run of each arm is checked.
    Embedded data are not checked, because a check takes long if they are cut into folds."""
    from rlvr_exp.runs.study import check

    study = build(config.study)
    try:
        check(study.extremes(), study.rate)
        jobs = [*{job.arm: job for job in reversed(study.jobs())}.values()]
        found = [*zip(jobs, check(jobs, study.rate), strict=True)]
    except InputError as fault:
        yield from fault.problems
        return
    for job, checked in found:
        if not job.open:
            of_job = checked.config
            whole = not reads(of_job, "data") or of_job.data.path
            problems = start_problems(of_job, fetchable) if whole else missing_problems(of_job, fetchable)
            yield from (replace(one, where=f"study, arm {job.arm}: {one.where}") for one in problems)


def stage_problems(config: Config) -> Iterator[InputProblem]:
    """Problems of the configuration's stage, for existing data and files."""
    checks = [partial(check, config) for check in WITHOUT_DATA]
    try:
        if (domain := domain_of(config)) is not None:
            domain.sizes()
    except InputError:  # Faulty data, which the first look at them reports.
        domain = None
    if domain is not None:
        checks += [partial(check, config, domain) for check in WITH_DATA]
    for check in checks:
        try:
            yield from check() or ()
        except InputError as fault:
            yield from fault.problems


def _of_starts(config: Config) -> Iterator[InputProblem]:
    """Problems of the folders that the roles of a team start from."""
    if (team := team_of(config)) is None:
        return
    folders = {role: folder for role, folder in starts(config).items() if folder and Path(folder).is_dir()}
    shared = any(has_adapter(of_role(config, role).model) for role in starts(config)) or any(
        map(is_adapter, folders.values())
    )
    for role, folder in folders.items():
        model = of_role(config, role).model
        if shared and not is_adapter(folder):
            what = f"the {role} brings full weights, and roles with adapters share one base"
            remedy = "name an adapter's folder, or model.adapter.kind=none"
            yield InputProblem(team.option(config, role), what, folder, "an adapter of the model", "", remedy)
        else:
            named = replace(model, path=folder, name="", adapter=replace(model.adapter, path=""))
            yield from (
                replace(need.problem, where=team.option(config, role))
                for need in weights_missing(named)
                if not need.command
            )


def _of_runs(config: Config) -> Iterator[InputProblem]:
    """Raise InputError if an existing run cannot be compared."""
    if config.compare is not None:
        from rlvr_exp.stages.compare import read_finished

        read_finished([Path(name) for name in config.compare.runs if (Path(name) / "config.yaml").is_file()])
    yield from ()


def _of_samples(config: Config) -> None:
    """Raise InputError if the input of +stage=verify does not have the verifier's format."""
    if config.verify is not None and config.verifier._target_ in SCHEMAS:
        from hydra.utils import get_class

        from rlvr_exp.stages.verify import format_of, source_of

        verifier: Any = get_class(config.verifier._target_)  # The class has the attributes that are read.
        source_of(config.verify.input, format_of(verifier))


def _of_solutions(config: Config) -> None:
    """Raise InputError if the file of imported solutions is faulty."""
    options = config.solutions
    if options is not None and options.action == "import" and Path(options.input).is_file():
        from rlvr_exp.solutions.record import checked_rows

        checked_rows(Path(options.input))


def _of_environment(config: Config, domain: Domain) -> None:
    """Raise InputError if the environment does not support these tasks."""
    node, collect, infer = config.environment, config.collect, config.infer
    elsewhere = (
        starts(config) or (infer is not None and infer.input) or (collect is not None and collect.teacher == "golds")
    )
    if elsewhere or not reads(config, "environment") or getattr(node, "_target_", "") not in SCHEMAS:
        return
    environment = build(node, domain=domain)
    if collect is not None:
        check_shown(environment)


def check_shown(environment: Environment) -> None:
    """Raise InputError if an environment does not show the text that an action has made, which +stage=collect needs."""
    if not environment.keeps_outputs:
        what = "shows no text that an action has made"
        raise InputError(InputProblem("environment", what, environment.name, "an environment with keeps_outputs"))


def _of_collect(config: Config, domain: Domain) -> None:
    if config.collect is not None:
        collected_tasks(config, in_steps(domain))


def in_steps(domain: Domain) -> ContinuesEdits:
    """The domain of a collection. Raises InputError if its tasks are not done in steps."""
    if not isinstance(domain, ContinuesEdits):
        what = "these tasks are not done in steps"
        raise InputError(InputProblem("data", what, domain.name, able("ContinuesEdits")))
    return domain


def collected_tasks(config: Config, domain: ContinuesEdits) -> list[Task]:
    """The tasks of a collection. Raises InputError if the split has none, or if none of them has the required reference
    answer."""
    options = config.collect
    assert options is not None  # the stage has its node
    tasks: Sequence[Task] = domain.splits().get(options.split, ())
    if options.teacher == "golds":
        tasks = [task for task in tasks if domain.gold_steps(task)]
    if not tasks:
        what, remedy = "no task has an action to show", "rows with an `action`, or collect.teacher=policy"
        raise InputError(InputProblem("collect.teacher", what, f"split {options.split}", "", "", remedy))
    if options.skip >= len(tasks):
        what, allowed = "leaves out every task", f"less than {len(tasks)}"
        raise InputError(InputProblem("collect.skip", what, str(options.skip), allowed))
    return list(tasks[options.skip : options.skip + options.tasks if options.tasks else None])


def _of_self_play(config: Config, domain: Domain) -> None:
    if config.self_play is not None:
        check_self_play(config, domain)


def check_self_play(config: Config, domain: Domain) -> None:
    """Raise InputError if the data do not support the options of self-play."""
    if domain.problem_format not in ("", "python_io"):
        what = "a round keeps programs by what they return"
        raise InputError(InputProblem("data", what, f"data={domain.name}", able("RelabelsTasks")))
    wanted = [kind for kind in HINDSIGHT if getattr(config.self_play, kind)]
    if wanted and not isinstance(domain, RelabelsTasks):
        what, where = "the domain does not say how a task is relabelled", f"self_play.{wanted[0]}"
        remedy = " ".join(f"self_play.{kind}=0" for kind in wanted)
        raise InputError(InputProblem(where, what, domain.name, able("RelabelsTasks"), "", remedy))


def _of_skip(config: Config, domain: Domain) -> None:
    if reads(config, "evaluation"):
        check_skip(config.evaluation, domain.sizes().get(config.evaluation.split, 0))


def check_skip(evaluation: Any, count: int) -> None:
    """Raise InputError if `evaluation.skip` leaves none of `count` tasks."""
    if count and evaluation.skip >= count:
        got, allowed = str(evaluation.skip), f"at most {count - 1} of split {evaluation.split!r}"
        what = "leaves no task to measure on"
        raise InputError(InputProblem("evaluation.skip", what, got, allowed, remedy="skip fewer"))


def _of_answers(config: Config, domain: Domain) -> None:
    """Raise InputError if the answers of +stage=validate cannot be read."""
    if config.validate is not None:
        from rlvr_exp.stages.validate import OPTION, read_answers, wanted_splits

        splits = wanted_splits(domain, config.validate.split)
        if path := config.validate.answers:
            if not Path(path).is_file():
                what = "not there" if not Path(path).exists() else "not a regular file"
                raise InputError(
                    InputProblem(OPTION, what, path, "a file of JSON lines", near_path(path), "correct the path")
                )
            read_answers(Path(path), {task.id: task for name in splits for task in domain.splits()[name]})


def _of_export(config: Config, domain: Domain) -> None:
    if config.solutions is not None and (config.solutions.action, config.solutions.form) == ("export", "sft"):
        from rlvr_exp.stages.solutions import check_export

        check_export(domain)


def _of_rollouts(config: Config, domain: Domain) -> None:
    """Raise InputError if the data do not fit the rollouts of the run that is rescored or read for solutions."""
    named = {name: getattr(getattr(config, name), "run", "") for name in ("rescore", "solutions")}
    for name, run in named.items():
        if run and any((Path(run) / "rollouts").glob("step_*.jsonl.gz")):
            source, tasks = RunReader(Path(run)), {task.id: task for own in domain.splits().values() for task in own}
            if name == "rescore":
                check_rescored(source, tasks)
            else:
                from rlvr_exp.stages.solutions import solved

                for _ in solved(source, domain):
                    pass


def check_rescored(source: RunReader, tasks: Mapping[str, Task]) -> int:
    """The number of rows. Raises InputError if the data lack a row's task, since its verdict would be for another
    problem."""
    total, missing = 0, dict[str, int]()
    for row in source.rows():
        total += 1
        if (task := row.completion.task.id) not in tasks:
            missing[task] = missing.get(task, 0) + 1
    if missing:
        what = f"{sum(missing.values())} rollouts answer tasks that the data has not"
        got = f"{len(missing)} tasks, first {next(iter(missing))}"
        raise InputError(InputProblem("data", what, got, "the data of the run", "", WITH_RUN_DATA))
    return total


def _of_curriculum(config: Config, domain: Domain) -> None:
    """Raise InputError if the curriculum names bands that the training tasks do not have."""
    node = config.curriculum
    if (
        reads(config, "curriculum")
        and (isinstance(node, Manual) or getattr(node, "override", -1) >= 0)
        and not config.data.mix
    ):
        build(node, tasks=domain.splits().get(rl_split(domain), ()), seed=config.seed)


def _of_leakage(config: Config, domain: Domain) -> None:
    """Raise InputError if tasks are both trained on and held out. Only some data have splits that may share tasks."""
    if not reads(config, "optimizer") or domain.splits_apart or not config.data.path:
        return
    splits, measured = domain.splits(), config.evaluation.split
    trained = splits.get(rl_split(domain) if reads(config, "curriculum") else "train", ())
    check_leakage(trained, splits.get(measured, ()))
    names = {*HELD_OUT, measured, config.run.select.split}
    apart(domain, trained, [task for name, tasks in splits.items() if name in names for task in tasks])


def _of_selection(config: Config, domain: Domain) -> None:
    """Raise InputError if the tasks that choose the best step also measure the reported success."""
    if not reads(config, "optimizer") or not planned(config).every_steps:
        return
    chosen, measured = config.run.select.split, config.evaluation.split
    if chosen == measured or not domain.splits_apart:
        splits = domain.splits()
        check_selection(splits.get(chosen, ()), splits.get(measured, ()))


WITHOUT_DATA = (_of_starts, _of_runs, _of_samples, _of_solutions)

WITH_DATA = (
    *(_of_environment, _of_collect, _of_self_play, _of_skip, _of_answers, _of_export),
    *(_of_rollouts, _of_curriculum, _of_leakage, _of_selection),
)


def sample_size(config: Config, words: Sequence[str]) -> list[tuple[str, str]]:
    """Lines about the size of the held-out set, each as a name and a text. Empty if the stage measures no policy, or if
    its data cannot be read here.

    Args:
        words: the run's command.
    """
    if not reads(config, "evaluation") or config.benchmark is not None:
        return []
    try:
        domain = domain_of(config)
        tasks = measured_tasks(config, domain.sizes()) if domain is not None else 0
    except InputError:  # Faulty data are refused before.
        return []
    if domain is None or not tasks:
        return []
    lines = [("warning", text) for text in _repeats(config, domain)]
    lines.append(("detectable", detectable(tasks, config.evaluation.samples, config.evaluation.greedy)))
    if tasks < FEW:
        lines += [("warning", text) for text in _warnings(config, tasks, words)]
    return lines


def _repeats(config: Config, domain: Domain) -> Iterator[str]:
    if not reads(config, "curriculum") or not isinstance(config.algorithm, ReinforcementLearning):
        return
    split, prompts = rl_split(domain), config.algorithm.prompts_per_step
    tasks = domain.sizes().get(split, 0)
    if 0 < tasks < prompts:
        yield (
            f"each step repeats tasks: it takes {prompts} prompts, and split {split!r} has {counted(tasks)}. "
            f"Bring more data, or set algorithm.prompts_per_step={tasks}"
        )


def _warnings(config: Config, tasks: int, words: Sequence[str]) -> Iterator[str]:
    verb = "is" if tasks == 1 else "are"
    yield f"only {counted(tasks)} of split {config.evaluation.split!r} {verb} measured: its rates and differences will be uncertain"
    if not trains(config.stage):
        yield f"measure {FEW} tasks or more: bring more data, or name a larger split by evaluation.split"
        return
    started = _starting_words(config, words)
    if started is None:
        return
    command = cross_validation(config, started)
    if command is None:
        yield f"bring more data: these tasks cannot be cut into folds for study=cross_validation, and {FEW} tasks or more are needed"
    else:
        yield f"a cross-validation measures every task once, by a training for each fold: {shlex.join(command)}"


def _starting_words(config: Config, words: Sequence[str]) -> Sequence[str] | None:
    """Words that start the run from its first step. If the command only resumes a directory, they come from its
    manifest. None if these words do not give the same configuration."""
    directory = directory_of(config)
    if not config.run.resume or directory is None or any(word.startswith("+stage=") for word in words):
        return words
    started: dict[str, str] = {}
    for command in (*(one[3:] for one in manifest.commands(directory)), words):
        started |= {word.lstrip("+").partition("=")[0]: word for word in command if not word.startswith("run.")}
    found = compose_lenient([*started.values()])
    same = not found.problems and replace(found.config, run=config.run) == config
    return [*started.values()] if same else None


def cross_validation(config: Config, words: Sequence[str]) -> list[str] | None:
    """The command of a cross-validation of the run. None if none can start on this machine."""
    domain = domain_of(config)
    if domain is None or not domain.makes_folds:
        return None
    kept = [word for word in words if not word.startswith(OF_THE_RUN)]
    first = [word for word in kept if word.startswith("+stage=")]
    others = [word for word in kept if word not in first]
    for folds in range(min(FOLDS, sum(domain.sizes().values())), 1, -1):
        own = [f"study.command={_listed(first)}", f"study.words={_listed(others)}", f"study.folds={folds}"]
        command = ["+stage=study", "study=cross_validation", *(word for word in own if not word.endswith("=[]"))]
        checked = compose_lenient(command)
        if not checked.problems and not any(start_problems(checked.config, True)):
            return ["python", "-m", "rlvr_exp", *command]
    return None


def _listed(words: Sequence[str]) -> str:
    """Format words as a list for the command line, each in quotes."""
    quoted = (word.replace("\\", "\\\\").replace('"', '\\"') for word in words)
    return "[" + ",".join(f'"{word}"' for word in quoted) + "]"
