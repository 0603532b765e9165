"""Options of the groups `verifier` and `reward` and of the nodes `sandbox` and `cache`: judgement of candidates, limits,
cached verdicts, and rewards."""

import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rlvr_exp.config.options import configures, defaults, node, option
from rlvr_exp.core.errors import InputProblem
from rlvr_exp.core.ray_cluster import INSTALL, not_installed

LEVELS = ("strict", "namespaces", "user", "process")
"""Levels of isolation, strongest first, defined in rlvr_exp/sandbox/isolation/jail.py."""


@dataclass
class Verifier:
    """Options of every verifier's node, a user's own included."""

    max_no_verdict_rate: float = option(0.05, low=0, high=1, rare=True)
    """Largest share of requests without a verdict. Above it, the run stops with exit code 3."""
    validate: int = option(16, low=0)
    """Number of training tasks whose reference answers are verified before training. If one fails, the run stops with exit
    code 3."""


@dataclass
class Pooled(Verifier):
    """Options of the verifiers that can judge on many machines."""

    pool: str = option("local", choices=("local", "ray"))
    """Machines that judge. local: this machine. ray: every node of a Ray cluster, each with sandbox.workers workers."""
    address: str = option("", rare=True)
    """HOST:PORT of the Ray cluster. Empty: the variable RAY_ADDRESS, else the cluster that runs on this machine, else a new one."""

    def missing(self) -> Iterator[tuple[InputProblem, str]]:
        """The package ray, if the option needs it and it is not installed, and the command that installs it."""
        if self.pool == "ray" and (problem := not_installed("verifier.pool")):
            yield problem, INSTALL

    def conflicts(self, config: Any, reads: Callable[[str], bool]) -> Iterator[InputProblem]:
        if self.address and self.pool != "ray":
            yield InputProblem(
                "verifier.address", "only a Ray cluster has one", self.address, "", "", "verifier.pool=ray"
            )


@dataclass
class Calls(Pooled):
    """Options of the verifiers that call functions of candidates."""

    case_cpu_s: float = option(0.0, low=0, rare=True)
    """CPU seconds of one case, so that a case that hangs does not affect the others. 0: only the limit of the candidate."""
    packages: bool = True
    """Candidates may import installed packages, but never this project. false: the standard library only."""


@configures("rlvr_exp.verifiers.python_io.PythonIO")
@dataclass
class PythonIO(Calls):
    """Calls a Python candidate on cases and compares the returned values."""


@configures("rlvr_exp.verifiers.python_tests.PythonTests")
@dataclass
class PythonTests(Calls):
    """Judges tests that are calls: whether a reference passes them, and the programs that they catch. It also judges the
    problems of python_io and pytest."""


@dataclass
class OwnLimits(Pooled):
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
    """bridged: the solution runs in its own process, apart from the tests. shared: it runs in the process of the tests,
    without guards, and stages that train refuse this."""

    def conflicts(self, config: Any, reads: Callable[[str], bool]) -> Iterator[InputProblem]:
        yield from super().conflicts(config, reads)
        if self.process == "shared" and reads("optimizer"):
            what = "a solution in the tests' own process can pass without solving, which a policy learns"
            yield InputProblem("verifier.process", what, "shared", "bridged in stages that train", "", "drop it")


@dataclass
class Sandbox:
    """Limits and isolation of untrusted code."""

    workers: int = option(0, low=0)
    """Worker processes. 0: as many as the machine can run."""
    level: str = option("auto", choices=("auto", *LEVELS))
    """Isolation of candidates. auto: the strongest level below strict that this machine supports."""
    require: str = option("", choices=("", *LEVELS))
    """Weakest isolation that the run accepts. Empty: any, with a warning."""
    cpu_s: float = option(2.0, above=0)
    """CPU seconds of one candidate."""
    wall_s: float = option(10.0, above=0)
    """Wall-clock seconds of one candidate."""
    memory_mb: int = option(512, low=16)
    """Memory of one candidate."""
    output_kb: int = option(1024, low=1, rare=True)
    """Largest output of a candidate in KB. A candidate that prints more is stopped."""


@dataclass
class Cache:
    """Verdicts cached on disk, for this run and others."""

    enabled: bool = True
    """Read and write verdicts of earlier runs. false: each run caches only its own verdicts."""
    path: str = option("", rare=True)
    """Folder of the cache. Empty: rlvr_exp/verdicts in your cache folder."""
    max_mb: int = option(512, low=1, rare=True)
    """Largest size of the cache in MB. Above it, the verdicts that were not used for the longest time are removed."""


@dataclass
class Term:
    """Options of every term. Weight 0 switches a term off."""

    weight: float = 1.0
    """Factor of the term in the sum. 0 disables the term."""


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


@configures("rlvr_exp.rewards.terms.Random")
@dataclass
class Random(Term):
    """0 or 1 with equal probability, whatever the answer."""


@configures("rlvr_exp.rewards.lint.Ruff")
@dataclass
@defaults(weight=0.1)
class Ruff(Term):
    """Minus the findings of Ruff per line of the answer, at least -1."""

    select: list[str] = option(["E", "F", "W", "B"])
    """Rules of Ruff that count, by code or prefix."""

    def fault(self) -> str:
        """What Ruff has against the rules; empty if it takes them."""
        done = subprocess.run(ruff_check(self.select), input=b"", capture_output=True, check=False)
        return done.stderr.decode(errors="replace").strip().partition("\n")[0] if done.returncode else ""


def ruff_check(select: Sequence[str]) -> list[str]:
    """The command that checks a program from standard input, without the settings of whatever folder the run is started in and without
    comments that hide findings."""
    options = ["--isolated", "--no-cache", "--ignore-noqa", "--output-format=json", f"--select={','.join(select)}"]
    return [sys.executable, "-m", "ruff", "check", *options, "--stdin-filename=answer.py", "-"]


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
    """Terms by name."""
    normalizer: Any = node()
    """Normalization of the sum."""
    ordered: bool = True
    """Check before training, from the ranges of the terms, that no incorrect answer can earn as much as a correct one.
    false: for rewards that do not depend on correctness, such as similarity to a teacher."""
