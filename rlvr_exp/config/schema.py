"""The root of the configuration: which nodes there are. Each node's options live in its group's own file."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, make_dataclass
from typing import TYPE_CHECKING, Any

from omegaconf import MISSING

from rlvr_exp.config import (  # noqa: F401  These have schemas that are found by their targets alone.
    curriculum,
    engine,
    environment,
    reward,
    search,
)
from rlvr_exp.config.benchmark import Benchmark
from rlvr_exp.config.chain import Chain
from rlvr_exp.config.data import Data
from rlvr_exp.config.infer import Infer
from rlvr_exp.config.model import Model
from rlvr_exp.config.optimizer import Optimizer, Scheduler
from rlvr_exp.config.options import node, option
from rlvr_exp.config.parallel import Parallel
from rlvr_exp.config.prepare import Prepare
from rlvr_exp.config.roles import Role
from rlvr_exp.config.run import Compare, Evaluate, Evaluation, Report, Rescore, Run, Validate, Verify
from rlvr_exp.config.self_play import SelfPlay
from rlvr_exp.config.solutions import Collect, Solutions
from rlvr_exp.config.study import Executor, Study
from rlvr_exp.config.verifier import Cache, Sandbox, Verifier
from rlvr_exp.core.domains import domains, load

for _domain in domains().values():
    load(_domain.schemas)


@dataclass
class CoreConfig:
    """Everything that decides a run, but for the nodes of domains."""

    stage: str = MISSING
    """What the run does."""
    seed: int = option(0, low=0, high=4_000_000_000)
    """The one seed of the run; libraries take 32 bits."""
    model: Model = field(default_factory=Model)
    data: Any = node(base=Data)
    verifier: Any = node(base=Verifier)
    sandbox: Sandbox = field(default_factory=Sandbox)
    cache: Cache = field(default_factory=Cache)
    reward: Any = node()
    algorithm: Any = node()
    curriculum: Any = node()
    environment: Any = node()
    engine: Any = node()
    optimizer: Any = node(base=Optimizer)
    roles: dict[str, Role] = field(default_factory=dict)
    """What differs for a role of an environment with several, by its name."""
    scheduler: Any = node(base=Scheduler)
    parallel: Parallel = field(default_factory=Parallel)
    tracking: Any = node()
    benchmark: Any = node(base=Benchmark)
    prepare: Any = node(base=Prepare)
    chain: Any = node(base=Chain)
    study: Any = node(base=Study)
    executor: Any = node(base=Executor)
    evaluation: Evaluation = field(default_factory=Evaluation)
    run: Run = field(default_factory=Run)
    evaluate: Evaluate | None = None
    """Only under +stage=evaluate."""
    self_play: SelfPlay | None = None
    """Only under +stage=self_play."""
    collect: Collect | None = None
    """Only under +stage=collect."""
    infer: Infer | None = None
    """Only under +stage=infer."""
    verify: Verify | None = None
    """Only under +stage=verify."""
    validate: Validate | None = None
    """Only under +stage=validate."""
    rescore: Rescore | None = None
    """Only under +stage=rescore."""
    solutions: Solutions | None = None
    """Only under +stage=solutions."""
    compare: Compare | None = None
    """Only under +stage=compare."""
    report: Report | None = None
    """Only under +stage=report."""


def _schemas(nodes: Iterable[Mapping[str, str]]) -> Iterator[tuple[str, type]]:
    return ((name, load(path)) for of_domain in nodes for name, path in of_domain.items())


if TYPE_CHECKING:
    Config = CoreConfig
else:
    _added = list(domains().values())
    Config = make_dataclass(
        "Config",
        [
            *((name, schema, field(default_factory=schema)) for name, schema in _schemas(one.nodes for one in _added)),
            *((name, schema | None, None) for name, schema in _schemas(one.stage_nodes for one in _added)),
        ],
        bases=(CoreConfig,),
        namespace={"__module__": __name__, "__doc__": "Everything that decides a run."},
    )
