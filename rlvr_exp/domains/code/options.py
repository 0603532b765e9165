"""Options of the code domain: `data=code`, `benchmark=agreement` and `benchmark=evalplus`."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from rlvr_exp.config.benchmark import Benchmark, FromPath
from rlvr_exp.config.data import Shots, SplitData
from rlvr_exp.config.names import near_path
from rlvr_exp.config.options import JUDGES, configures, option
from rlvr_exp.config.stage_options import Mutated
from rlvr_exp.core.errors import InputProblem

CODE_SETS = (
    "human_eval",
    "human_eval_plus",
    "mbpp",
    "mbpp_plus",
    "canitedit",
    "humanevalpack",
    "edit_eval",
    "quixbugs",
    "kodcode",
    "bigcodebench",
    "livecodebench",
    "apps",
    "taco",
    "rows",
)
"""The sets that rlvr_exp.tasks.code_sets reads; rows: a user's own."""


@dataclass
class CodePrompt(Shots):
    """The wording of a coding task."""


@configures("rlvr_exp.domains.code.tasks.Code")
@dataclass
class Code(SplitData):
    """Programs to write, to repair and to edit, from public sets in their own formats or rows of your own; `path` is
    needed."""

    set: str = option("auto", choices=("auto", *CODE_SETS))
    """The set to read if a folder has several; auto: recognised by its rows or folders."""
    instruction: str = option("descriptive", choices=("descriptive", "lazy", "both"))
    """The style of CanItEdit's instructions; both: each problem gives two tasks."""
    judge: str = "pytest"
    """Form of the problems: pytest or python_io, or the path of a verifier's class that names one of them."""
    draw_splits: bool = True
    """Draw missing splits from the splits of the set. false: use only its own splits, so that a set of one split is all
    `test`."""
    prompt: CodePrompt = field(default_factory=CodePrompt)
    """The wording of a task."""
    weak: bool = False
    """Keep tasks that a program solves by returning one fixed value or an argument. By default they are left out."""

    def problems(self) -> list[InputProblem]:
        if self.path:
            return super().problems()
        remedy = "data.path=DIR, a folder or file of one of the sets in its own format, or of rows of your own (docs/own_problems.md)"
        remedy += "; data=problems has an embedded corpus"
        return [InputProblem("path", "no code set comes with rlvr_exp", "nothing", ", ".join(CODE_SETS), "", remedy)]


@configures("rlvr_exp.domains.code.agreement.measure")
@dataclass
class Agreement(Benchmark):
    """Verdicts on random pairs of an honest and a wrong program against plain Python, by the run's seed."""

    reads = JUDGES
    pairs: int = option(300, low=1)
    """Pairs of programs."""


@configures("rlvr_exp.domains.code.evalplus.measure")
@dataclass
class EvalPlus(FromPath, Mutated):
    """Verdicts on reference solutions, their mutants and completions against those of the package evalplus. It executes
    programs without a sandbox. `path` is its file of HumanEval+ or MBPP+ tasks."""

    reads = (*JUDGES, "data")
    completions: list[str] = option([])
    """Run directories of +stage=evaluate, or files of JSON lines with `task` and `completion`; empty: none."""
    python: str = ""
    """Python interpreter that has evalplus, of an environment of its own; empty: that of this run."""
    input_s: float = option(1.0, above=0)
    """EvalPlus's wall-clock limit for one input, or four times the reference's time; 1 is EvalPlus's default. Raise it on a
    busy machine."""
    require: float = option(0.998, low=0, high=1)
    """Smallest share of programs with the same outcome. Below it the run ends with exit code 3."""

    @property
    def interpreter(self) -> str:
        return self.python or sys.executable

    def version(self) -> str:
        """The version of evalplus; empty if the interpreter does not have it or does not start."""
        program = "from importlib.metadata import version; print(version('evalplus'))"
        try:
            done = subprocess.run([self.interpreter, "-c", program], capture_output=True, text=True, check=True)
        except (OSError, subprocess.CalledProcessError):
            return ""
        return done.stdout.strip()

    def missing(self) -> Iterator[tuple[InputProblem, str]]:
        """Problems of files and packages that are missing, each with a command that gets it, if there is one."""
        for place, name in enumerate(self.completions):
            if not (Path(name).is_file() or (Path(name) / "evaluation").is_dir()):
                where, allowed = (
                    f"benchmark.completions[{place}]",
                    "a run directory of +stage=evaluate, or a file of JSON lines",
                )
                yield InputProblem(where, "not there", name, allowed, near_path(name), "correct the path"), ""
        if not self.version():
            command = "pip install 'rlvr_exp[evalplus]'"
            remedy = f"{command}, or benchmark.python=PYTHON of an environment that has it"
            yield (
                InputProblem("benchmark.python", "evalplus is not installed", self.interpreter, "", "", remedy),
                command,
            )
