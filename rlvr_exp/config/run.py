"""Options of the nodes `run`, `tracking` and `evaluation`."""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rlvr_exp.config.algorithm import Drawing
from rlvr_exp.config.data import SINGLE_TURN
from rlvr_exp.config.options import configures, option
from rlvr_exp.config.roles import team_node
from rlvr_exp.core.errors import InputProblem
from rlvr_exp.core.measures import BITS, EXCESS_CODE, read_voted, voted_metrics

MEASURED = ("held_out/pass_at_1", "held_out/pass_at_1_greedy")
"""Verified success on held-out tasks, measured every so many steps; every other metric is part of the rows anyway."""
PLUS = re.compile(r"\s*\+\s*")
TERM = re.compile(r"(?:(?P<weight>-?\d+(?:\.\d+)?)\s*\*\s*)?(?P<name>[^\s*+]+)")
"""A term of a weighted sum of metrics."""
SHARE = 0.1
"""Most completions of the `times` measurements, as a share of those that the run samples to learn from."""
FEWEST = 16
"""Tasks that a measurement must have, or there are fewer measurements: the best of a handful of tasks is chance."""


@dataclass
class Select:
    """Which checkpoint `best` names, and when training stops without a better one: the same keys in every stage that
    trains. A run with a best checkpoint ends with its weights."""

    metric: str = MEASURED[0]
    """What decides: held_out/pass_at_1 or held_out/pass_at_1_greedy, verified success on tasks of `split`, or any other name
    that rows of metrics have; or a weighted sum of names, such as 0.7 * reward/mean + 0.3 * held_out/pass_at_1."""
    mode: str = option("max", choices=("max", "min"), rare=True)
    """Whether more or less of it is better."""
    patience: int = option(0, low=0)
    """Values in a row that are no better than the best after which training stops; 0: it never stops early."""
    every_steps: int = option(0, low=0)
    """Steps between measurements of held-out success, next to that at the last step; 0: as often as `times` says."""
    times: int = option(0, low=0)
    """Without every_steps: measurements of held-out success, evenly over the run; fewer, and of fewer tasks, where they
    would sample more than a tenth of what the run learns from; 0: it is not measured in training."""
    split: str = option("dev", rare=True)
    """Split that it is measured on, which is neither trained on nor used for the reported success."""
    tasks: int = option(64, low=1, rare=True)
    """Tasks of each measurement, always the same tasks."""
    samples: int = option(4, low=1, rare=True)
    """Completions sampled for each, and a greedy completion where evaluation.greedy is set."""
    restore: bool = option(True, rare=True)
    """The run ends with the weights of its best step; false: with those of its last."""

    @property
    def active(self) -> bool:
        """A best checkpoint is looked for."""
        return self.every_steps > 0 or not self._only_measured

    @property
    def measures(self) -> bool:
        """Held-out success is to be measured during training."""
        return self.every_steps > 0 or (self.times > 0 and any(name in MEASURED for name in self.weights))

    @property
    def weights(self) -> dict[str, float]:
        """The metrics whose weighted sum decides, each with its weight."""
        terms = [TERM.fullmatch(term) for term in PLUS.split(self.metric.strip())]
        return {term["name"]: float(term["weight"] or 1) for term in terms if term}

    @property
    def _only_measured(self) -> bool:
        return all(name in MEASURED for name in self.weights)

    def value(self, row: Mapping[str, float | None]) -> float | None:
        """What decides, by a row of metrics; None where it has not all of it, or not as a finite number."""
        parts = [(weight, row.get(name)) for name, weight in self.weights.items()]
        values = [weight * value for weight, value in parts if value is not None]
        return sum(values) if len(values) == len(parts) else None

    def problems(self) -> list[InputProblem]:
        return list(self._without_effect())

    def _without_effect(self) -> Iterator[InputProblem]:
        if self.patience and not self.active and not self.measures:
            remedy = "run.select.every_steps=N, or another run.select.metric"
            yield InputProblem(
                "patience", "nothing is measured to be patient with", str(self.patience), "0", "", remedy
            )
        if unread := [term for term in PLUS.split(self.metric.strip()) if not TERM.fullmatch(term)]:
            what, allowed = "is no metric, and no weight * metric", "NAME, or a sum such as 0.7 * NAME + 0.3 * NAME"
            yield InputProblem("metric", what, ", ".join(map(repr, unread)), allowed)
        for name in self.weights:
            if name not in MEASURED and name.startswith("held_out/pass_at"):
                yield InputProblem("metric", "is not measured in training", name, ", ".join(MEASURED), MEASURED[0])


def planned(config: Any) -> Select:
    """`run.select` with its measurements as steps and tasks: `times` is 0, and so is `every_steps` where a run is too short
    for two measurements of `FEWEST` tasks. A function of the configuration alone: a resumed run measures at the same
    steps."""
    wanted, steps = config.run.select, config.algorithm.max_steps
    if wanted.every_steps or not wanted.measures:
        return replace(wanted, times=0)
    answers = wanted.samples + config.evaluation.greedy
    affordable = SHARE * steps * _sampled(config) / answers
    times = min(wanted.times, steps, affordable // min(FEWEST, wanted.tasks))
    if times < 2:
        return replace(wanted, times=0)
    tasks = min(wanted.tasks, affordable // times)
    return replace(wanted, times=0, every_steps=math.ceil(steps / times), tasks=int(tasks))


def _sampled(config: Any) -> float:
    """Completions sampled in a step, on average; of a team those of its last role, as each of its held-out answers is one. Imitation
    samples none, and measures as often as it is asked to."""
    algorithm, team = config.algorithm, team_node(config)
    if not hasattr(algorithm, "prompts_per_step"):
        return math.inf
    uses = getattr(algorithm, "iterations", 1) * getattr(algorithm, "minibatches", 1)
    return algorithm.prompts_per_step * algorithm.group_size * (team.completions if team else 1) / uses


@configures("rlvr_exp.records.tracking.Files")
@dataclass
class Files:
    """The run directory's files alone."""


@dataclass
class Viewer:
    """Options of every viewer."""

    samples: int = option(4, low=0)
    """Samples of each logged step shown with their verdicts: the best and the worst paid, then others by chance."""


@configures("rlvr_exp.training.tensorboard.TensorBoard")
@dataclass
class TensorBoard(Viewer):
    """TensorBoard event files in the run directory."""


@configures("rlvr_exp.records.tracking.WandB")
@dataclass
class WandB(Viewer):
    """Weights & Biases."""

    project: str = "rlvr_exp"
    """Project that the run appears in."""
    mode: str = option("offline", choices=("offline", "online"))
    """offline: written in the run directory, to be synchronised later."""
    entity: str = ""
    """Team or user; empty: the account's default."""


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
    probe: Probe = option(Probe, rare=True)
    """When the sampling engine is compared with the trainer."""
    guards: Guards = option(Guards, rare=True)
    """What stops a run, or warns."""
    searchpath: list[str] = option([], rare=True)
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
    skip: int = option(0, low=0, rare=True)
    """Tasks of the split left out ahead of them, so that runs can be measured on others than each other."""
    samples: int = option(8, low=1)
    """Completions sampled for each task."""
    greedy: bool = True
    """Also answer greedily."""
    vote: int = option(0, low=0, rare=True)
    """Answers that a held-back input may have by a vote of the sampled programs, weighted by the shown pairs that they have
    right; ARC allows 2; 0: no vote."""
    excess_code: bool = option(False, rare=True)
    """Also measure what passing edits add that their tests do not run: each program runs a second time, under coverage."""
    bits: bool = option(False, rare=True)
    """Also measure the bits a character that the gold answers cost under the policy, which compare policies with other
    tokenizers; less is better."""
    batch_size: int = option(512, low=1)
    """Completions generated at once, all of a task's together."""
    remember: str = option("", rare=True)
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
