"""Options of the nodes `run` and `evaluation`, and of nodes that exist under one stage: evaluate, compare, verify, validate,
report, rescore."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlvr_exp.config.environment import SINGLE_TURN
from rlvr_exp.config.options import option
from rlvr_exp.config.sampling import Drawing
from rlvr_exp.config.scales import BITS, EXCESS_CODE, read_voted, voted_metrics
from rlvr_exp.config.select import Select
from rlvr_exp.core.errors import InputProblem


@dataclass
class Checkpoint:
    """When the state of training is written."""

    every_steps: int = option(50, low=1)
    """Steps between checkpoints; the last step always has one."""
    keep: int = option(3, low=1)
    """Newest checkpoints kept, next to the best checkpoint."""


@dataclass
class Probe:
    """Whether the weights that sample are the weights that train: fixed sequences are scored by both, and a run in which
    the two are apart stops with the cause."""

    every_steps: int = option(25, low=0)
    """Steps between probes, next to those at the start and after the first step; 0: none at all."""
    tolerance: float = option(0.0, low=0)
    """Mean difference of log-probabilities that is taken for rounding; 0: 0.001 where the policy computes in 32 bits, 0.1 in
    fewer."""


AUTO = "auto"
"""The value of `run.resume` that resumes where there is a checkpoint."""


@dataclass
class Guards:
    """What watches over a run."""

    max_skipped: int = option(5, low=0)
    """Updates in a row that may be skipped because their loss, gradient or rewards are no finite numbers; one more
    ends the run with exit 3."""
    step_deadline_s: float = option(3600.0, low=0)
    """Seconds without a finished step, or a sign of progress elsewhere, past which the phase and the stacks of all
    threads are written to log.txt and standard error; 0: never."""
    stop_past_deadline: bool = False
    """Past that deadline also end the run, with exit 3."""
    trend_steps: int = option(40, low=0)
    """Steps over which the growth of memory, open files and the disk's use is measured; a run that would use one of
    them up before its last step says so once. 0: never."""


@dataclass
class Run:
    """The run itself."""

    dir: str = ""
    """Run directory; empty: outputs/DATE/TIME_STAGE, below multirun/ for a sweep."""
    resume: str = ""
    """A run directory to resume, from its newest sound checkpoint; auto: run.dir where it holds one, and a new run
    where it holds none; empty: a new run."""
    dry: bool = False
    """Compose, check and print the plan; run nothing."""
    trial: bool = False
    """Measure half a minute of the configured run on this machine, and say what the whole would take; keeps nothing."""
    inline: bool = False
    """Run in this process, for a debugger."""
    log_every_steps: int = option(1, low=1)
    """Steps between rows of metrics."""
    checkpoint: Checkpoint = field(default_factory=Checkpoint)
    """When the state of training is written."""
    select: Select = field(default_factory=Select)
    """Which checkpoint is the best one, and when training stops early."""
    probe: Probe = field(default_factory=Probe)
    """When the sampling engine is compared with the trainer."""
    guards: Guards = field(default_factory=Guards)
    """What stops a run, or warns."""
    searchpath: list[str] = field(default_factory=list)
    """Folders with further YAML and the classes it names; written by hydra.searchpath=[DIR,...]."""

    def problems(self) -> list[InputProblem]:
        if self.resume == AUTO and not self.dir:
            remedy = "run.dir=DIR, the same each time"
            return [InputProblem("resume", "auto needs a run directory to look in", AUTO, "", "", remedy)]
        if self.resume not in ("", AUTO) and self.dir and Path(self.resume).resolve() != Path(self.dir).resolve():
            what = "resumes in the directory that it names"
            return [InputProblem("resume", what, f"{self.resume}, with run.dir={self.dir}", "", "", "drop run.dir")]
        return []


@dataclass
class Evaluation(Drawing):
    """How success is measured, before and after training and by +stage=evaluate. Rates are compared at one temperature and
    under the same filters; greedy answers take neither."""

    split: str = "test"
    """Split of the data that is held out for it."""
    tasks: int = option(400, low=0)
    """Tasks evaluated; 0: all of the split."""
    skip: int = option(0, low=0)
    """Tasks of the split left out ahead of them, so that runs can be measured on others than each other."""
    samples: int = option(8, low=1)
    """Completions sampled for each task."""
    greedy: bool = True
    """Also answer greedily."""
    vote: int = option(0, low=0)
    """Answers that a held-back input may have by a vote of the sampled programs, weighted by the shown pairs that they have
    right; ARC allows 2; 0: no vote."""
    excess_code: bool = False
    """Also measure what passing edits add that their tests do not run: each program runs a second time, under coverage."""
    bits: bool = False
    """Also measure the bits a character that the gold answers cost under the policy, which compare policies with other
    tokenizers; less is better."""
    batch_size: int = option(512, low=1)
    """Completions generated at once, all of a task's together."""
    remember: str = ""
    """Folder in which measurements before training are kept for other runs of the same policy on the same tasks, which then
    take them from there; a study gives its runs one. Empty: each run measures for itself."""

    @property
    def further(self) -> tuple[str, ...]:
        """Names of the rates besides those of every evaluation: of the vote, of excess code, and of golds."""
        excess, bits = EXCESS_CODE if self.excess_code else (), (BITS,) if self.bits else ()
        return voted_metrics(self.samples, self.vote) + excess + bits

    def lacks(self, metric: str) -> str:
        """The word by which a rate would be measured that these options leave out; '' where they do not."""
        name = metric.rpartition("/")[2]  # Of a role it stands behind the role's name.
        if name in self.further:
            return ""
        if voted := read_voted(name):
            samples, answers = voted
            return f"evaluation.vote={answers}" if samples == self.samples else f"evaluation.samples={samples}"
        unmeasured = {
            "pass_at_8": "" if self.samples >= 8 else "evaluation.samples=8",
            "pass_at_1_greedy": "" if self.greedy else "evaluation.greedy=true",
            BITS: "evaluation.bits=true",
            **dict.fromkeys(EXCESS_CODE, "evaluation.excess_code=true"),
        }
        return unmeasured.get(name, "")

    def problems(self) -> list[InputProblem]:
        return self.drawing_problems()

    def conflicts(self, config: Any, reads: Callable[[str], bool]) -> Iterator[InputProblem]:
        turns = getattr(config.environment, "_target_", SINGLE_TURN)
        if self.vote and reads("environment") and turns != SINGLE_TURN:
            what = "a second turn has seen what was expected, which a vote must not"
            got, remedy = str(self.vote), "environment=single_turn, or evaluation.vote=0"
            yield InputProblem("evaluation.vote", what, got, "0 with several turns", "", remedy)


@dataclass
class Evaluate:
    """Options of +stage=evaluate."""

    baseline: str = ""
    """Run directory to compare with, paired by task; empty: none."""
    cascade: str = ""
    """A checkpoint of +stage=cascade, whose writer and annotator are measured together; model: both roles by the model
    node's own weights; empty: one policy alone."""
    attempts: int = option(1, low=1, high=8)
    """With a cascade: attempts to annotate a body, each after the first with the feedback on the previous attempt."""

    def problems(self) -> list[InputProblem]:
        if self.attempts == 1 or self.cascade:
            return []
        return [
            InputProblem(
                "attempts",
                "are those of a cascade's annotator",
                str(self.attempts),
                "1",
                "",
                "evaluate.cascade=CHECKPOINT",
            )
        ]


@dataclass
class Compare:
    """Options of +stage=compare."""

    runs: list[str] = field(default_factory=list)
    """Run directories to lay side by side."""

    def problems(self) -> list[InputProblem]:
        if len(self.runs) >= 2:
            return []
        return [
            InputProblem(
                "runs",
                "nothing to compare",
                str(self.runs),
                "two or more run directories",
                remedy="compare.runs=[RUN,RUN]",
            )
        ]


@dataclass
class Validate:
    """Options of +stage=validate."""

    split: str = ""
    """Split of the data; empty: all of them."""
    mutants: int = option(4, low=0)
    """Mutants of each gold that are judged, spread over the kinds of mutation."""
    universal: str = option("plain", choices=("none", "plain", "all"))
    """Fixed answers that know nothing of a task: `plain` values; `all`, with objects that lie and code that attacks."""
    require: float = option(1.0, low=0, high=1)
    """Share of golds that must pass; below it the run ends with exit 3."""
    answers: str = ""
    """A policy's answers to the tasks, as +stage=infer writes them: they are judged in place of golds and wrong programs."""


SAMPLES = "samples"
"""The value of `verify.input` that stands for the rows that come with the package."""


@dataclass
class Verify:
    """Options of +stage=verify."""

    input: str = ""
    """Candidates, one JSON object a line, gzip allowed; `samples`: the rows of this verifier that come with rlvr_exp."""
    output: str = ""
    """Verdicts, one JSON object a line, in the input's order; empty: verdicts.jsonl in the run directory."""
    max_row_mb: int = option(64, low=1)
    """A longer line of the input is no_verdict."""

    def problems(self) -> list[InputProblem]:
        if self.output.endswith(".gz"):
            return [InputProblem("output", "is written as plain text, so that it can be resumed", self.output)]
        if self.output and Path(self.input).resolve() == Path(self.output).resolve():
            return [InputProblem("output", "is the input", self.output, "another file")]
        return []


@dataclass
class Report:
    """Options of +stage=report."""

    run: str = ""
    """Run directory whose report.html is rewritten; nothing else in it is touched."""
    beside: list[str] = field(default_factory=list)
    """Further run directories, plotted on the same page."""


@dataclass
class Rescore:
    """Options of +stage=rescore."""

    run: str = ""
    """Run directory whose rollouts are verified a second time; its data, verifier and sandbox are inherited, except for
    options that are given here."""
    output: str = ""
    """Old and new verdicts, one JSON object a line, in the order of the rollouts; empty: rescored.jsonl in this run's
    own directory."""

    def problems(self) -> list[InputProblem]:
        if self.output.endswith(".gz"):
            return [InputProblem("output", "is written as plain text, so that it can be resumed", self.output)]
        return []
