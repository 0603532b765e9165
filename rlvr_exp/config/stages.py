"""The table of stages: what exists, in one line each, and which nodes of the configuration each one reads."""

from dataclasses import dataclass, fields
from typing import Any

from rlvr_exp.config.algorithm import SFT, GroupMethod, ReinforcementLearning
from rlvr_exp.config.options import allowed_of
from rlvr_exp.config.schema import Config

ALWAYS = ("stage", "seed", "run", "parallel")
"""Read by every stage."""


@dataclass(frozen=True)
class Stage:
    """One stage. Its own options, where it has any, are the node of its name."""

    about: str
    reads: tuple[str, ...]
    algorithm: type | None = None
    """What the schema of its `algorithm` node derives from."""
    module: str = ""
    """Module below rlvr_exp.stages that runs it; empty: the one of its name."""


_JUDGES = ("verifier", "sandbox", "cache")
_ANSWERS = ("model", "data", *_JUDGES, "evaluation")
_UPDATES = ("algorithm", "optimizer", "scheduler", "tracking")

STAGES: dict[str, Stage] = {
    "sft": Stage("train a policy to imitate gold answers", (*_ANSWERS, *_UPDATES, "environment"), SFT),
    "grpo": Stage(
        "train a policy by reinforcement learning against a verifier",
        (*_ANSWERS, *_UPDATES, "reward", "curriculum", "environment", "roles"),
        ReinforcementLearning,
        module="reinforcement",
    ),
    "ppo": Stage(
        "the same with a value for every token: PPO",
        (*_ANSWERS, *_UPDATES, "reward", "curriculum", "environment", "roles"),
        ReinforcementLearning,
        module="reinforcement",
    ),
    "cascade": Stage(
        "train a writer and an annotator of Dafny programs on what the two of them prove",
        (*_ANSWERS, *_UPDATES, "reward", "curriculum", "cascade", "roles"),
        GroupMethod,
        module="reinforcement",
    ),
    "evaluate": Stage(
        "measure a policy: greedy and sampled pass@k with intervals", (*_ANSWERS, "environment", "roles", "evaluate")
    ),
    "infer": Stage("solve tasks with a policy: search, verify, retry", ("model", "data", *_JUDGES, "roles", "infer")),
    "verify": Stage("judge candidates from a file, without a model", (*_JUDGES, "verify")),
    "validate": Stage("see whether golds pass and wrong programs fail, task by task", ("data", *_JUDGES, "validate")),
    "rescore": Stage(
        "rescore a run's rollouts: new verifier or limits, old against new verdicts", ("data", *_JUDGES, "rescore")
    ),
    "replay": Stage(
        "repeat one step of a run from its rollouts, and see where it differs",
        ("model", "data", *_JUDGES, "reward", "algorithm", "replay"),
    ),
    "compare": Stage("lay runs side by side: differing options and metrics", ("compare",)),
    "report": Stage("rewrite a run's report.html, with its diagnosis; of a killed run too", ("report",)),
    "prepare": Stage("make data: embedded corpora, rows, checked and translated sets", ("prepare",)),
    "benchmark": Stage("measure against what people use today: speed, memory, verdicts", ("benchmark",)),
}


CHOSEN: dict[str, tuple[str, ...]] = {
    "rlvr_exp.benchmarks.training.Training": (*_ANSWERS, *_UPDATES, "reward", "curriculum", "environment"),
    "rlvr_exp.benchmarks.memory.measure": (*_ANSWERS, *_UPDATES, "reward", "curriculum"),
    "rlvr_exp.benchmarks.packing.measure": (*_ANSWERS, *_UPDATES, "reward", "curriculum"),
    "rlvr_exp.benchmarks.sampling.measure": (*_ANSWERS, *_UPDATES, "reward", "curriculum"),
    "rlvr_exp.benchmarks.verifiers.Verifiers": ("sandbox",),
    "rlvr_exp.benchmarks.ast_grep_rules.measure": ("sandbox",),
    "rlvr_exp.benchmarks.agreement.measure.measure": _JUDGES,
    "rlvr_exp.benchmarks.dafny_universal.measure": _JUDGES,
    "rlvr_exp.corpora.dafny.proving.make": _JUDGES,
    "rlvr_exp.corpora.dafny.usable_examples.make": _JUDGES,
    "rlvr_exp.corpora.rows.make": ("data", "verifier"),
}
"""Target of a stage's own group -> the nodes that it reads next to its own: the benchmark of training runs a training."""


STAGE_NODES = frozenset(STAGES) & {spec.name for spec in fields(Config) if not allowed_of(spec).node}
"""Nodes that exist only under the stage of their name; a group named like a stage exists, unread, under the others."""


def reads(of: str | Config, node: str) -> bool:
    """Whether a stage, or the stage of a configuration with the choice in its own group, reads a node."""
    return node in (nodes(of) if isinstance(of, str) else nodes(of.stage, choice(of)))


def choice(config: Config) -> Any:
    """The target of the stage's own group, such as `benchmark`; None for stages without one."""
    return getattr(getattr(config, str(config.stage), None), "_target_", None)


def trains(stage: str) -> bool:
    """Whether a stage trains weights; a name that is no stage does not."""
    return stage in STAGES and "optimizer" in STAGES[stage].reads


def nodes(stage: str, choice: Any = None) -> frozenset[str]:
    """The nodes that a stage reads; `choice` is the target of its own group."""
    return frozenset((*ALWAYS, *STAGES[stage].reads, *CHOSEN.get(str(choice), ())))
