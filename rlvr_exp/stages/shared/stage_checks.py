"""What single stages need of their options, data and files: checked in the parent process before anything starts, and by the
stage itself, whose data may be a user's own class. Never imports torch."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from rlvr_exp.config.data import Manual
from rlvr_exp.config.load import build
from rlvr_exp.config.model import has_adapter, is_adapter
from rlvr_exp.config.names import near_path
from rlvr_exp.config.needs import weights_missing
from rlvr_exp.config.options import SCHEMAS
from rlvr_exp.config.roles import of_role, starts, team_of
from rlvr_exp.config.run import planned
from rlvr_exp.config.schema import Config, reads
from rlvr_exp.config.solutions import HINDSIGHT
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.episodes.environment import Environment
from rlvr_exp.evaluation.leakage import apart, check_leakage, check_selection
from rlvr_exp.launch.preflight import HELD_OUT, domain_of, rl_split
from rlvr_exp.records.rollout_files import RunReader
from rlvr_exp.tasks.base import ContinuesEdits, Domain, ExportsSolutions, RelabelsTasks, Task

WITH_RUN_DATA = "data.path=DIR, data.limit=0"


def stage_problems(config: Config) -> Iterator[InputProblem]:
    """Problems of the configuration's stage, for data and files that are there."""
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
    """The folders that the roles of a team start from."""
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
    """Runs that are compared, as far as they are there."""
    if config.compare is not None:
        from rlvr_exp.stages.compare import read_finished

        read_finished([Path(name) for name in config.compare.runs if (Path(name) / "config.yaml").is_file()])
    yield from ()


def _of_samples(config: Config) -> None:
    """The samples that +stage=verify judges, in the verifier's format."""
    if config.verify is not None and config.verifier._target_ in SCHEMAS:
        from hydra.utils import get_class

        from rlvr_exp.stages.verify import format_of, source_of

        source_of(config.verify.input, format_of(get_class(config.verifier._target_)))


def _of_solutions(config: Config) -> None:
    """The file that solutions are imported from."""
    options = config.solutions
    if options is not None and options.action == "import" and Path(options.input).is_file():
        from rlvr_exp.solutions.record import checked_rows

        checked_rows(Path(options.input))


def _of_environment(config: Config, domain: Domain) -> None:
    """Raises InputError where the environment's episodes are not of these tasks."""
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
    """Raises InputError where an environment shows no text that an action has made, as +stage=collect needs it."""
    if not environment.keeps_outputs:
        what = "shows no text that an action has made"
        raise InputError(InputProblem("environment", what, environment.name, "environment=edits"))


def _of_collect(config: Config, domain: Domain) -> None:
    if config.collect is not None:
        collected_tasks(config, in_steps(domain))


def in_steps(domain: Domain) -> ContinuesEdits:
    """The domain of a collection. Raises InputError where its tasks are not done in steps."""
    if not isinstance(domain, ContinuesEdits):
        raise InputError(InputProblem("data", "these tasks are not done in steps", domain.name, "data=edits"))
    return domain


def collected_tasks(config: Config, domain: ContinuesEdits) -> list[Task]:
    """Raises InputError where the split has none, or none has a gold that is wanted."""
    options = config.collect
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
    """Raises InputError where the data cannot do what the options of self-play require."""
    if domain.problem_format not in ("", "python_io"):
        what = "a round keeps programs by what they return"
        raise InputError(InputProblem("data", what, f"data={domain.name}", "data=arc", "", "data=arc"))
    wanted = [kind for kind in HINDSIGHT if getattr(config.self_play, kind)]
    if wanted and not isinstance(domain, RelabelsTasks):
        what, where = "the domain does not say how a task is relabelled", f"self_play.{wanted[0]}"
        remedy = " ".join(f"self_play.{kind}=0" for kind in wanted)
        raise InputError(InputProblem(where, what, domain.name, "data=arc", "", remedy))


def _of_skip(config: Config, domain: Domain) -> None:
    if reads(config, "evaluation"):
        check_skip(config.evaluation, domain.sizes().get(config.evaluation.split, 0))


def check_skip(evaluation: Any, count: int) -> None:
    """Raises InputError where `evaluation.skip` leaves no task of so many."""
    if count and evaluation.skip >= count:
        got, allowed = str(evaluation.skip), f"at most {count - 1} of split {evaluation.split!r}"
        what = "leaves no task to measure on"
        raise InputError(InputProblem("evaluation.skip", what, got, allowed, remedy="skip fewer"))


def _of_answers(config: Config, domain: Domain) -> None:
    """The answers that +stage=validate judges."""
    if config.validate is not None:
        from rlvr_exp.stages.shared.answer_validation import OPTION, read_answers
        from rlvr_exp.stages.validate import wanted_splits

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
        check_export(domain)


def check_export(domain: Domain) -> ExportsSolutions:
    """The domain. Raises InputError if solutions cannot be exported as rows for imitation."""
    if not isinstance(domain, ExportsSolutions):
        what = "the domain does not say how solutions become rows for imitation"
        raise InputError(InputProblem("data", what, domain.name, "data=arc"))
    return domain


def _of_rollouts(config: Config, domain: Domain) -> None:
    """The rollouts of another run that are rescored or kept, and the tasks that they answer."""
    named = {name: getattr(getattr(config, name), "run", "") for name in ("rescore", "solutions")}
    for name, run in named.items():
        if run and any((Path(run) / "rollouts").glob("step_*.jsonl.gz")):
            source, tasks = RunReader(Path(run)), {task.id: task for own in domain.splits().values() for task in own}
            if name == "rescore":
                check_rescored(source, tasks)
            else:
                from rlvr_exp.stages.shared.solved_rollouts import solved

                for _ in solved(source, domain):
                    pass


def check_rescored(source: RunReader, tasks: Mapping[str, Task]) -> int:
    """The number of rows. Raises InputError where the data lacks a row's task: its verdict would be for another
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
    """Bands that the training tasks do not have."""
    node = config.curriculum
    if (
        reads(config, "curriculum")
        and (isinstance(node, Manual) or getattr(node, "override", -1) >= 0)
        and not config.data.mix
    ):
        build(node, tasks=domain.splits().get(rl_split(domain), ()), seed=config.seed)


def _of_leakage(config: Config, domain: Domain) -> None:
    """Raises InputError where tasks are trained on and held out, in data whose splits may share tasks."""
    if not reads(config, "optimizer") or domain.splits_apart or not config.data.path:
        return
    splits, measured = domain.splits(), config.evaluation.split
    trained = splits.get(rl_split(domain) if reads(config, "curriculum") else "train", ())
    check_leakage(trained, splits.get(measured, ()))
    names = {*HELD_OUT, measured, config.run.select.split}
    apart(domain, trained, [task for name, tasks in splits.items() if name in names for task in tasks])


def _of_selection(config: Config, domain: Domain) -> None:
    """Raises InputError if the tasks that choose the best step are also reported on."""
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
