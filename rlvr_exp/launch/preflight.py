"""Checks before a run starts: inputs, packages, the run directory, and the data with their splits and reference answers.

They read files and build light objects, and write nothing.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from hydra.utils import get_class

from rlvr_exp.config.algorithm import SFT
from rlvr_exp.config.data import SINGLE_TURN
from rlvr_exp.config.engine import Server
from rlvr_exp.config.load import build, load
from rlvr_exp.config.needs import missing_artifacts
from rlvr_exp.config.options import SCHEMAS
from rlvr_exp.config.roles import starts
from rlvr_exp.config.schema import STAGES, Config, reads, trains
from rlvr_exp.core.domains import able, domains
from rlvr_exp.core.domains import load as load_object
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.core.measures import counted
from rlvr_exp.launch.resume import problem_before
from rlvr_exp.records import manifest
from rlvr_exp.records.rollout_files import evaluation_path
from rlvr_exp.solutions.store import SolutionStore, keeping_of
from rlvr_exp.tasks.base import Domain, HasEditTests, HoldsBackCases, ShowsCases, Task
from rlvr_exp.tasks.formats.rows import FORMATS, format_of
from rlvr_exp.tasks.sources import by_source
from rlvr_exp.verifiers.line_coverage import not_installed

SHOWN = 3
"""Number of reasons in a message."""
PRACTICE = "practice"
BOTH = ("python_tests",)
"""Verifiers of problems with test files and with cases."""
TRAINED = ("train", PRACTICE)
"""Splits that stages train on."""
HELD_OUT = ("dev", "test", "test_unseen")
"""Splits that no stage trains on."""


def not_for_training(reason: str) -> InputProblem:
    allowed, remedy = "+stage=evaluate, validate or infer", "train on another set"
    return InputProblem("data.path", "no policy may be trained on this set", reason, allowed, "", remedy)


def rl_split(domain: Domain) -> str:
    """The split for reinforcement learning: `practice` if the data have it, else `train`. No policy has seen the reference
    answers of `practice`, and gains on imitated tasks transfer less to other tasks (docs/dafny.md)."""
    return PRACTICE if domain.splits().get(PRACTICE) else "train"


def no_vote(domain: Domain, option: str) -> InputProblem:
    """The problem of a vote on tasks without held-back cases."""
    what = "programs vote on the outputs of held-back inputs, which these tasks do not have"
    return InputProblem(option, what, f"data={domain.name}", able("HoldsBackCases"), "", f"{option}=0")


def no_shown_cases(domain: Domain) -> InputProblem:
    """The problem of an adaptation to tasks without shown cases."""
    what = "a policy adapts to cases that the prompt shows, which these tasks do not have"
    return InputProblem("infer.adapt", what, f"data={domain.name}", able("ShowsCases"), "", "infer.adapt=none")


def data_problems(config: Config) -> Iterator[InputProblem]:
    """Problems of a stage with its data, judged by their files: faults, missing splits, a verifier that does not judge them, no
    reference answers to imitate, or a set that must not be trained on."""
    domain = domain_of(config)
    if domain is None:
        return
    try:
        if reads(config, "optimizer") and (reason := domain.no_training()):
            yield not_for_training(reason)
            return
        splits = splits_in(domain, config)
        yield from splits.problems
        if not splits.problems:
            yield from _of_verifier(config, domain)
            imitates = reads(config, "optimizer") and isinstance(config.algorithm, SFT)
            own_golds = config.self_play is not None and config.self_play.without_golds
            golds = config.data.path and imitates and not own_golds
            if golds and not any(map(domain.gold_completion, domain.splits()["train"])):
                what, remedy = "no task of split 'train' has a gold to imitate", "+stage=grpo, which needs none"
                yield InputProblem("data", what, config.data.path, "", "", f"{remedy}, or data with gold answers")
            yield from _of_mix(config, domain)
            for check in (path for one in domains().values() for path in one.checks):
                yield from load_object(check)(config, domain)
            yield from _of_extras(config, domain)
    except InputError as fault:
        yield from fault.problems


def _of_verifier(config: Config, domain: Domain) -> Iterator[InputProblem]:
    if not reads(config, "verifier") or config.verifier._target_ not in SCHEMAS:
        return
    if config.infer is not None and (config.infer.input or not config.infer.verify):
        return
    verifier: Any = get_class(config.verifier._target_)
    tasks = (task for found in domain.splits().values() for task in found)
    forms = {domain.problem_format} if domain.problem_format else problem_formats(tasks)
    if problem := verifier_mismatch(verifier.row_format or verifier.name, forms, verifier.also_judges):
        one_turn = getattr(config.environment, "_target_", SINGLE_TURN) == SINGLE_TURN
        other = domain.other_data(config.verifier._target_) if one_turn else ""
        yield replace(problem, remedy=f"{other}, or {problem.remedy}") if other else problem


def problem_formats(tasks: Iterable[Task]) -> set[str]:
    """The row formats of the tasks' problems. A user's own problems have none."""
    return {form.name for task in tasks if (form := format_of(task.problem))}


def verifier_mismatch(name: str, needed: Collection[str], further: Collection[str] = ()) -> InputProblem | None:
    """The problem of a verifier that judges rows of the given names, with data of the needed formats. A user's own verifier may
    judge any."""
    if name not in FORMATS or {*needed} <= {name, *further}:
        return None
    fitting = BOTH if {*needed} == {"pytest", "python_io"} else sorted(needed)
    allowed = " or ".join(f"verifier={other}" for other in fitting)
    return InputProblem("verifier", "does not judge the problems of this data", name, allowed, "", allowed)


def _of_mix(config: Config, domain: Domain) -> Iterator[InputProblem]:
    mix = config.data.mix
    if not mix or "data" in STAGES[str(config.stage)].inherits:  # The run that is read had a mixture.
        return
    if not reads(config, "optimizer"):
        allowed = ", ".join(f"+stage={name}" for name in STAGES if trains(name))
        yield InputProblem("data.mix", "has no effect where nothing is trained", str(mix), allowed, "", "drop it")
        return
    if config.self_play is not None and not config.self_play.tasks:
        what, remedy = "every task once is no mixture", "self_play.tasks=1000, or drop data.mix"
        yield InputProblem("self_play.tasks", what, "0", "a number of tasks for each round", "", remedy)
    split = "train" if isinstance(config.algorithm, SFT) else rl_split(domain)
    by_source(domain.splits()[split], mix)


def _of_extras(config: Config, domain: Domain) -> Iterator[InputProblem]:
    infer = config.infer
    if infer is not None and infer.vote and not infer.input and not isinstance(domain, HoldsBackCases):
        yield no_vote(domain, "infer.vote")
    if infer is not None and infer.adapt != "none" and not infer.input and not isinstance(domain, ShowsCases):
        yield no_shown_cases(domain)
    if reads(config, "evaluation") and config.evaluation.vote:
        yield from vote_problems(domain, config.evaluation.split)
    if reads(config, "evaluation") and config.evaluation.excess_code:
        yield from excess_problems(domain, config.evaluation.split)
    if reads(config, "evaluation") and config.evaluation.bits:
        yield from bits_problems(domain, config.evaluation.split)


def bits_problems(domain: Domain, split: str) -> Iterator[InputProblem]:
    """Why bits a character cannot be measured on the tasks of a split."""
    if not any(domain.gold_completion(task) for task in domain.splits()[split]):
        what, got = "these tasks have no gold answers", f"evaluation.split={split}"
        yield InputProblem("evaluation.bits", what, got, "a split with golds", "", "drop it")


def excess_problems(domain: Domain, split: str) -> Iterator[InputProblem]:
    """Why excess code cannot be measured on the tasks of a split."""
    option, tasks = "evaluation.excess_code", domain.splits()[split]
    if problem := not_installed(option):
        yield problem
    if not isinstance(domain, HasEditTests) or all(domain.edit_with_tests(task, "") is None for task in tasks):
        what, remedy = (
            "these tasks are no edits with tests that can run under coverage",
            f"drop it, or {able('HasEditTests')}",
        )
        yield InputProblem(option, what, f"data={domain.name}", able("HasEditTests"), "", remedy)


def vote_problems(domain: Domain, split: str) -> Iterator[InputProblem]:
    """Why a vote on the tasks of a split cannot be measured."""
    if not isinstance(domain, HoldsBackCases):
        yield no_vote(domain, "evaluation.vote")
    elif all(domain.held_back(task) is None for task in domain.splits()[split]):
        what, remedy = "the right outputs are hidden, so that no vote can be measured", "+stage=infer infer.vote=2"
        yield InputProblem("evaluation.vote", what, f"evaluation.split={split}", "a split with outputs", "", remedy)


def domain_of(config: Config) -> Domain | None:
    """The domain; None if the stage does without it, its data are not on this machine, or its class is of no registered domain and may import anything."""
    if config.serve is not None and config.serve.judge_only:
        return None
    target = config.data._target_ if reads(config, "data") else ""
    if target not in SCHEMAS and not any(one.owns(target) for one in domains().values()):
        return None
    path = Path(config.data.path)
    if config.data.path and not path.exists():
        return None
    return _read_once(repr((config.data, _stamps(path) if config.data.path else ())), lambda: build(config.data))


def _stamps(path: Path) -> list[tuple[str, int, int]]:
    """Return the name, modification time and size of each file."""
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    return [(str(file), stat.st_mtime_ns, stat.st_size) for file in files if file.exists() for stat in [file.stat()]]


_READ: dict[str, Domain] = {}


def _read_once(key: str, make: Callable[[], Domain]) -> Domain:
    """The domain, read once for all checks of a command; the last two are kept."""
    if key not in _READ:
        for first in [*_READ][:-1]:
            del _READ[first]
        _READ[key] = make()
    return _READ[key]


@dataclass(frozen=True)
class Splits:
    """Number of tasks in each split, and number of tasks in no split by reason."""

    sizes: Mapping[str, int]
    left_out: Mapping[str, int]
    note: str
    problems: tuple[InputProblem, ...] = ()
    """Splits that the stage needs and that have no tasks."""


def splits_of(config: Config) -> Splits | None:
    """The splits of the data; None if they cannot be read on this machine.

    Raises:
        InputError: the data are faulty, or a split that the stage needs is missing.
    """
    domain = domain_of(config)
    if domain is None:
        return None
    found = splits_in(domain, config)
    if found.problems:
        raise InputError(*found.problems)
    return found


def measured_tasks(config: Config, sizes: Mapping[str, int]) -> int:
    """Number of tasks that an evaluation measures, by the sizes of the splits."""
    wanted = config.evaluation
    there = max(0, sizes.get(wanted.split, 0) - wanted.skip)
    return min(there, wanted.tasks or there)


def splits_in(domain: Domain, config: Config) -> Splits:
    """The splits of a domain for the stage of the configuration. Raises InputError if the data are faulty."""
    sizes = domain.sizes()
    left_out = reasons(domain) if config.data.path else {}
    missing = [name for name in _needed(config) if not sizes.get(name)]
    problems = (no_split(missing, sizes, left_out, domain.no_split_remedy),) if missing else ()
    return Splits(sizes, left_out, domain.splits_note(), problems)


def reasons(domain: Domain) -> dict[str, int]:
    """Number of tasks of the data that are in no split, by reason."""
    return dict(Counter(domain.left_out().values()).most_common())


def no_split(
    names: Sequence[str], sizes: Mapping[str, int], left_out: Mapping[str, int], further: str = ""
) -> InputProblem:
    """The problem of splits that have no tasks.

    Args:
        left_out: number of tasks that are in no split, by reason.
        further: a remedy that the domain knows.
    """
    there = ", ".join(f"{split} ({counted(count)})" for split, count in sizes.items())
    what = f"no tasks in split {' and '.join(map(repr, names))}"
    remedy = "name another split, or other data" + (", or a verifier that judges those left out" if left_out else "")
    remedy += f", or {further}" if further else ""
    return InputProblem("data", what, shown(left_out), there or "no split has tasks", "", remedy)


def left_out_warning(config: Config) -> str:
    """The tasks of the data that are in no split, with the remedy; empty if there are none or the data cannot be read here."""
    if not reads(config, "data") or not config.data.path or (config.infer is not None and config.infer.input):
        return ""
    domain = domain_of(config)
    return "" if domain is None else left_out_text(domain)


def left_out_text(domain: Domain) -> str:
    """The tasks of a domain that are in no split, with the remedy; empty if there are none."""
    text, remedy = shown(reasons(domain)), domain.left_out_remedy()
    return f"{text}. {remedy}" if text and remedy else text


def shown(left_out: Mapping[str, int]) -> str:
    """Tasks that are in no split, as text: their number and the most frequent reasons, each with an example."""
    counts, examples = Counter[str](), dict[str, str]()
    for reason, count in left_out.items():
        kind, _, example = reason.splitlines()[0].partition(": ")
        counts[kind] += count
        examples.setdefault(kind, f", such as {example}" if example else "")
    first = [f"{kind} ({count}{examples[kind]})" for kind, count in counts.most_common(SHOWN)]
    total = sum(left_out.values())
    return f"{counted(total)} {'is' if total == 1 else 'are'} left out: {'; '.join(first)}" if left_out else ""


def _needed(config: Config) -> list[str]:
    needed = ["train"] if reads(config, "optimizer") else []
    needed += ["dev"] if isinstance(config.algorithm, SFT) and reads(config, "optimizer") else []
    needed += [config.evaluation.split] if reads(config, "evaluation") else []
    selects = reads(config, "optimizer") and config.run.select.every_steps > 0
    needed += [config.run.select.split] if selects else []
    needed += [config.collect.split] if config.collect is not None else []
    needed += [config.validate.split] if config.validate is not None and config.validate.split else []
    needed += [config.infer.split] if config.infer is not None and not config.infer.input else []
    return [*dict.fromkeys(needed)]


CHECKED_BY_BUILDING = ("reward", "tracking")
"""Nodes whose objects are light and report problems at construction."""


def preflight_problems(config: Config, fetchable: bool) -> Iterator[InputProblem]:
    """Every problem that prevents the start. `fetchable`: artifacts that a command can fetch are no problem, as in a plan."""
    yield from missing_problems(config, fetchable)
    if reads(config, "engine") and isinstance(config.engine, Server) and not config.engine.url:
        allowed, remedy = "http:// or https://, HOST, up to /v1", "engine.url=http://localhost:8000/v1"
        yield InputProblem("engine.url", "not given", "nothing", allowed, "", remedy)
    for name in CHECKED_BY_BUILDING:
        node = getattr(config, name)
        # A user's own class may import anything; it reports problems when the stage builds it.
        if reads(config, name) and node._target_ in SCHEMAS:
            yield from _problems_of(node)
    yield from data_problems(config)
    yield from baseline_problems(config)
    yield from store_problems(config)
    if problem := problem_before(config):
        yield problem


def missing_problems(config: Config, fetchable: bool) -> Iterator[InputProblem]:
    """Missing artifacts."""
    return (need.problem for need in missing_artifacts(config) if not (fetchable and need.command))


def _problems_of(node: object) -> tuple[InputProblem, ...]:
    try:
        build(node)
    except InputError as fault:
        return fault.problems
    return ()


BASELINE = "evaluate.baseline"
NEUTRAL = (
    *("evaluation.batch_size", "evaluation.remember", "sandbox.workers", "verifier.validate"),
    *("evaluation.vote", "evaluation.excess_code", "evaluation.bits"),
    *("data.mix", "data.reorder", "data.resample"),
)
"""Options that change no common result: speed, further measures of the same answers, and training data."""


def baseline_problems(config: Config) -> Iterator[InputProblem]:
    """Differences in the measurement of the baseline, which would not be differences of the policies. Empty if its run is
    missing."""
    directory = Path(config.evaluate.baseline) if config.evaluate is not None and config.evaluate.baseline else None
    if directory is None or not (directory / "config.yaml").is_file():
        return
    try:
        yield from (differing := list(other_conditions(load(directory / "config.yaml"), config)))
        if not differing:
            yield from _baseline_files(directory, config)
    except InputError as fault:
        yield from fault.problems


def other_conditions(baseline: Config, config: Config) -> Iterator[InputProblem]:
    """Options that determine an evaluation, apart from the policy, and that differ from the baseline's."""
    theirs = _conditions(baseline)
    for key, value in _conditions(config).items():
        if theirs.get(key) != value:
            got = f"{theirs.get(key)} there, {value} here"
            yield InputProblem(BASELINE, f"{key} differs", got, remedy=f"{key}={theirs.get(key)}")


def _baseline_files(directory: Path, config: Config) -> Iterator[InputProblem]:
    if not evaluation_path(directory, "after").is_file():
        yield InputProblem(BASELINE, "it was not evaluated", str(directory), "a run that has evaluation/after.jsonl.gz")
    if starts(config) or getattr(config.data, "usable", "trust") == "check":
        return  # Its tasks are known only after reference answers have been proved.
    split, domain = config.evaluation.split, domain_of(config)
    recorded = manifest.section(directory, "data") if (directory / manifest.NAME).is_file() else {}
    known = recorded.get(split, {}).get("fingerprint")
    if known and domain is not None and split in domain.sizes() and known != domain.fingerprint(split):
        what = f"it was evaluated on other tasks: those of {split!r} are not the same"
        yield InputProblem(BASELINE, what, str(directory), "a run on the same data")


def _conditions(config: Config) -> Mapping[str, Any]:
    """All options except the policy that determine the evaluation, flat."""
    nodes = {name: asdict(getattr(config, name)) for name in ("evaluation", "data", "verifier", "sandbox")}
    nodes["environment"] = asdict(config.environment) if config.environment else {"_target_": SINGLE_TURN}
    nodes["model"] = {name: getattr(config.model, name) for name in ("max_prompt_tokens", "max_completion_tokens")}
    flat = {f"{node}.{name}": value for node, values in nodes.items() for name, value in values.items()}
    return {key: value for key, value in flat.items() if key not in NEUTRAL}


def store_problems(config: Config) -> Iterator[InputProblem]:
    """Existing files that are no stores, have another version, or keep solutions differently."""
    options = config.solutions
    if options is None:
        return
    keeping = keeping_of(options) if options.action in ("import", "add", "merge") else None
    stores = [("path", options.path, keeping)]
    stores += [("input", options.input, None)] if options.action == "merge" else []
    for name, path, wanted in stores:
        if path and Path(path).exists():
            try:
                SolutionStore(Path(path), wanted, read_only=True, option=f"solutions.{name}").close()
            except InputError as fault:
                yield from fault.problems
