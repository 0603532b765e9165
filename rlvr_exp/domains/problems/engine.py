"""Solves coding problems in stages of reasoning: a solver alone, or a solver whose chains a tester chooses and criticises.

With a tester `samples` chains are one episode; the answer is the program that passes the largest share of the valid tests, among
equals the first that was sampled. A test is valid if the reference passes it. Hidden tests decide success and no choice. A solver
alone has nothing but those: the first program that passes is the answer, else the best score, as of every policy alone.

The file begins with the result of a problem (its row of JSON, its text on a terminal, rates over many); then come the environment
of a tester that chooses, and the engine.
"""

import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import Any, cast

from rlvr_exp.config.compose import compose
from rlvr_exp.config.load import build
from rlvr_exp.config.load import load as load_config
from rlvr_exp.config.model import at_checkpoint
from rlvr_exp.config.needs import weights_missing
from rlvr_exp.config.roles import of_role
from rlvr_exp.config.schema import Config
from rlvr_exp.config.stage_options import Infer
from rlvr_exp.core.errors import InputError
from rlvr_exp.core.statistics import mean_interval
from rlvr_exp.domains.problems.adversarial import Adversarial
from rlvr_exp.domains.problems.options import ADVERSARIAL, SOLVER, TESTER
from rlvr_exp.domains.problems.reasoning import InStages, Reasoning, before
from rlvr_exp.domains.problems.rows import problem_of
from rlvr_exp.domains.problems.tasks import Problems
from rlvr_exp.episodes.environment import Run
from rlvr_exp.episodes.environments import too_long
from rlvr_exp.episodes.episode import Draws, Episode, Turn
from rlvr_exp.episodes.types import rank
from rlvr_exp.evaluation.metrics import Rate
from rlvr_exp.evaluation.paired import difference, in_words
from rlvr_exp.inference.engine import Engine
from rlvr_exp.inference.solution import DECIMALS, MOST_LINES, VERDICT, Solution, Summary, head, reason, strict
from rlvr_exp.launch.inference_inputs import InferenceTask
from rlvr_exp.models.policy import load_policy, load_roles
from rlvr_exp.tasks.base import Candidate, Domain, Task
from rlvr_exp.tasks.completion import without_thoughts
from rlvr_exp.tasks.formats.fields import Fields
from rlvr_exp.tasks.rows import Row
from rlvr_exp.verifiers.base import Verdict, Verifier

WIDTH = 56
"""Characters of the column of outputs; critiques stand right of it."""
MOST_TESTS = 24


@dataclass(frozen=True)
class SampledProgram:
    """The program of a chain and its results."""

    program: str | None
    """None: the chain has no program that can run."""
    pass_rate: float | None
    """The share of the valid tests that it passes; None: none ran."""
    verdict: Verdict | None
    """On the hidden tests, never read by a choice; None: nothing was run."""

    def row(self) -> dict[str, Any]:
        plain = {name: getattr(self.verdict, name, None) for name in VERDICT if name != "log"}
        return {"program": self.program, "pass_rate": _rounded(self.pass_rate), **plain}


@dataclass(frozen=True)
class WrittenTest:
    """A test that the tester wrote."""

    text: str
    """`f(2) == 4`."""
    set: int
    """The number of its set, counted from 0."""
    valid: bool
    """The reference passes it."""
    catches: tuple[int, ...]
    """Indices of the samples whose programs it catches."""


@dataclass(frozen=True)
class ProblemSolution(Solution):
    """The result of a problem; `completion` is the chosen chain's last output, whose tokens and log-probability are its own."""

    sample: int = 0
    """Index of the chosen chain, in the order of sampling."""
    stages: Mapping[str, str] = field(default_factory=dict)
    """The outputs of the chosen chain by stage of reasoning, the code among them."""
    critiques: Mapping[str, str] = field(default_factory=dict)
    """The tester's critique of each, by stage."""
    tests: tuple[WrittenTest, ...] = ()
    """All different tests of all sets."""
    written: tuple[str, ...] = ()
    """Each set as it was drawn."""
    validity: float | None = None
    """Valid tests of all lines, the mean over the sets; None: none ran."""
    samples: tuple[SampledProgram, ...] = ()
    """The program of each chain, in the order of sampling."""
    drawn: Mapping[str, int] = field(default_factory=dict)
    """Tokens of all that was drawn for the problem, by role."""

    @property
    def code(self) -> str | None:
        """The program of the chosen chain; None: the chain has none."""
        return self.program

    @property
    def pass_rate(self) -> float | None:
        """The share of the valid tests that the chosen program passes; None: none ran."""
        return self.samples[self.sample].pass_rate if self.samples else None

    def row(self) -> dict[str, Any]:
        found = {
            "stages": dict(self.stages),
            "critiques": dict(self.critiques),
            "tests": [{**asdict(one), "catches": list(one.catches)} for one in self.tests],
            "written": list(self.written),
            "validity": _rounded(self.validity),
            "pass_rate": _rounded(self.pass_rate),
            "samples": [one.row() for one in self.samples],
            "drawn": dict(self.drawn),
        }
        return {**super().row(), **strict(found)}


def _rounded(rate: float | None) -> float | None:
    return None if rate is None else round(rate, DECIMALS)


def readable_problem(row: Mapping[str, Any]) -> str:
    """The result in a line, then the stages with the critique beside each output, then tests against all samples."""
    first, samples, tests = head(row), row["samples"], row.get("tests", [])
    if len(samples) > 1:
        first += f", sample {row['sample'] + 1} of {len(samples)}"
    if row["pass_rate"] is not None:
        first += f", passes {row['pass_rate']:.0%} of the valid tests"
    lines = [first]
    for stage, output in row["stages"].items():
        left, right = _wrapped(output), _wrapped(row.get("critiques", {}).get(stage, ""))
        lines.append(f"    [{stage}]")
        for place in range(max(len(left), len(right))):
            shown = left[place] if place < len(left) else ""
            said = right[place] if place < len(right) else ""
            lines.append(f"    {shown:<{WIDTH}} | {said}".rstrip() if right else f"    {shown}")
    if why := reason(row):
        lines.append(f"    -> {why}")
    if tests:
        lines.append(f"    [tests] {len(row['written'])} sets, {row['validity']:.0%} of their lines are valid")
    for one in tests[:MOST_TESTS]:
        catches = ", ".join(str(place + 1) for place in one["catches"])
        mark = f"catches {catches}" if catches else "catches none" if one["valid"] else "invalid"
        lines.append(f"    {one['text']}    {mark}")
    if len(tests) > MOST_TESTS:
        lines.append(f"    [{len(tests) - MOST_TESTS} more tests]")
    for number, one in enumerate(samples, 1) if len(samples) > 1 else ():
        rate = f"{one['pass_rate']:.0%} of the valid tests" if one["pass_rate"] is not None else "no tests"
        lines.append(f"    sample {number}: {rate}, hidden tests {one['outcome'] or 'not run'}")
    return "\n".join(lines)


def _wrapped(text: str) -> list[str]:
    """Lines of at most WIDTH characters, none of an empty text; long texts are cut after MOST_LINES of them."""
    wrapper = textwrap.TextWrapper(WIDTH, drop_whitespace=False, replace_whitespace=False, subsequent_indent="  ")
    given = text.rstrip("\n").split("\n") if text else []
    lines = [part for line in given for part in wrapper.wrap(line) or [""]]
    return lines if len(lines) <= MOST_LINES else [*lines[:MOST_LINES], f"[{len(lines) - MOST_LINES} more lines]"]


class Choices(Summary):
    """A `Summary` of rows with `samples`, whose verdicts are those of the hidden tests. A task with a sample or an answer that has no
    verdict is in no rate.

    Args:
        by_tests: the choice does not read the hidden tests, so that it can be wrong.
    """

    def __init__(self, by_tests: bool) -> None:
        super().__init__()
        self._by_tests = by_tests
        self._chosen: dict[str, float] = {}
        """Whether a task's answer is right, by id."""
        self._chance: dict[str, float] = {}
        """The share of its samples that are."""
        self._samples, self._drawn = 1, Counter[str]()

    def add(self, row: Mapping[str, Any]) -> None:
        super().add(row)
        outcomes = [one["outcome"] for one in row["samples"]]
        self._drawn.update(row["drawn"])
        if outcomes and not {None, "no_verdict"} & {*outcomes, row["outcome"]}:
            self._samples = len(outcomes)
            self._chosen[str(row["id"])] = float(row["outcome"] == "passed")
            self._chance[str(row["id"])] = fmean(one == "passed" for one in outcomes)

    def rates(self, attempts: int, samples: int, voted: Sequence[str] = ()) -> dict[str, Rate]:
        """`chosen_at_N`: of the answers that tests chose among N samples; `pass_at_1`: of a sample at random (chance);
        `pass_at_N`: of tasks with a right sample, the most that a choice can reach. Of one sample: the answer's rate alone."""
        if not self._chosen:
            return {}
        of = {"pass_at_1": self._chance}
        if samples > 1:
            chosen = {f"chosen_at_{samples}": self._chosen} if self._by_tests else {}
            reached = {task: float(share > 0) for task, share in self._chance.items()}
            of = {**chosen, **of, f"pass_at_{samples}": reached}
        return {
            name: Rate(*mean_interval([*values.values()]), n=len(values), samples=samples)
            for name, values in of.items()
        }

    def metrics(self) -> dict[str, Any]:
        drawn = {f"tokens/{role}": tokens for role, tokens in sorted(self._drawn.items())}
        return super().metrics() | drawn | self._over_chance()

    def text(self) -> str:
        """The summary, with the gain of the choice."""
        told = [f"; chosen against a sample at random: {in_words(one)}" for one in self._over_chance().values()]
        return super().text() + "".join(told)

    def _over_chance(self) -> dict[str, dict[str, float]]:
        """Chosen minus a sample at random, paired by task; nothing if nothing was chosen."""
        if self._samples == 1 or not self._by_tests:
            return {}
        return {f"difference/chosen_at_{self._samples}": difference(self._chance, self._chosen).to_dict()}


class Answers(InStages):
    """The answers of problems worked out in stages: the programs of the chosen chain, as a `ProblemSolution`."""

    def chosen(self, episode: Episode) -> int:
        """The last output of the chosen chain: the first right one, else the one with the best score."""
        return max(self.in_order(episode), key=lambda index: rank(episode.turns[index].completion))

    def answers(self, episode: Episode) -> list[tuple[int, Turn]]:
        """The programs of the chosen chain, or the output that ended it."""
        end = self.chosen(episode)
        programs = [*reversed([index for index in before(episode, end) if self.is_code(episode, index)]), end]
        found = []
        for number, index in enumerate(programs, 1):
            turn = episode.turns[index]
            if not self.is_code(episode, index):
                candidate = Candidate(None, f"the chain ended at {self.stage_of(episode, index)}")
                turn = replace(turn, completion=replace(turn.completion, candidate=candidate))
            if not too_long(turn.completion):
                found.append((number, turn))
        return found

    def solution(self, found: Solution, episode: Episode, judged: bool) -> ProblemSolution:
        end, order, drawn = self.chosen(episode), self.in_order(episode), Counter[str]()
        for turn in episode.turns:
            drawn[turn.role] += turn.completion.tokens
        return ProblemSolution(
            **vars(found),
            sample=order.index(end),
            stages=self.chain(episode, end),
            samples=tuple(self.sampled(episode, index, judged) for index in order),
            drawn=dict(drawn),
            **self.tester_parts(episode, end),
        )

    def sampled(self, episode: Episode, index: int, judged: bool) -> SampledProgram:
        """The result of the chain that ends with a turn."""
        one = episode.turns[index].completion
        program = one.candidate.text if self.is_code(episode, index) else None
        return SampledProgram(
            program, self.pass_rate(episode, index) if judged else None, one.verdict if judged else None
        )

    def pass_rate(self, episode: Episode, index: int) -> float | None:
        """The share of the valid tests that the program of a turn passes; None without tests."""
        return None

    def tester_parts(self, episode: Episode, end: int) -> dict[str, Any]:
        return {}

    def read(self, row: Mapping[str, Any], judged: bool) -> Task:
        return task_of(row, cast(Problems, self.domain(self.solver)), runs=judged)

    def summary(self) -> Choices:
        return Choices(by_tests=isinstance(self, Solving))

    def in_words(self, row: Mapping[str, Any]) -> str:
        return readable_problem(row)


class Solver(Answers, Reasoning):
    """A solver alone: hidden tests decide which chain is the answer."""


class Solving(Answers, Adversarial):
    """An `Adversarial` in which nothing is learned: the tester's tests choose among the chains, and it criticises the chosen chain.
    Without a verifier no tests are written, and the first chain is chosen."""

    def reset(self, task: Task, draws: Draws, samples: Sequence[int] = (0,)) -> Episode:
        """Without the data's wrong programs: they only measure tests."""
        begun = super().reset(task, draws, samples)
        return replace(begun, given=replace(begun.given, programs=()))

    def examples(self, episode: Episode, index: int) -> tuple[str, ...]:
        return ()  # They measure a chain, and choose nothing.

    def run(self, episode: Episode) -> Run:
        yield from super().run(episode)
        yield [self._critique(episode, index) for index in self._uncriticised(episode)]

    def chosen(self, episode: Episode) -> int:
        """The last output of the chain whose program passes the largest share of the valid tests; among equals one with a program,
        then the first that was sampled."""
        matrix = self.matrix(episode)

        def worth(index: int) -> tuple[float, bool]:
            program = self.program(episode, index)
            return self.opinion(matrix, program) or 0.0, bool(program)

        return max(self.in_order(episode), key=worth)

    def _worth_a_critique(self, episode: Episode) -> list[int]:
        return []  # Only the chosen chain is shown.

    def _uncriticised(self, episode: Episode) -> list[int]:
        """Outputs of the chosen chain, if it has any; the first program before a second attempt is left out."""
        if not (self.critiques and self.tests):
            return []
        end = self.chosen(episode)
        latest = {self.stage_of(episode, index): index for index in (*reversed(before(episode, end)), end)}
        found = []
        for index in latest.values():
            one = episode.turns[index].completion
            usable = one.candidate.text is not None and not one.truncated and not too_long(one)
            if usable and not self.critiques_of(episode, index):
                found.append(index)
        return found

    def _count(self, episode: Episode) -> int:
        """Greedy sets are all the same."""
        return min(1, self.tests) if episode.draws.greedy else self.tests

    def pass_rate(self, episode: Episode, index: int) -> float | None:
        return self.opinion(self.matrix(episode), self.program(episode, index))

    def tester_parts(self, episode: Episode, end: int) -> dict[str, Any]:
        """The critiques of the chain that ends with a turn, and the tests with the samples that they catch."""
        suites, matrix = self.suites(episode), self.matrix(episode)
        programs = [self.program(episode, index) for index in self.in_order(episode)]
        tests = []
        for place, index in enumerate(suites):
            suite = matrix.suites.get(index)
            columns = [(suite.catches.get(one) if suite and one else None) for one in programs]
            valid = suite.valid if suite else ()
            for number, (line, holds) in enumerate(zip(self.lines(episode, index), valid, strict=False)):
                caught = (at for at, column in enumerate(columns) if column and column[number])
                tests.append(WrittenTest(line, place, holds, tuple(caught)))
        critiques = {
            self.stage_of(episode, index): without_thoughts(episode.turns[place].completion.text).strip()
            for index in (*reversed(before(episode, end)), end)
            for place in self.critiques_of(episode, index)
        }
        return {
            "critiques": {stage: text for stage, text in critiques.items() if text},
            "tests": tuple(tests),
            "written": tuple(episode.turns[index].completion.text for index in suites),
            "validity": fmean(one.validity for one in matrix.suites.values()) if matrix.suites else None,
        }


NEVER_RUN: Fields = {"solution": "", "tests": [{"args": [], "expected": None}]}
"""Stands in for the keys that only running a program needs."""


def task_of(values: Fields, domain: Problems, runs: bool = True) -> Task:
    """The task of a row.

    Args:
        runs: something is run; else `text` and `entry_point` are all that a row needs.

    Raises:
        InputError: a key is missing, or has a value that is not allowed.
    """
    given: dict[str, Any] = {**({} if runs else NEVER_RUN), **values}
    return domain.task(problem_of(Row(given, "problem"), str(given.get("split", ""))))


def reasoning_chain(engine: Engine, problem: InferenceTask | Task | Fields) -> ProblemSolution:
    """The outputs of all stages with their critiques; nothing is run, so that `text` and `entry_point` make a row.

    Raises:
        InputError: a row is no problem; names the key.
    """
    return engine.unverified().solve(problem)


def from_checkpoint(
    path: str | Path = "",
    options: Infer | None = None,
    *,
    verifier: Verifier | None = None,
    domain: Problems | None = None,
    environment: Any = None,
    seed: int = 0,
) -> Engine:
    """An engine that works problems out in stages.

    Args:
        path: `step_N/` of a run of two roles, with `solver/` and `tester/`; or a folder of a solver alone. Empty: the embedded solver, with
            the embedded tester if the environment has one.
        options: how a problem is searched; by default greedily, one chain.
        verifier: a `PythonTests` that runs programs and tests; the caller closes it. None: nothing is run.
        domain: words the problems; None: as in the run that wrote the checkpoint, else as the embedded ones.
        environment: options `Adversarial(...)` or `Reasoning()` (rlvr_exp.domains.problems.options); None: as in the run, else by the folder.
        seed: the seed of the draws.

    Raises:
        InputError: no such checkpoint, a damaged one, or options that cannot work; names every problem.
    """
    folder, folders = Path(path) if path else None, {}
    if folder is not None:  # A folder without roles is a solver's.
        both = {role: folder / role for role in (SOLVER, TESTER)}
        folders = both if all(place.is_dir() for place in both.values()) else {SOLVER: folder}
    config = _written(folder, two=len(folders) > 1 or getattr(environment, "_target_", "") == ADVERSARIAL)
    options, node = replace(options or Infer(), verify=verifier is not None), environment or config.environment
    shown = environment_of(node, domain or config.data)
    models = {role: of_role(config, role).model for role in shown.roles}
    if folders:
        models = {role: at_checkpoint(model, str(folders.get(role, folders[SOLVER]))) for role, model in models.items()}
    needed = [need.problem for model in models.values() for need in weights_missing(model)]
    if problems := [*options.problems(), *node.infer_problems(options), *needed]:
        raise InputError(*problems)
    if len(models) > 1:
        policies = load_roles(models, dict.fromkeys(models, ""), seed)
    else:
        policies = {role: load_policy(model, seed) for role, model in models.items()}
    words = shown.domain(shown.solver)
    return Engine(policies, options, models, verifier, words, seed, environment=shown)


def _written(folder: Path | None, two: bool) -> Config:
    """The options of the run that wrote a checkpoint, if there is one and they are of its kind."""
    own = ["environment=adversarial", "roles.tester.model.embedded=tiny_tester"] if two else ["environment=reasoning"]
    fresh = compose(["+stage=infer", "data=problems", *own]).config
    above = list(folder.resolve().parents)[1:3] if folder else []
    run = next((place / "config.yaml" for place in above if (place / "config.yaml").is_file()), None)
    if run is None or folder is None:
        return fresh
    made = load_config(run)
    alike = getattr(made.environment, "_target_", "") == fresh.environment._target_
    found = replace(fresh, data=made.data, model=of_role(made, folder.name).model)
    return replace(found, model=made.model, roles=made.roles, environment=made.environment) if two and alike else found


def environment_of(node: Any, data: Any) -> Answers:
    """The environment of a node, for solving problems without learning.

    Args:
        data: their domain, or its node.

    Raises:
        InputError: the tasks have no stages, or no tests can be written for them.
    """
    shown = Solving if node._target_ == ADVERSARIAL else Solver
    domain = data if isinstance(data, Domain) else build(data)
    return build(replace(node, _target_=f"{shown.__module__}.{shown.__qualname__}"), domain=domain)
