"""The root of the configuration: its nodes, and the stages with the nodes that each of them reads.

The options of a node are in the file of its group."""

import sys
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, make_dataclass
from pathlib import Path
from typing import Any

from omegaconf import MISSING

from rlvr_exp.config import engine  # noqa: F401  Its schemas are found by their targets alone.
from rlvr_exp.config.algorithm import PPO, SFT, Distilled, GroupMethod, Optimizer, ReinforcementLearning, Scheduler
from rlvr_exp.config.benchmark import Benchmark
from rlvr_exp.config.data import Data
from rlvr_exp.config.model import Model
from rlvr_exp.config.options import ANSWERS, JUDGES, LEARNS, SCHEMAS, UPDATES, Stage, allowed_of, node, option
from rlvr_exp.config.parallel import Parallel
from rlvr_exp.config.roles import Role
from rlvr_exp.config.run import Evaluation, Run
from rlvr_exp.config.solutions import Collect, SelfPlay, Solutions
from rlvr_exp.config.stage_options import (
    Compare,
    Evaluate,
    Infer,
    Overview,
    Prepare,
    Report,
    Rescore,
    Serve,
    Validate,
    Verify,
    View,
)
from rlvr_exp.config.study import Chain, Executor, Study
from rlvr_exp.config.verifier import Cache, Sandbox, Verifier
from rlvr_exp.core.domains import Domain, domains, load, register


@dataclass
class CoreConfig:
    """Everything that decides a run, but for the nodes of domains."""

    stage: str = MISSING
    """Name of the stage."""
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
    """Options of single roles of an environment with several roles, by role."""
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
    serve: Serve | None = None
    """Only under +stage=serve."""
    view: View | None = None
    """Only under +stage=view."""
    index: Overview | None = None
    """Only under +stage=index."""


ALWAYS = ("stage", "seed", "run", "parallel")
"""Read by every stage."""


STAGES: dict[str, Stage] = {
    "sft": Stage(
        "train a policy to imitate reference answers", (*ANSWERS, *UPDATES, "environment"), algorithm=SFT, shared=True
    ),
    "grpo": Stage(
        "train a policy by reinforcement learning against a verifier",
        (*LEARNS, "environment", "roles"),
        algorithm=ReinforcementLearning,
        module="reinforcement",
        shared=True,
    ),
    "distill": Stage(
        "train a policy on the distribution of a teacher, on its own completions",
        (*LEARNS, "environment", "roles"),
        algorithm=Distilled,
        module="reinforcement",
        shared=True,
    ),
    "ppo": Stage(
        "train a policy by PPO, with a learned value of every token",
        (*LEARNS, "environment", "roles"),
        algorithm=PPO,
        module="reinforcement",
        shared=True,
    ),
    "srl": Stage(
        "train a policy by the similarity of its actions to a teacher's (SRL)",
        (*LEARNS, "environment", "roles"),
        algorithm=GroupMethod,
        module="reinforcement",
        shared=True,
    ),
    "self_play": Stage(
        "train a policy in rounds on tasks and programs of its own",
        (*ANSWERS, *UPDATES, "environment", "curriculum"),
        algorithm=SFT,
        shared=True,
    ),
    "evaluate": Stage(
        "measure a policy: greedy and sampled pass@k with intervals",
        (*ANSWERS, "environment", "roles"),
        shared=True,
        resumes=True,
    ),
    "infer": Stage(
        "solve tasks with a policy: search, verify, retry", ("model", "engine", "data", *JUDGES, "environment", "roles")
    ),
    "collect": Stage("record a teacher's actions on tasks", ("model", "engine", "data", *JUDGES, "environment")),
    "verify": Stage("judge candidates from a file, without a model", JUDGES),
    "validate": Stage("check that reference answers pass and wrong programs fail", ("data", *JUDGES)),
    "rescore": Stage(
        "judge a run's rollouts again with another verifier or other limits",
        ("data", *JUDGES),
        inherits=("data", "verifier", "sandbox"),
    ),
    "serve": Stage(
        "serve tasks as an OpenEnv environment, and the verifier as POST /verify", ("data", *JUDGES, "environment")
    ),
    "solutions": Stage("list, export, merge and check stored programs", ("data",), inherits=("data",)),
    "compare": Stage("compare the options and metrics of runs"),
    "report": Stage("rewrite the report and the diagnosis of a run, finished or killed", reported=False),
    "view": Stage(
        "show all runs and samples below a folder on a local page that follows them", reported=False, direct=True
    ),
    "index": Stage("write the overview of all runs below a folder as one HTML file", reported=False, direct=True),
    "chain": Stage("run commands in sequence; each may read the results of earlier ones", resumes=True),
    "study": Stage("answer a question with many runs, plots and intervals", ("executor",), resumes=True),
    "prepare": Stage("make, check or convert data"),
    "benchmark": Stage("measure speed, memory and verdicts against common alternatives", resumes=True),
    "doctor": Stage("check what is installed and works on this machine", direct=True),
}

OWN_BATCH = ("infer", "collect")
"""Stages with a batch size of their own; the others take that of `evaluation`."""
STAGE_GROUPS = tuple(spec.name for spec in fields(CoreConfig) if spec.name in STAGES and allowed_of(spec).node)
"""Stages whose own node is chosen in a group of their name; under other stages it is there, unread."""
Config = CoreConfig
"""The configuration with the nodes of all domains. `extend` replaces it, so code that needs the class reads `schema.Config`."""


def extend(added: Iterable[Domain]) -> None:
    """Add the schemas, stages, nodes and options of domains."""
    for one in added:
        if one.schemas:
            load(one.schemas)
        STAGES.update(load(one.stages) if one.stages else {})
    own: list[tuple[str, Any, Any]] = []
    further: dict[str, list[type]] = {}
    for one in domains().values():
        own += [(name, load(path), field(default_factory=load(path))) for name, path in one.nodes.items()]
        own += [(name, load(path) | None, None) for name, path in one.stage_nodes.items()]
        for name, path in one.options.items():
            further.setdefault(name, []).append(load(path))
    for name, schemas in further.items():
        wide = f"{schemas[0].__mro__[1].__name__}WithDomains"  # In this module, so that instances can be pickled.
        namespace = {"__module__": __name__, "__doc__": schemas[0].__mro__[1].__doc__}
        globals()[wide] = make_dataclass(wide, [], bases=tuple(schemas), namespace=namespace)
        own.append((name, globals()[wide] | None, None))
    namespace = {"__module__": __name__, "__doc__": "Everything that decides a run."}
    globals()["Config"] = make_dataclass("Config", own, bases=(CoreConfig,), namespace=namespace)


def add_folder(folder: Path) -> None:
    """Add a user's folder to Python's path, and its domains to the configuration.

    Raises:
        InputError: a domain of the folder cannot be used.
    """
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    if new := register(folder):
        extend(new)


def stage_nodes() -> frozenset[str]:
    """Nodes that exist only under the stage of their name."""
    return frozenset({spec.name for spec in fields(Config)} & STAGES.keys()) - {*STAGE_GROUPS}


def reads(of: str | Config, node: str) -> bool:
    """Whether a stage, or the stage of a configuration with the choice in its own group, reads a node."""
    return node in (nodes(of) if isinstance(of, str) else nodes(of.stage, choice(of)))


def sampling_node(config: Config) -> str:
    """The node whose `batch_size` bounds the completions that the stage samples at once."""
    return next((name for name in OWN_BATCH if getattr(config, name) is not None), "evaluation")


def choice(config: Config) -> Any:
    """The target of the stage's own group, such as `benchmark`; None for stages without one."""
    return getattr(getattr(config, str(config.stage), None), "_target_", None)


def trains(stage: str) -> bool:
    """Whether a stage trains weights; a name that is no stage does not."""
    return stage in STAGES and "optimizer" in STAGES[stage].reads


def resumable(stage: str) -> bool:
    """Whether a run of the stage takes `run.resume`."""
    return trains(stage) or (stage in STAGES and STAGES[stage].resumes)


def repeatable(stage: str) -> bool:
    """Whether options, data and initial weights determine the result of a run of the stage."""
    return trains(stage) or stage in ("evaluate", "benchmark")


def measures(stage: str) -> bool:
    """Whether a run of the stage is one measurement: it resumes within it, by its directory alone, and can be complete."""
    return stage == "evaluate"


def imitates(stage: str) -> bool:
    """Whether a stage trains on answers and not on rewards."""
    return stage in STAGES and STAGES[stage].algorithm is SFT


def nodes(stage: str, choice: Any = None) -> frozenset[str]:
    """The nodes that a stage reads. `choice`: the target of its own group, whose schema lists further nodes."""
    chosen = getattr(SCHEMAS.get(str(choice)), "reads", ())
    return frozenset((*ALWAYS, stage, *STAGES[stage].reads, *chosen))


extend(domains().values())
