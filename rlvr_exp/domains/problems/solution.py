"""The result of a problem that was worked out in stages: plain data and its row of JSON, its text on a terminal, and rates over many."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import fmean
from typing import Any

from rlvr_exp.core.statistics import mean_interval
from rlvr_exp.evaluation.metrics import Rate
from rlvr_exp.evaluation.paired import difference, in_words
from rlvr_exp.inference.solution import DECIMALS, MOST_LINES, VERDICT, Solution, Summary, head, reason, strict
from rlvr_exp.verifiers.base import Verdict


@dataclass(frozen=True)
class SampledProgram:
    """What a chain came to."""

    program: str | None
    """None: it did not come to one that can run."""
    pass_rate: float | None
    """The share of the valid tests that it passes; None: none ran."""
    verdict: Verdict | None
    """On the hidden tests, which no choice reads; None: nothing was run."""

    def row(self) -> dict[str, Any]:
        plain = {name: getattr(self.verdict, name, None) for name in VERDICT if name != "log"}
        return {"program": self.program, "pass_rate": _rounded(self.pass_rate), **plain}


@dataclass(frozen=True)
class WrittenTest:
    """A test that the tester wrote."""

    text: str
    """`f(2) == 4`."""
    set: int
    """The set that it is of, counted from 0."""
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
    """What the tester says of each, by stage."""
    tests: tuple[WrittenTest, ...] = ()
    """All different tests of all sets."""
    written: tuple[str, ...] = ()
    """Each set as it was drawn."""
    validity: float | None = None
    """Valid tests of all lines, the mean over the sets; None: none ran."""
    samples: tuple[SampledProgram, ...] = ()
    """What each chain came to, in the order of sampling."""
    drawn: Mapping[str, int] = field(default_factory=dict)
    """Tokens of all that was drawn for the problem, by role."""
    seconds: float = field(default=0.0, compare=False)
    """Wall seconds of the batch that it was solved in."""

    @property
    def code(self) -> str | None:
        """The program of the chosen chain; None: it came to none."""
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


WIDTH = 56
"""Characters of the column of outputs; critiques stand right of it."""
MOST_TESTS = 24


def readable_problem(row: Mapping[str, Any]) -> str:
    """The result in a line, then the stages with the critique beside each output, then tests against all samples."""
    first = head(row)
    if len(row["samples"]) > 1:
        first += f", sample {row['sample'] + 1} of {len(row['samples'])}"
    if row["pass_rate"] is not None:
        first += f", passes {row['pass_rate']:.0%} of the valid tests"
    why = reason(row)
    parts = [first, *_stages(row), *([f"    -> {why}"] if why else []), *_tests(row), *_samples(row["samples"])]
    return "\n".join(parts)


def _stages(row: Mapping[str, Any]) -> Iterator[str]:
    for stage, output in row["stages"].items():
        yield f"    [{stage}]"
        left = _wrapped(output, WIDTH)
        right = _wrapped(row.get("critiques", {}).get(stage, ""), WIDTH)
        for place in range(max(len(left), len(right))):
            said = right[place] if place < len(right) else ""
            shown = left[place] if place < len(left) else ""
            yield f"    {shown:<{WIDTH}} | {said}".rstrip() if right else f"    {shown}"


def _wrapped(text: str, width: int) -> list[str]:
    """Lines of at most so many characters, none of an empty text; long texts are cut after MOST_LINES of them."""
    if not text:
        return []
    lines = [part for line in text.rstrip("\n").split("\n") for part in textwrap.wrap(line, width, **_KEEP) or [""]]
    return lines if len(lines) <= MOST_LINES else [*lines[:MOST_LINES], f"[{len(lines) - MOST_LINES} more lines]"]


_KEEP: Mapping[str, Any] = {"drop_whitespace": False, "replace_whitespace": False, "subsequent_indent": "  "}


def _tests(row: Mapping[str, Any]) -> Iterator[str]:
    tests = row.get("tests", [])
    if tests:
        yield f"    [tests] {len(row['written'])} sets, {row['validity']:.0%} of their lines are valid"
    for one in tests[:MOST_TESTS]:
        catches = ", ".join(str(place + 1) for place in one["catches"])
        mark = f"catches {catches}" if catches else "catches none" if one["valid"] else "invalid"
        yield f"    {one['text']}    {mark}"
    if len(tests) > MOST_TESTS:
        yield f"    [{len(tests) - MOST_TESTS} more tests]"


def _samples(samples: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Of each sample what it passes, where there are several."""
    for number, one in enumerate(samples, 1) if len(samples) > 1 else ():
        rate = f"{one['pass_rate']:.0%} of the valid tests" if one["pass_rate"] is not None else "no tests"
        yield f"    sample {number}: {rate}, hidden tests {one['outcome'] or 'not run'}"


class Choices(Summary):
    """A `Summary` of rows with `samples`, whose verdicts are those of the hidden tests. A task with a sample or an answer that has no
    verdict is in no rate.

    Args:
        by_tests: what chooses are not the hidden tests themselves, so that the choice can be wrong.
    """

    def __init__(self, by_tests: bool) -> None:
        super().__init__()
        self._by_tests = by_tests
        self._chosen: dict[str, float] = {}
        """Whether a task's answer is right, by id."""
        self._chance: dict[str, float] = {}
        """The share of its samples that are."""
        self._samples, self._drawn = 1, dict[str, int]()

    def add(self, row: Mapping[str, Any]) -> None:
        super().add(row)
        outcomes = [one["outcome"] for one in row["samples"]]
        for role, tokens in row["drawn"].items():
            self._drawn[role] = self._drawn.get(role, 0) + tokens
        if outcomes and not {None, "no_verdict"} & {*outcomes, row["outcome"]}:
            self._samples = len(outcomes)
            self._chosen[str(row["id"])] = float(row["outcome"] == "passed")
            self._chance[str(row["id"])] = fmean(one == "passed" for one in outcomes)

    def rates(self, attempts: int, samples: int, voted: Sequence[str] = ()) -> dict[str, Rate]:
        """`chosen_at_N`: of the answers that tests chose among N samples; `pass_at_1`: of a sample at random, which is chance;
        `pass_at_N`: of tasks with a right sample, which is the most that a choice can reach. One sample: the answer's alone."""
        if not self._chosen:
            return {}
        of = {"pass_at_1": self._chance}
        if samples > 1:
            chosen = {f"chosen_at_{samples}": self._chosen} if self._by_tests else {}
            reached = {task: float(share > 0) for task, share in self._chance.items()}
            of = {**chosen, **of, f"pass_at_{samples}": reached}
        return {name: _rate([*values.values()], samples) for name, values in of.items()}

    def metrics(self) -> dict[str, Any]:
        drawn = {f"tokens/{role}": tokens for role, tokens in sorted(self._drawn.items())}
        return super().metrics() | drawn | self._over_chance()

    def text(self) -> str:
        """With what the choice is worth."""
        told = [f"; chosen against a sample at random: {in_words(one)}" for one in self._over_chance().values()]
        return super().text() + "".join(told)

    def _over_chance(self) -> dict[str, dict[str, float]]:
        """Chosen minus a sample at random, paired by task; nothing where nothing was chosen."""
        if self._samples == 1 or not self._by_tests:
            return {}
        return {f"difference/chosen_at_{self._samples}": difference(self._chance, self._chosen).to_dict()}


def _rate(values: Sequence[float], samples: int) -> Rate:
    return Rate(*mean_interval(values), n=len(values), samples=samples)
