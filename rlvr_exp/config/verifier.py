"""Options of the groups `verifier` and `reward` and of the nodes `sandbox` and `cache`: how candidates are judged, within which
limits, where verdicts are cached, and how a verdict becomes a reward."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from rlvr_exp.config.options import configures, defaults, node, option
from rlvr_exp.core.errors import InputProblem

LEVELS = ("strict", "namespaces", "user", "process")
"""Levels of isolation, strongest first, defined in rlvr_exp/sandbox/isolation/jail.py."""


@dataclass
class Verifier:
    """Options of every verifier's node, a user's own included."""

    max_no_verdict_rate: float = option(0.05, low=0, high=1, rare=True)
    """Share of requests without a verdict past which the run stops with exit 3."""
    validate: int = option(16, low=0)
    """Training tasks whose gold is verified before training; a gold that does not pass stops the run with exit 3."""


@dataclass
class Calls(Verifier):
    """Options of the verifiers that call functions of candidates."""

    case_cpu_s: float = option(0.0, low=0, rare=True)
    """CPU seconds of one case, so that a case that hangs does not affect the others; 0: only the candidate's own
    limit."""
    packages: bool = True
    """Candidates may import the installed packages, never the project; without it, the standard library alone."""


@configures("rlvr_exp.verifiers.python_io.PythonIO")
@dataclass
class PythonIO(Calls):
    """Calls a Python candidate on cases and compares what it returns."""


@configures("rlvr_exp.verifiers.python_tests.PythonTests")
@dataclass
class PythonTests(Calls):
    """Judges tests that are calls: whether a reference passes them, and which programs they catch; and all that python_io and
    pytest judge."""


@dataclass
class OwnLimits(Verifier):
    """Options of the verifiers whose programs need other limits than the sandbox has. 0: the limit of the sandbox."""

    cpu_s: float = option(0.0, low=0)
    """CPU seconds of one candidate, tools included. 0: the sandbox's limit."""
    wall_s: float = option(0.0, low=0)
    """Wall-clock seconds of one candidate. 0: the sandbox's limit."""
    memory_mb: int = option(2048, low=0)
    """Memory of one candidate beyond the worker's own, tools included. 0: the sandbox's limit."""


@configures("rlvr_exp.verifiers.suite.verifier.PytestSuite")
@dataclass
@defaults(cpu_s=10.0, wall_s=30.0)
class PytestSuite(OwnLimits):
    """Runs a pytest suite against a solution."""

    process: str = option("bridged", choices=("bridged", "shared"))
    """bridged: the solution in a process of its own, where nothing of the tests is; shared: in the tests' process,
    without any guard, for code that nobody optimises against its tests. Stages that train reject it."""

    def conflicts(self, config: Any, reads: Callable[[str], bool]) -> Iterator[InputProblem]:
        if self.process == "shared" and reads("optimizer"):
            what = "a solution in the tests' own process can pass without solving, which a policy learns"
            yield InputProblem("verifier.process", what, "shared", "bridged in stages that train", "", "drop it")


@dataclass
class Sandbox:
    """Where untrusted code runs."""

    workers: int = option(0, low=0)
    """Worker processes; 0: as many as the machine bears."""
    level: str = option("auto", choices=("auto", *LEVELS))
    """How candidates are held; auto: the strongest below strict that this machine allows."""
    require: str = option("", choices=("", *LEVELS))
    """The weakest level that a run accepts; empty: any, with a clear warning."""
    cpu_s: float = option(2.0, above=0)
    """CPU seconds of one candidate."""
    wall_s: float = option(10.0, above=0)
    """Wall-clock seconds of one candidate."""
    memory_mb: int = option(512, low=16)
    """Memory of one candidate."""
    output_kb: int = option(1024, low=1, rare=True)
    """Output of one candidate that is kept; more ends it."""


@dataclass
class Cache:
    """Verdicts cached on disk, for this run and others."""

    enabled: bool = True
    """Look verdicts up and write them; without it each run caches its own verdicts alone."""
    path: str = option("", rare=True)
    """Folder; empty: rlvr_exp/verdicts in the user's cache folder."""
    max_mb: int = option(512, low=1, rare=True)
    """Size past which the least recently used verdicts are removed."""


@dataclass
class Term:
    """Options of every term. Weight 0 switches a term off."""

    weight: float = 1.0
    """Factor of the term in the sum; 0: off."""


@configures("rlvr_exp.rewards.terms.CasesPassed")
@dataclass
@defaults(weight=0.2)
class CasesPassed(Term):
    """Share of the cases passed, in [0, 1]."""


@configures("rlvr_exp.rewards.terms.AllPassed")
@dataclass
class AllPassed(Term):
    """1 when every case passed, else 0."""


@configures("rlvr_exp.rewards.terms.Syntax")
@dataclass
@defaults(weight=0.05)
class Syntax(Term):
    """1 when the answer is a valid program."""


@configures("rlvr_exp.rewards.terms.Length")
@dataclass
@defaults(weight=0.05)
class Length(Term):
    """Falls with the length of a correct completion, thoughts and text around its code included."""

    scale_tokens: int = option(200, low=1)
    """Length in tokens over which the term falls."""


@configures("rlvr_exp.rewards.terms.CodeLength")
@dataclass
@defaults(weight=0.05)
class CodeLength(Term):
    """Falls with the length of a correct answer's code, without comments and the text around it."""

    scale_characters: int = option(400, low=1)
    """Length in characters over which the term falls."""


@configures("rlvr_exp.rewards.terms.Severity")
@dataclass
@defaults(weight=0.1)
class Severity(Term):
    """Negative, by how bad the error is."""


@configures("rlvr_exp.rewards.terms.Parses")
@dataclass
@defaults(weight=0.05)
class Parses(Term):
    """1 when the tool parsed the answer, else 0."""


@configures("rlvr_exp.rewards.terms.Resolves")
@dataclass
@defaults(weight=0.1)
class Resolves(Term):
    """1 when names and types of the answer were resolved, else 0."""


@configures("rlvr_exp.rewards.terms.Obligations")
@dataclass
@defaults(weight=0.25)
class Obligations(Term):
    """Share of the proof obligations that were proved, in [0, 1]."""


@configures("rlvr_exp.rewards.compose.Identity")
@dataclass
class Identity:
    """Rewards as they are."""


@configures("rlvr_exp.rewards.compose.PerTask")
@dataclass
class PerTask(Identity):
    """Rewards less the mean of their task in the batch, divided by its deviation."""


@configures("rlvr_exp.rewards.compose.RunningScale")
@dataclass
class RunningScale:
    """Rewards divided by their running deviation; its state is part of a checkpoint."""


@configures("rlvr_exp.rewards.compose.Reward")
@dataclass
class Reward:
    """A weighted sum of named terms, then a normaliser."""

    terms: dict[str, Any] = node(base=Term)
    """The terms by name."""
    normalizer: Any = node()
    """Applied to the sum."""
    ordered: bool = True
    """No wrong answer may earn as much as a right one, as the terms' ranges show before anything is trained; false for rewards that
    are not about right and wrong, such as likeness to a teacher."""
