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
    """Choice of the best checkpoint, and early stopping. A run with a best checkpoint ends with its weights."""

    metric: str = MEASURED[0]
    """Metric that selects the best checkpoint: held_out/pass_at_1 or held_out/pass_at_1_greedy (success on tasks of
    `split`), any other metric of the rows, or a weighted sum such as 0.7 * reward/mean + 0.3 * held_out/pass_at_1."""
    mode: str = option("max", choices=("max", "min"), rare=True)
    """Whether a higher or a lower value is better."""
    patience: int = option(0, low=0)
    """Stop after this many consecutive measurements without improvement. 0 disables early stopping."""
    every_steps: int = option(0, low=0)
    """Steps between measurements of held-out success, besides the one at the last step. 0: `times` decides."""
    times: int = option(0, low=0)
    """If every_steps is 0: number of measurements of held-out success, spread evenly over the run. There are fewer, on
    fewer tasks, if they would sample more than a tenth of the training samples. 0: no measurements."""
    split: str = option("dev", rare=True)
    """Split of the measurements. It is neither trained on nor part of the reported success."""
    tasks: int = option(64, low=1, rare=True)
    """Tasks of each measurement, always the same."""
    samples: int = option(4, low=1, rare=True)
    """Completions sampled for each task. evaluation.greedy adds a greedy completion."""
    restore: bool = option(True, rare=True)
    """End the run with the weights of the best step. false: with those of the last step."""

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
        """The deciding value of a row of metrics; None if one of its metrics is missing or not finite."""
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
    """Samples shown for each logged step with their verdicts: the best, the worst, then random ones."""


@configures("rlvr_exp.training.tensorboard.TensorBoard")
@dataclass
class TensorBoard(Viewer):
    """TensorBoard event files in the run directory."""


@dataclass
class OfProject(Viewer):
    """Options of viewers that sort runs by project."""

    project: str = "rlvr_exp"
    """Project of the run; with tracking=mlflow its experiment."""


@configures("rlvr_exp.records.trackio.Trackio")
@dataclass
class Trackio(OfProject):
    """A Trackio database in the run directory, or in the folder of the variable TRACKIO_DIR."""

    def environment(self, directory: Path) -> dict[str, str]:
        """Variables that the package reads when it is imported. Other packages may import it before the run logs."""
        return {"TRACKIO_DIR": str(directory.absolute() / "trackio")}


@configures("rlvr_exp.records.mlflow.MLflow")
@dataclass
class MLflow(OfProject):
    """An MLflow database in the run directory, or the server of the variable MLFLOW_TRACKING_URI."""


@configures("rlvr_exp.records.tracking.WandB")
@dataclass
class WandB(OfProject):
    """Weights & Biases."""

    mode: str = option("offline", choices=("offline", "online"))
    """offline: write into the run directory, to be synchronized later."""
    entity: str = ""
    """Team or user. Empty: the default of the account."""


@dataclass
class Checkpoint:
    """When the state of training is written."""

    every_steps: int = option(50, low=1)
    """Steps between checkpoints. The last step always has one."""
    keep: int = option(3, low=1)
    """Number of latest checkpoints that are kept, besides the best."""


@dataclass
class Probe:
    """Comparison of the weights that sample with the weights that train: both compute log-probabilities of fixed sequences.
    A difference stops the run with the cause."""

    every_steps: int = option(25, low=0)
    """Steps between comparisons, besides those at the start and after the first step. 0 disables all of them."""
    tolerance: float = option(0.0, low=0)
    """Largest mean difference of log-probabilities. 0: 0.001 for a policy in 32 bits, 0.1 for fewer bits."""


AUTO = "auto"
"""The value of `run.resume` that resumes if there is a checkpoint."""


@dataclass
class Guards:
    """Limits that stop a run."""

    max_skipped: int = option(5, low=0)
    """Consecutive updates that may be skipped because the loss, the gradient or the rewards are not finite. One more stops
    the run with exit code 3."""
    step_deadline_s: float = option(3600.0, low=0)
    """Seconds without progress after which the phase and the stacks of all threads are written to log.txt and standard
    error. 0: never."""
    stop_past_deadline: bool = False
    """After that deadline, also stop the run with exit code 3."""


@dataclass
class Run:
    """The run itself."""

    dir: str = ""
    """Run directory. Empty: outputs/DATE/TIME_STAGE, below multirun/ for a sweep."""
    resume: str = ""
    """Resume the run in this directory from its latest intact checkpoint. auto: resume run.dir if it holds a checkpoint,
    else start a new run. Empty: a new run."""
    dry: bool = False
    """Check everything and print the plan, but run nothing."""
    trial: bool = False
    """Measure the configured run for half a minute and estimate the time of the complete run. Nothing is kept."""
    inline: bool = False
    """Run in this process, for a debugger."""
    log_every_steps: int = option(1, low=1)
    """Steps between rows of metrics."""
    checkpoint: Checkpoint = field(default_factory=Checkpoint)
    """When the state of training is written."""
    select: Select = field(default_factory=Select)
    """Best checkpoint and early stopping."""
    probe: Probe = option(Probe, rare=True)
    """When the sampling engine is compared with the trainer."""
    guards: Guards = option(Guards, rare=True)
    """Limits that stop a run."""
    searchpath: list[str] = option([], rare=True)
    """Folders with your own YAML, classes and domains. hydra.searchpath=[DIR,...] writes it."""

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
    """Measurement of success before and after training, and by +stage=evaluate. All rates use one temperature and the same
    filters; greedy answers use neither."""

    split: str = "test"
    """Split that is measured."""
    tasks: int = option(400, low=0)
    """Number of tasks. 0: all tasks of the split."""
    skip: int = option(0, low=0, rare=True)
    """Number of tasks at the start of the split that are left out."""
    samples: int = option(8, low=1)
    """Completions sampled for each task."""
    greedy: bool = True
    """Also measure greedy answers."""
    vote: int = option(0, low=0, rare=True)
    """Also measure a vote of the sampled programs on held-back inputs, weighted by the shown pairs that they solve: number
    of answers that an input may have (ARC allows 2). 0 disables the vote."""
    excess_code: bool = option(False, rare=True)
    """Also measure the code in passing edits that their tests do not execute. Each program runs a second time, under
    coverage."""
    bits: bool = option(False, rare=True)
    """Also measure the bits per character of the reference answers under the policy. They compare policies with different
    tokenizers; less is better."""
    batch_size: int = option(512, low=1)
    """Completions generated at once. The completions of a task stay together."""
    remember: str = option("", rare=True)
    """Folder of measurements before training that runs of the same policy on the same tasks share. A study sets it for its
    runs. Empty: each run measures."""

    @property
    def further(self) -> tuple[str, ...]:
        """Names of the rates besides those of every evaluation: of the vote, of excess code, and of golds."""
        excess, bits = EXCESS_CODE if self.excess_code else (), (BITS,) if self.bits else ()
        return voted_metrics(self.samples, self.vote) + excess + bits

    def lacks(self, metric: str) -> str:
        """The word that would measure a rate which these options leave out; '' if they do not."""
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
