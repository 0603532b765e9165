"""Options of the `benchmark` group: what +stage=benchmark measures, and how long."""

from dataclasses import dataclass, field

from rlvr_exp.config.options import configures, option

CONTESTS = ("python_io", "python_io_strict", "human_eval", "pytest", "dafny", "cache")


@dataclass
class Benchmark:
    """What every benchmark has."""

    rounds: int = option(5, low=2)
    """Pairs of measurements of each contest, interleaved; the interval is over them."""


@configures("rlvr_exp.benchmarks.verifiers.Verifiers")
@dataclass
class Verifiers(Benchmark):
    """Verdicts a second against one process a candidate and against published tools, in one run."""

    contests: list[str] = field(default_factory=lambda: list(CONTESTS), metadata=option([], choices=CONTESTS).metadata)
    """What is compared; python_io_strict holds each candidate in namespaces of its own."""
    candidates: int = option(200, low=4)
    """Python candidates of a round; a tenth of it for pytest."""
    dafny_programs: str = ""
    """Folder of Dafny programs (*.dfy), as DafnyBench's ground_truth; empty: the embedded programs."""
    dafny_limit: int = option(0, low=0)
    """Programs taken from the folder, in a fixed random order; 0: all."""


@configures("rlvr_exp.benchmarks.training.Training")
@dataclass
class Training(Benchmark):
    """Rollouts, verdicts, updates and full steps a second against trl.GRPOTrainer, with the run's own model and
    data."""

    steps: int = option(2, low=1)
    """Steps that are timed in each turn of a side, after a warm-up step."""
