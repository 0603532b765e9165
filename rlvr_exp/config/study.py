"""Options of the groups `study`, `executor` and `chain`: experiments of many runs.

A study compares arms, each of which is run with several seeds; a search lets Optuna choose the arms; a chain runs commands one
after another, and each may read the results of earlier ones."""

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, pairwise
from typing import Any, ClassVar

from rlvr_exp.config.names import suggest
from rlvr_exp.config.options import configures, defaults, option
from rlvr_exp.core.errors import InputProblem
from rlvr_exp.core.measures import SUCCESS, scale_of

OWN = ("run.dir=", "run.resume=", "seed=", "evaluation.remember=")
"""Words that a study says itself."""
FULL = "full"
"""The arm of an ablation from which nothing is removed."""
SIZE = "{size}"
BUDGETS = ("rollouts", "tokens", "seconds", "core_seconds")


@dataclass
class Study:
    """Options of every study."""

    reads: ClassVar[tuple[str, ...]] = ()
    """Nodes of the configuration that it reads besides its own."""
    command: list[str] = field(default_factory=list)
    """First words of every command, such as +stage=grpo."""
    words: list[str] = field(default_factory=list)
    """Further words of every command, such as +experiment=quick or model=NAME."""
    seeds: list[int] = option([0, 1, 2], low=0)
    """Seeds of each arm. Arms are paired by seed."""
    reuse: list[str] = field(default_factory=list)
    """Folders with finished runs. A run with the same options, data, initial weights and seed is not repeated."""

    @property
    def rate(self) -> str:
        """The rate of evaluations that the answer is about; '' if there is none."""
        return ""

    def problems(self) -> list[InputProblem]:
        return list(self._faults())

    def _faults(self) -> Iterator[InputProblem]:
        if not self.seeds or len(set(self.seeds)) < len(self.seeds):
            yield InputProblem(
                "seeds", "one run for each", str(self.seeds), "different seeds", "", "study.seeds=[0,1,2]"
            )
        for key, words in self._words():
            if own := [word for word in words if word.startswith(OWN)]:
                yield InputProblem(
                    key, "the study says that itself", own[0], "", "", "drop it; study.seeds=[...] for seeds"
                )

    def _words(self) -> Iterator[tuple[str, list[str]]]:
        """The lists of words that it has, each with its key."""
        yield from (("command", self.command), ("words", self.words))


@dataclass
class Rated(Study):
    """Studies whose answer is about a metric of evaluations."""

    of_success: ClassVar[bool] = False
    """Whether it is in points of success, so that no other kind of metric can be answered about."""
    metric: str = SUCCESS[0]
    """Rate of an evaluation that the answer is about."""

    @property
    def rate(self) -> str:
        return self.metric

    def _faults(self) -> Iterator[InputProblem]:
        yield from super()._faults()
        if self.of_success and scale_of(self.metric).less_is_better:
            what = "this study is of a success rate, where more is better"
            yield InputProblem("metric", what, self.metric, ", ".join(SUCCESS))
        if self.metric.startswith("pass") and self.metric not in SUCCESS:
            allowed = f"{', '.join(SUCCESS)}, or a measure of the data by its name"
            yield InputProblem("metric", "no evaluation reports it", self.metric, allowed)


@dataclass
class Budgeted(Rated):
    """Studies that warn if their arms used unequal budgets."""

    equal: str = option("rollouts", choices=("none", *BUDGETS))
    """Budget that all arms should have used equally. If they did not, the answer begins with a warning."""


@dataclass
class Arms(Study):
    """Studies that compare arms which differ in words."""

    arms: dict[str, list[str]] = field(default_factory=dict)
    """Words of each arm, by its name."""
    only: list[str] = field(default_factory=list)
    """Arms that are run. Empty: all."""

    def _faults(self) -> Iterator[InputProblem]:
        yield from super()._faults()
        if not self.arms:
            yield InputProblem("arms", "no arm is named", remedy="study=ablation, or study.arms.NAME=[WORD, ...]")
        for name in self.arms:
            if not re.fullmatch(r"[\w.-]+", name) or name == FULL:
                what = f"no name of an arm: {FULL!r} is the one without a change"
                yield InputProblem(f"arms.{name}", what, name, "letters, digits, _, . and -")
        if unknown := sorted({*self.only} - {*self.arms}):
            yield InputProblem("only", "no such arm", ", ".join(unknown), ", ".join(self.arms))

    def _words(self) -> Iterator[tuple[str, list[str]]]:
        yield from super()._words()
        yield from ((f"arms.{name}", words) for name, words in self.arms.items())


@dataclass
class Curved(Study):
    """Studies that read a metric of the rows that runs write while they train."""

    curve: str = "success/mean"
    """The metric of the rows that is read."""


@dataclass
class Directed(Curved):
    """Studies of a metric of which more or less may be better."""

    direction: str = option("maximize", choices=("maximize", "minimize"))
    """Whether a higher or a lower value is better."""


OTHER_WEIGHTS = ("model.from_scratch", "model.random_weights", "model.adapter.path")
"""Options that name the source of weights in another way than model.path."""


@dataclass
class Measured(Study):
    """Studies that train policies and then measure each of them by runs of their own."""

    measure: list[str] = field(default_factory=lambda: ["+stage=evaluate"])
    """First words of the commands that measure. `command` belongs to the trainings, `words` to both."""

    def _words(self) -> Iterator[tuple[str, list[str]]]:
        yield from super()._words()
        yield "measure", self.measure

    def _faults(self) -> Iterator[InputProblem]:
        """Else the first measurement would be refused, once its training is over."""
        yield from super()._faults()
        for key, words in (("command", self.command), ("words", self.words)):
            for word in words:
                name, _, value = word.lstrip("+").partition("=")
                if name in OTHER_WEIGHTS and value not in ("false", ""):
                    what = "each policy is measured by its checkpoint, as model.path, which this excludes"
                    remedy = "make the initial policy by a run of its own, then model.path=ITS_CHECKPOINT"
                    yield InputProblem(key, what, word, "", "", remedy)


@configures("rlvr_exp.runs.studies.arms.Ablation")
@dataclass
class Ablation(Budgeted, Arms):
    """Ablation: every arm removes or replaces one component."""


@configures("rlvr_exp.runs.studies.arms.Algorithms")
@dataclass
class Algorithms(Budgeted, Arms):
    """Comparison of algorithms at an equal budget: every arm names one, the first is the reference."""


@configures("rlvr_exp.runs.studies.amounts.LearningCurve")
@dataclass
class LearningCurve(Rated):
    """Learning curve: success against the amount of training data or steps."""

    of_success = True
    sizes: list[int] = option([], low=1)
    """Sizes in rising order. Each is run with each seed."""
    varied: list[str] = field(default_factory=list)
    """Words with {size} in place of the size."""
    counted: str = ""
    """Unit of the sizes, in words."""

    def _faults(self) -> Iterator[InputProblem]:
        yield from super()._faults()
        if len(self.sizes) < 2 or any(later <= size for size, later in pairwise(self.sizes)):
            yield InputProblem("sizes", "a curve rises along them", str(self.sizes), "two or more, each above the last")
        if not any(SIZE in word for word in self.varied):
            remedy = 'study=learning_curve, or study.varied=["data.limit={size}"]'
            yield InputProblem("varied", f"no word has {SIZE}", str(self.varied), "", "", remedy)

    def _words(self) -> Iterator[tuple[str, list[str]]]:
        yield from super()._words()
        yield "varied", self.varied


@configures("rlvr_exp.runs.studies.amounts.SampleComplexity")
@dataclass
@defaults(curve="held_out/pass_at_1")
class SampleComplexity(Curved, Arms):
    """How many rollouts it takes to reach a success rate. run.select.every_steps says how often the default curve is measured."""

    targets: list[float] = option([], above=0, high=1)
    """Success rates to reach, in rising order."""

    def _faults(self) -> Iterator[InputProblem]:
        yield from super()._faults()
        if not self.targets or any(later <= target for target, later in pairwise(self.targets)):
            yield InputProblem("targets", "they rise", str(self.targets), "one or more, each above the last")


@configures("rlvr_exp.runs.studies.resampling.CrossValidation")
@dataclass
class CrossValidation(Rated):
    """How well a training does on tasks that it did not see: each of N runs a seed holds out another fold of the data."""

    of_success = True
    folds: int = option(5, low=2)
    """Runs of a seed; each learns from the other folds and is measured on its own."""


GREEDY = "pass_at_1_greedy"


@configures("rlvr_exp.runs.studies.amounts.FewShot")
@dataclass
class FewShot(Rated):
    """How success depends on the number of solved examples that a prompt shows, for a policy that is not trained."""

    of_success = True
    shots: list[int] = option([0, 1, 2, 4, 8], low=0)
    """Numbers of solved examples in a prompt (data.prompt.shots), in rising order."""

    def _faults(self) -> Iterator[InputProblem]:
        yield from super()._faults()
        if len(self.shots) < 2 or any(later <= one for one, later in pairwise(self.shots)):
            yield InputProblem("shots", "they rise", str(self.shots), "two or more, each above the last")


@configures("rlvr_exp.runs.studies.zero_shot.ZeroShot")
@dataclass
class ZeroShot(Rated, Measured):
    """Zero-shot transfer: the gain of a training on tasks without any overlap in tasks, families or programs."""

    of_success = True
    target: list[str] = field(default_factory=lambda: ["evaluation.split=test_unseen"])
    """Words of a measurement on the target: another split or other data."""
    families: list[str] = field(default_factory=list)
    """Families held out of the training. Their tasks become `test_unseen` (data.unseen_families). Empty: those that the
    data hold out."""

    def _words(self) -> Iterator[tuple[str, list[str]]]:
        yield from super()._words()
        yield "target", self.target


@configures("rlvr_exp.runs.studies.transfer.Transfer")
@dataclass
class Transfer(Rated, Measured, Arms):
    """How training on one group of tasks changes success on each other one: every arm is a group, by the words that choose
    its data."""

    of_success = True
    compared: int = option(400, low=1)
    """First training tasks of a group, by which its similarity to other groups is computed."""
    embed: list[str] = field(default_factory=list)
    """First words of the commands that compute where the initial policy puts each group's tasks. Empty: none."""

    def _words(self) -> Iterator[tuple[str, list[str]]]:
        yield from super()._words()
        yield "embed", self.embed

    def _faults(self) -> Iterator[InputProblem]:
        yield from super()._faults()
        if self.arms and len(self.only or self.arms) < 2:
            got, allowed = ", ".join(self.only or self.arms), "two groups and more"
            yield InputProblem(
                "arms", "there is no other group", got, allowed, "", "name more in study.arms or study.only"
            )


@configures("rlvr_exp.runs.studies.resampling.BiasVariance")
@dataclass
@defaults(metric=GREEDY)
class BiasVariance(Rated):
    """Bias and variance of the failures of a training, and the sources of the variance (training tasks or seed): every arm
    trains on another bootstrap sample of the tasks, with each seed."""

    of_success = True
    resamples: int = option(3, low=2)
    """Bootstrap samples of the training tasks (data.resample)."""

    def _faults(self) -> Iterator[InputProblem]:
        yield from super()._faults()
        if self.metric != GREEDY:
            yield InputProblem("metric", "the answer to a task has to be right or wrong", self.metric, GREEDY)


@configures("rlvr_exp.runs.studies.models.Capacity")
@dataclass
class Capacity(Budgeted):
    """How much a model's width and depth are worth at equal tokens and at equal time."""

    widths: list[int] = option([64, 96, 128, 192], low=8)
    """Hidden widths in rising order, multiples of head_dim. The first is the reference arm."""
    depths: list[int] = option([1, 3, 6], low=1)
    """Numbers of layers at the embedded model's width, in rising order. Empty: widths only."""
    head_dim: int = option(32, low=2)
    """Width of a head in the arms of different widths. The MLP is three times as wide as the model."""

    def _faults(self) -> Iterator[InputProblem]:
        yield from super()._faults()
        for name, sizes, least in (("widths", self.widths, 2), ("depths", self.depths, 0)):
            if len(sizes) < least or any(later <= size for size, later in pairwise(sizes)):
                allowed = "two or more, each above the last" if least else "each above the last"
                yield InputProblem(name, "sizes rise", str(sizes), allowed)
        if uneven := [width for width in self.widths if width % self.head_dim]:
            what, allowed = "a width is heads times head_dim", f"multiples of {self.head_dim}"
            yield InputProblem("widths", what, str(uneven), allowed, "", "study.head_dim=16, or other widths")


@configures("rlvr_exp.runs.studies.models.ArchitectureStudy")
@dataclass
class ArchitectureStudy(Budgeted, Arms):
    """Comparison of attention, positions and embeddings at equal parameters and tokens: the first arm is the reference."""


@configures("rlvr_exp.runs.studies.models.Tokenization")
@dataclass
class Tokenization(Budgeted, Arms):
    """Comparison of tokenizers at equal texts and at equal tokens: the first arm is the reference."""


@configures("rlvr_exp.runs.studies.arms.Optimizers")
@dataclass
class Optimizers(Budgeted, Directed, Arms):
    """Comparison of optimizers, schedules and clipping at equally many rollouts: the first arm is the reference."""

    window: int = option(10, low=1)
    """Latest rows over which the curve is smoothed."""


@configures("rlvr_exp.runs.studies.landscape.Landscape")
@dataclass
class Landscape(Measured):
    """The loss landscape around a policy before and after its training, and between the two."""

    def _faults(self) -> Iterator[InputProblem]:
        yield from super()._faults()
        if "benchmark=landscape" not in self.measure:
            remedy = 'study.measure=["+stage=benchmark","benchmark=landscape"]'
            yield InputProblem("measure", "does not measure a landscape", str(self.measure), remedy=remedy)


@dataclass
class Executor:
    """Place of the runs."""

    jobs: int = option(1, low=1)
    """Runs at the same time."""


@configures("rlvr_exp.runs.executors.Local")
@dataclass
class Local(Executor):
    """This machine. Each run has its own share of the cores, if there are as many cores as runs."""


@configures("rlvr_exp.runs.executors.Slurm")
@dataclass
class Slurm(Executor):
    """Jobs of Slurm, submitted by submitit (an extra: pip install 'rlvr_exp[submitit]'); the study waits for them."""

    parameters: dict[str, Any] = field(default_factory=dict)
    """Parameters of submitit's executor, such as gpus_per_node, timeout_min or slurm_partition."""
    cluster: str = option("slurm", choices=("slurm", "local"))
    """local: submitit runs the jobs on this machine, to try them without Slurm."""


@configures("rlvr_exp.runs.ray_executor.Ray")
@dataclass
class Ray(Executor):
    """Tasks of a Ray cluster (an extra: pip install 'rlvr_exp[ray]'). A lost node means that the run resumes on another one."""

    address: str = ""
    """HOST:PORT of the cluster. Empty: the variable RAY_ADDRESS, else the cluster that runs on this machine, else a new one."""
    num_cpus: float = option(1.0, low=0)
    """CPUs of one run."""
    num_gpus: float = option(0.0, low=0)
    """GPUs of one run."""
    resources: dict[str, Any] = field(default_factory=dict)
    """Further resources of one run, by the names that the nodes give them."""
    retries: int = option(3, low=0)
    """Further starts of a run whose node was lost. It resumes exactly."""

    def problems(self) -> list[InputProblem]:
        bad = {
            name: amount
            for name, amount in self.resources.items()
            if not isinstance(amount, int | float) or amount <= 0
        }
        allowed, remedy = "NAME: NUMBER above 0", "executor.num_cpus and executor.num_gpus set these two"
        found = [InputProblem("resources", "no amount", str(bad), allowed)] if bad else []
        if own := {"CPU", "GPU"} & {*self.resources}:
            found.append(InputProblem("resources", "has an option of its own", ", ".join(sorted(own)), "", "", remedy))
        return found


RANGES = ("uniform", "log_uniform", "int", "log_int")
CHOICE = "choice"
KINDS = (*RANGES, CHOICE)
ALLOWED = "{uniform|log_uniform|int|log_int: [LOW, HIGH]} or {choice: [A, B, ...]}"
BARE = re.compile(r"[A-Za-z_][\w./-]*")
"""A text that Hydra's grammar reads as a text without quotes, but for its few names of other values."""
NO_TEXT = ("true", "false", "null", "nan", "inf")


@dataclass(frozen=True)
class Dimension:
    """A key of the configuration that a search varies."""

    key: str
    kind: str
    values: tuple[Any, ...]
    """Its two ends, or its choices."""

    @property
    def logarithmic(self) -> bool:
        return self.kind.startswith("log_")

    @property
    def integer(self) -> bool:
        return self.kind.endswith("int")

    def word(self, value: Any) -> str:
        """The word of a command line that sets it."""
        return f"{self.key}={text_of(value)}"

    def holds(self, value: Any) -> bool:
        """Whether a value could be drawn."""
        if self.kind == CHOICE:
            return text_of(value) in map(text_of, self.values)
        number = isinstance(value, int if self.integer else int | float) and not isinstance(value, bool)
        return number and self.values[0] <= value <= self.values[1]


def text_of(value: Any) -> str:
    """A value as Hydra's grammar reads it."""
    if isinstance(value, list):
        return f"[{','.join(map(text_of, value))}]"
    if isinstance(value, str) and BARE.fullmatch(value) and value.lower() not in NO_TEXT:
        return value
    return json.dumps(value, ensure_ascii=False)


def dimensions(space: Mapping[str, Any]) -> list[Dimension]:
    """Of a space without faults."""
    return [Dimension(key, *_only(given)) for key, given in _leaves(space)]


def _only(given: Mapping[str, Any]) -> tuple[str, tuple[Any, ...]]:
    ((kind, values),) = given.items()
    return kind, tuple(values)


def _leaves(space: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """The given value of each key. Keys with dots may be written as nested nodes."""
    for name, given in space.items():
        if isinstance(given, dict) and given and all(isinstance(part, dict) for part in given.values()):
            yield from _leaves(given, f"{above}{name}.")
        else:
            yield f"{above}{name}", given


def _space_faults(space: Mapping[str, Any]) -> Iterator[InputProblem]:
    seen = set[str]()
    for key, given in _leaves(space):
        where, remedy = f"space.{key}", f"'study.space.{key}={{log_uniform: [1e-5, 1e-3]}}'"
        if key in seen:
            yield InputProblem(where, "is there twice, as a path and as nodes", key, "one of them")
        seen.add(key)
        if not isinstance(given, dict) or len(given) != 1:
            what = "one way to draw it is needed"
            remedy = f"~study.space.{key} removes what a file says; {remedy}"
            yield InputProblem(where, what, json.dumps(given), ALLOWED, "", remedy)
            continue
        ((kind, values),) = given.items()
        if kind not in KINDS:
            near = suggest(kind, KINDS)
            what = f"no such way to draw{f'; did you mean {near}' if near else ''}"
            yield InputProblem(where, what, kind, ", ".join(KINDS), "", remedy)
        elif what := (_choice_fault(values) if kind == CHOICE else _range_fault(kind, values)):
            yield InputProblem(where, what, f"{kind}: {json.dumps(values)}", ALLOWED)


def _choice_fault(values: Any) -> str:
    if not isinstance(values, list) or len(values) < 2:
        return "a choice is among two or more"
    texts = [text_of(value) for value in values]
    return "choices differ from each other" if len(set(texts)) < len(texts) else ""


def _range_fault(kind: str, values: Any) -> str:
    if not isinstance(values, list) or len(values) != 2 or not all(_number(value) for value in values):
        return "a range has two ends, both numbers"
    low, high = values
    if kind.endswith("int") and not all(isinstance(value, int) for value in values):
        return "both ends are whole numbers"
    if low >= high:
        return "the second end is above the first"
    return "on a logarithmic scale both ends are above 0" if kind.startswith("log_") and low <= 0 else ""


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


@configures("rlvr_exp.runs.studies.search.Search")
@dataclass
class Search(Budgeted, Directed):
    """Search for good values of options: Optuna chooses trials, and each is run with every seed."""

    space: dict[str, Any] = field(default_factory=dict)
    """Distribution of each key: uniform, log_uniform, int or log_int with [LOW, HIGH], or choice with its values."""
    trials: int = option(20, low=1)
    """Number of trials. The first is the unchanged command, if the space contains its values."""
    sampler: str = option("tpe", choices=("tpe", "random"))
    """Method that chooses trials. tpe: a tree-structured Parzen estimator, which learns from earlier trials. random: no
    learning."""
    startup: int = option(10, low=1)
    """First trials of tpe, which are random."""
    pruner: str = option("none", choices=("none", "median", "halving"))
    """Early stopping of a trial by the metric of its first seed. median: below the median of the other trials at that step.
    halving: successive halving."""
    pruner_startup: int = option(5, low=0)
    """Trials that median completes before it stops any."""
    pruner_warmup: int = option(1, low=1)
    """First step at which a trial may be stopped."""
    trial_words: list[str] = field(default_factory=list)
    """Further words of the trials only, such as evaluation.split=dev, so that the reported measurement is not the one that
    selects."""
    confirm: list[int] = option([1000, 1001, 1002], low=0)
    """Further seeds, on which the best trial and the unchanged command are compared. Empty: no comparison."""

    def _faults(self) -> Iterator[InputProblem]:
        yield from super()._faults()
        if not self.space:
            remedy = "'study.space.optimizer.lr={log_uniform: [1e-5, 1e-3]}'"
            yield InputProblem("space", "no key is varied", "", ALLOWED, "", remedy)
        yield from _space_faults(self.space)
        if known := sorted({*self.confirm} & {*self.seeds}):
            what = "the trials have these seeds, so that they confirm nothing"
            yield InputProblem("confirm", what, str(known), "other seeds than study.seeds, or []")
        if len(set(self.confirm)) < len(self.confirm):
            yield InputProblem("confirm", "one run for each", str(self.confirm), "different seeds")
        if scale_of(self.metric).less_is_better and self.direction == "maximize":
            yield InputProblem("direction", f"less {self.metric} is better", self.direction, "minimize")

    def _words(self) -> Iterator[tuple[str, list[str]]]:
        yield from super()._words()
        yield "trial_words", self.trial_words


PLACE = re.compile(r"\{(\w+)\}")
CHAIN, PATH = "chain", "path"
"""The places of the chain's own directory and of `path`."""
SERVED = "engine=server"
SAID = ("run.dir=", "run.resume=")
"""Words that the chain says itself."""


@dataclass
class Chain:
    """Options of every chain."""

    reads: ClassVar[tuple[str, ...]] = ()
    """Nodes of the configuration that it reads besides its own."""


@configures("rlvr_exp.runs.chain.run_links")
@dataclass
class Links(Chain):
    """Runs one after the other, each in a directory of its own."""

    links: dict[str, list[str]] = field(default_factory=dict)
    """Words of the command of each run by its name, in order. {NAME} stands for the directory of an earlier run, {chain}
    for that of the chain, {path} for `path`."""
    path: str = ""
    """Your own data for links with {path}. Empty: these links are left out."""
    policy: list[str] = field(default_factory=list)
    """Further words of every command that loads a policy, such as model=qwen14b. These words and those of the
    options below may name {chain} and {path}."""
    endpoint: list[str] = field(default_factory=list)
    """Further words of every command with engine=server, such as engine.url=URL. Empty: these links are left out."""
    stages: dict[str, list[str]] = field(default_factory=dict)
    """Further words of every command of a stage: {grpo: [algorithm.max_steps=8]}."""
    words: list[str] = field(default_factory=list)
    """Further words of every command, such as +experiment=quick or seed=1."""

    def problems(self) -> list[InputProblem]:
        if not self.links:
            return [InputProblem("links", "no run is named", remedy="chain=NAME, or chain.links.NAME=[WORD, ...]")]
        if not self.runs:
            what, remedy = "every run needs data or an endpoint of your own", "chain.path=DIR"
            return [InputProblem("path", what, "none", "a folder or a file", "", remedy)]
        return list(self._of_links())

    @property
    def runs(self) -> dict[str, list[str]]:
        """The links that are run: all, or without `path` or `endpoint` those that do not need it."""
        return {name: words for name, words in self.links.items() if not self._lacks(words)}

    def _lacks(self, words: list[str]) -> str:
        """The option that the words need and that is not given; empty: none."""
        if PATH in _places(words) and not self.path:
            return "chain.path=DIR"
        return 'chain.endpoint=["engine.url=URL"]' if SERVED in words and not self.endpoint else ""

    def _of_links(self) -> Iterator[InputProblem]:
        known = [CHAIN, PATH]
        further = {"policy": self.policy, "endpoint": self.endpoint, "words": self.words}
        further |= {"stages": list(chain(*self.stages.values()))}
        for where, words in further.items():
            if absent := sorted(_places(words) - {CHAIN, *([PATH] if self.path else ())}):
                allowed = "{chain}, or {path} with chain.path=DIR"
                yield InputProblem(where, "words of several runs cannot name one run", ", ".join(absent), allowed)
        for name, words in self.runs.items():
            where = f"links.{name}"
            if not re.fullmatch(r"\w+", name) or name in (CHAIN, PATH):
                yield InputProblem(where, "no name of a run", name, "letters, digits and _")
            if not any(word.startswith("+stage=") for word in words):
                yield InputProblem(where, "names no stage", " ".join(words), "+stage=NAME among its words")
            if own := [word for word in chain(words, *further.values()) if word.startswith(SAID)]:
                yield InputProblem(where, "the chain says itself where its runs are", own[0], remedy="drop it")
            if absent := sorted(_places(words) - {*known}):
                remedy = ", ".join(self._lacks(self.links[name]) for name in absent if name in self.links)
                yield InputProblem(where, "names no earlier run", ", ".join(absent), ", ".join(known), "", remedy)
            known.append(name)
        stages = {word.removeprefix("+stage=") for words in self.links.values() for word in words if "+stage=" in word}
        if unknown := sorted(set(self.stages) - stages):
            yield InputProblem("stages", "no run has this stage", ", ".join(unknown), ", ".join(sorted(stages)))
        if lacking := [name for name, words in self.runs.items() if self._reads_left_out(words)]:
            what = "not given, and these runs read what the runs that need it would write"
            yield InputProblem("path", what, ", ".join(lacking), "a folder or a file", "", "chain.path=DIR")

    def _reads_left_out(self, words: list[str]) -> bool:
        """Whether words name a file in the chain's directory that only runs without `path` or `endpoint` would write."""
        left_out = [self.links[name] for name in self.links.keys() - self.runs.keys()]
        return any(
            _among(file, left_out) and not _among(file, self.runs.values())
            for word in words
            if not _writes(word) and (file := _file(word))
        )


def _among(file: str, commands: Iterable[list[str]]) -> bool:
    """Whether one of the commands writes the file, a file in that folder, or the folder around it."""
    written = [_file(word) for words in commands for word in words if _writes(word) and _file(word)]
    return any(f"{one}/".startswith(f"{file}/") or f"{file}/".startswith(f"{one}/") for one in written)


def _writes(word: str) -> bool:
    return word.partition("=")[0].endswith(".output")


def _file(word: str) -> str:
    """The file in the chain's directory that a word names; empty: none."""
    value = word.partition("=")[2]
    return value.removeprefix("{chain}/") if value.startswith("{chain}/") else ""


def _places(words: list[str]) -> set[str]:
    return {place for word in words for place in PLACE.findall(word)}
