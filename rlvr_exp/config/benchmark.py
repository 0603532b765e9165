"""Options of the `benchmark` group: measurements, and their lengths."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from rlvr_exp.config.algorithm import BASELINES, RLOO
from rlvr_exp.config.engine import is_exact
from rlvr_exp.config.options import ANSWERS, JUDGES, LEARNS, configures, defaults, option
from rlvr_exp.core.domains import domains
from rlvr_exp.core.errors import InputProblem
from rlvr_exp.core.ray_cluster import INSTALL, not_installed

CONTESTS = (
    *("python_io", "python_io_strict", "human_eval", "pytest"),
    *(name for one in domains().values() for name in one.contests),
    "cache",
)
ON_A_CLUSTER = "ray"
"""A contest that only a run with Ray has."""


@dataclass
class Benchmark:
    """Options of every measurement."""

    reads: ClassVar[tuple[str, ...]] = ()
    """Nodes of the configuration that it reads besides its own: the benchmark of training runs a training."""


@dataclass
class Paired(Benchmark):
    """Measurements in pairs with common alternatives."""

    rounds: int = option(5, low=2)
    """Interleaved pairs of measurements. The interval is over them."""


@configures("rlvr_exp.benchmarks.verifiers.Verifiers")
@dataclass
class Verifiers(Paired):
    """Verdicts a second against one process a candidate and against published tools, in one run."""

    reads = ("sandbox",)
    contests: list[str] = field(
        default_factory=lambda: list(CONTESTS), metadata=option([], choices=(*CONTESTS, ON_A_CLUSTER)).metadata
    )
    """Contests to run. In python_io_strict each candidate has its own namespaces. ray, which is not among the default ones,
    compares verifier.pool=ray with the local pool."""
    candidates: int = option(200, low=4)
    """Python candidates of a round; a tenth of them for pytest."""
    programs: str = ""
    """Folder of programs for the contests of a domain that judge files, such as DafnyBench's ground_truth. Empty: embedded programs."""
    programs_limit: int = option(0, low=0)
    """Number of programs taken from the folder, in a fixed random order. 0: all."""

    def missing(self) -> Iterator[tuple[InputProblem, str]]:
        if ON_A_CLUSTER in self.contests and (problem := not_installed("benchmark.contests")):
            yield problem, INSTALL


@configures("rlvr_exp.benchmarks.training.Training")
@dataclass
class Training(Paired):
    """Rollouts, verdicts, updates and full steps a second against trl.GRPOTrainer, with the run's own model and
    data."""

    reads = (*LEARNS, "environment")
    steps: int = option(2, low=1)
    """Timed steps of each side, after a warm-up step."""
    drawn_reward: bool = False
    """Replace the reward by a random 0 or 1, so that a model that solves no task has a gradient. Verdicts are timed too.
    Random weights always have it."""


@configures("rlvr_exp.benchmarks.gradient_variance.GradientVariance")
@dataclass
class GradientVariance(Benchmark):
    """How far gradients of the same weights scatter from batch to batch, by the baseline, on the same rollouts; needs
    algorithm=reinforce."""

    reads = (*LEARNS, "environment")
    baselines: list[str] = field(
        default_factory=lambda: list(BASELINES), metadata=option([], choices=BASELINES).metadata
    )
    """Values of algorithm.baseline. The others are compared with the first."""
    batches: int = option(16, low=4)
    """Batches of algorithm.prompts_per_step groups, each with its own gradient."""

    def problems(self) -> list[InputProblem]:
        if len(set(self.baselines)) == len(self.baselines) > 1:
            return []
        allowed = f"two or more of {', '.join(BASELINES)}"
        return [InputProblem("baselines", "they are compared with the first", str(self.baselines), allowed)]

    def conflicts(self, config: Any, reads: Callable[[str], bool]) -> Iterator[InputProblem]:
        algorithm = config.algorithm
        if not isinstance(algorithm, RLOO) or algorithm.kl_coef:
            what = "only REINFORCE without a KL penalty has a baseline to choose"
            got = f"{algorithm._target_}, kl_coef={getattr(algorithm, 'kl_coef', 0)}"
            yield InputProblem("algorithm", what, got, remedy="algorithm=reinforce")


@configures("rlvr_exp.benchmarks.landscape.Landscape")
@dataclass
class Landscape(Benchmark):
    """The loss of gold answers on the held-out tasks around a policy, and on the straight line to another one: random slices,
    the largest eigenvalues of the Hessian, gradients of batches."""

    reads = ANSWERS
    other: str = ""
    """Checkpoint at the other end of a straight line. Empty: no line."""
    points: int = option(21, low=3)
    """Points of the line and of each one-dimensional slice."""
    grid: int = option(11, low=0)
    """Points along each side of the two-dimensional slice and of the plane through both policies. 0: none."""
    radius: float = option(0.5, above=0)
    """Length of a slice to either side, in norms of the rows of the weights."""
    eigenvalues: int = option(3, low=0)
    """Number of largest eigenvalues of the Hessian. 0: none. They need about 20 vectors of the size of the weights, 8 bytes
    per number."""
    batches: int = option(8, low=2)
    """Parts of the held-out tasks whose gradients are compared."""

    def conflicts(self, config: Any, reads: Callable[[str], bool]) -> Iterator[InputProblem]:
        if 0 < config.evaluation.tasks < self.batches:
            got, allowed = str(config.evaluation.tasks), f"0, or benchmark.batches={self.batches} and more"
            yield InputProblem("evaluation.tasks", "fewer than batches", got, allowed, "", "fewer benchmark.batches")


@configures("rlvr_exp.benchmarks.new_problems.NewProblems")
@dataclass
class NewProblems(Benchmark):
    """Held-out tasks that trained policies solve within evaluation.samples completions, and the policy of the `model` node not
    within many."""

    reads = (*ANSWERS, "environment")
    trained: list[str] = field(default_factory=list)
    """Checkpoints of the trained policies. Empty: only the base is sampled, on all tasks."""
    base_samples: int = option(1024, low=2)
    """Completions of the base for a task that it does not solve."""
    state: str = ""
    """Folder of the outcomes so far. Runs with the same folder continue and share them. Empty: the run directory."""

    def problems(self) -> list[InputProblem]:
        missing = [one for one in self.trained if not Path(one).is_dir()]
        return [InputProblem("trained", "no such folder", one, "a checkpoint") for one in missing]

    def conflicts(self, config: Any, reads: Callable[[str], bool]) -> Iterator[InputProblem]:
        if config.evaluation.samples >= self.base_samples:
            got, allowed = str(config.evaluation.samples), f"below benchmark.base_samples={self.base_samples}"
            yield InputProblem("evaluation.samples", "the base has no more samples than this", got, allowed)
        if not is_exact(config.engine):
            what, got = "the weights of several policies sample in turn", config.engine._target_
            yield InputProblem("engine", what, got, "engine=local", "", "engine=local")
        if config.parallel.distributed:
            what, remedy = "one process writes the outcomes", "drop it"
            yield InputProblem("parallel", what, "several processes", "one", "", remedy)


@configures("rlvr_exp.benchmarks.adaptation.TestTimeTraining")
@dataclass
class TestTimeTraining(Benchmark):
    """infer.adapt=lora against more plain samples at equal core seconds, on held-out tasks that 64 plain samples do not solve."""

    reads = ANSWERS
    samples: int = option(1024, low=2)
    """Samples of a task with adaptation."""
    rounds: int = option(8, low=2)
    """Rounds that share these samples."""

    def conflicts(self, config: Any, reads: Callable[[str], bool]) -> Iterator[InputProblem]:
        if self.samples < self.rounds:
            what, allowed = "each round draws at least one sample", f"at least {self.rounds}"
            yield InputProblem("benchmark.samples", what, str(self.samples), allowed)
        if not is_exact(config.engine):
            what, got = "the adapter learns in this process", config.engine._target_
            yield InputProblem("engine", what, got, "engine=local", "", "engine=local")


@configures("rlvr_exp.benchmarks.theory.measure")
@dataclass
class Theory(Benchmark):
    """Known results on problems that are small enough to be computed exactly, against the functions that train policies."""

    draws: int = option(10_000, low=1000)
    """Independent draws for each estimate."""
    level: float = option(1e-3, above=0, below=0.5)
    """Probability of exit code 3 if all results hold, over all checks."""


@dataclass
class OfShape(Benchmark):
    """Measurements with random weights of the configured model's shape. No weights are loaded."""

    reads = LEARNS


@configures("rlvr_exp.benchmarks.memory.measure")
@dataclass
class Memory(OfShape):
    """The memory of each phase of the configured run against its estimate."""


@dataclass
class InTurns(OfShape, Paired):
    """Two ways of the same work, timed in turns."""


@configures("rlvr_exp.benchmarks.packing.measure")
@dataclass
class Packing(InTurns):
    """Forward and backward over packed rows against one padded row a completion: agreement, speed and memory."""


@configures("rlvr_exp.benchmarks.sampling.measure")
@dataclass
class Sampling(InTurns):
    """Our sampler against Transformers' `generate`: tokens a second and memory."""


@configures("rlvr_exp.benchmarks.memory.quantized")
@dataclass
class Quantization(Benchmark):
    """The bytes of one random model in bfloat16, 8 bits and 4 bits."""

    hidden: int = option(1024, low=128)
    """Width of the model, in heads of 128."""
    layers: int = option(12, low=1)
    """Layers of the model."""
    vocabulary: int = option(8192, low=1)
    """Tokens of the model."""


@dataclass
class OfPrompts(Benchmark):
    """Measurements of a policy's network on prompts."""

    reads = ("model", "data")
    split: str = "test"
    """Split of the data whose prompts are read."""
    tasks: int = option(200, low=2)
    """Number of prompts, the first of the split."""


@configures("rlvr_exp.benchmarks.networks.attention")
@dataclass
@defaults(tasks=64)
class Attention(OfPrompts):
    """Attention of each head of the policy: to the token before, the same grid cell, repeated tokens."""

    sequences: int = option(32, low=2)
    """Sequences of random tokens, each repeated once."""
    length: int = option(25, low=4)
    """Tokens of a sequence before it is repeated."""


@configures("rlvr_exp.benchmarks.networks.embedding")
@dataclass
@defaults(split="train")
class Embedding(OfPrompts):
    """Positions of the data's tasks in the policy's network: the mean hidden state at the end of their prompts."""


@configures("rlvr_exp.benchmarks.solutions.measure")
@dataclass
class SolutionStore(Benchmark):
    """Solutions that the store takes and finds in a second."""

    rows: int = option(100_000, low=1000)
    """Solutions in the store."""


@configures("rlvr_exp.benchmarks.red_team.measure")
@dataclass
class RedTeam(Benchmark):
    """Wrong programs that attack their tests, by the run's seed, judged by the pytest verifier."""

    reads = JUDGES
    programs: int = option(1000, low=1)
    """Number of wrong programs."""


@dataclass
class FromPath(Benchmark):
    """Measurements on existing files."""

    path: str = ""
    """Folder or file that is read."""

    def problems(self) -> list[InputProblem]:
        if self.path:
            return []
        return [InputProblem("path", "not given", "nothing", "an existing folder or file", "", "benchmark.path=PATH")]
