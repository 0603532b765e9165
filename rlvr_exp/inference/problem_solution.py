"""The result of a problem that was worked out in stages, by a solver alone or beside a tester. Plain frozen data, and the same as a
row of JSON."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from rlvr_exp.inference.solution import DECIMALS, VERDICT, Solution, strict
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
