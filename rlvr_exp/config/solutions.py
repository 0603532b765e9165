"""Options of the stages collect, solutions and self_play: data that a policy makes, and that is kept for training."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlvr_exp.config.algorithm import Batched, Drawing
from rlvr_exp.config.options import option
from rlvr_exp.config.parallel import SHARDING
from rlvr_exp.core.errors import InputProblem

LOOKS, GROWS = ("list", "export", "check"), ("import", "add", "merge")
METRICS = ("correct", "pairs_right", "size", "cpu_s", "step", "difficulty")
QUALITY = tuple(sign + name for name in METRICS for sign in ("", "-"))
FILTERS = ("correct", "limit")
USED_BY = {
    **dict.fromkeys(FILTERS, ("list", "export")),
    **dict.fromkeys(("output", "form"), ("export",)),
    "input": ("import", "merge"),
    "run": ("add",),
    "per_task": GROWS,
    "quality": (*GROWS, "list", "export"),
}
"""Options by the actions that read them."""
NEEDED = {"import": "input", "merge": "input", "add": "run", **dict.fromkeys(LOOKS, "path")}
"""The option that an action requires."""


@dataclass
class Solutions:
    """Options of +stage=solutions."""

    action: str = option("list", choices=(*LOOKS, *GROWS))
    """list, export: solutions that pass the filters. check: faults of the store. import: rows of a file. add: passing
    rollouts of a run. merge: another store. The last three create a missing store."""
    path: str = ""
    """The store. Several runs and processes may share it. Empty: solutions.sqlite in this run's directory."""
    input: str = ""
    """import: solutions, one JSON object per line (gzip allowed), as export writes them. merge: the other store."""
    run: str = ""
    """add: the run directory. Its data options apply unless they are given here."""
    output: str = ""
    """export: file of JSON lines; with form=sft a new or empty folder. Empty: solutions.jsonl or sft in this run's
    directory."""
    form: str = option("jsonl", choices=("jsonl", "sft"))
    """jsonl: rows that import reads. sft: correct programs as reference answers of their tasks, for +stage=sft with
    `data.path`."""
    correct: str = option("any", choices=("any", "yes", "no"))
    """Filter: solutions that passed (yes), that failed (no), or any."""
    limit: int = option(0, low=0)
    """First N solutions of the ranking. 0: all, or 20 in a list."""
    quality: list[str] = field(default_factory=list, metadata=option([], choices=QUALITY).metadata)
    """Ranking, best first: the first metric decides, the next one breaks ties, then the order of insertion. `-NAME`
    reverses a metric. A new store keeps the best by it. Empty: [correct,pairs_right,size]."""
    per_task: int = option(0, low=0)
    """Most solutions of a task in a new store: half of them the best, half the most different. 0: 50."""

    def problems(self) -> list[InputProblem]:
        found, empty = [], Solutions()
        for name, actions in USED_BY.items():
            if (value := getattr(self, name)) != getattr(empty, name) and self.action not in actions:
                what = f"has no effect with action={self.action}"
                found.append(InputProblem(name, what, str(value), "", "", "drop it"))
        if self.action == "merge" and self.path and Path(self.path).resolve() == Path(self.input).resolve():
            found.append(InputProblem("input", "is the store itself", self.input, "another store"))
        if self.form == "sft" and self.correct == "no":
            found.append(InputProblem("correct", "reference answers have to pass", "no", "any, yes", "", "drop it"))
        if self.output.endswith(".gz"):
            found.append(InputProblem("output", "is written as plain text", self.output, "a name without .gz"))
        return found


TEACHERS = ("policy", "golds")


@dataclass
class Collect(Batched):
    """Options of +stage=collect."""

    teacher: str = option("policy", choices=TEACHERS)
    """Source of the actions. policy: the model node, or the endpoint of engine=server. golds: the data's own actions, rule
    by rule."""
    split: str = "train"
    """Split of the data."""
    skip: int = option(0, low=0)
    """Number of tasks at the start that are left out, for example those of another teacher."""
    tasks: int = option(0, low=0)
    """Number of tasks after these. 0: all."""
    samples: int = option(1, low=1)
    """Trajectories sampled for each task."""
    output: str = ""
    """File for the trajectories, one JSON object per line, in the order of the tasks. Empty: trajectories.jsonl in the run
    directory."""
    max_tokens: int = option(0, low=0)
    """Stop after this many sampled tokens, including those of earlier runs with the same output. 0: no limit."""
    max_cost: float = option(0.0, low=0)
    """Stop when the endpoint of this run has cost this much (engine.prompt_price, engine.completion_price). 0: no limit."""

    def problems(self) -> list[InputProblem]:
        found = self.drawing_problems()
        if self.teacher == "policy":
            return found
        unread: dict[str, Any] = {
            "samples": 1,
            "temperature": 1.0,
            "top_k": 0,
            "top_p": 1.0,
            "min_p": 0.0,
            "max_tokens": 0,
            "max_cost": 0.0,
        }
        for name, default in unread.items():
            if getattr(self, name) != default:
                what, got = "has no effect here: golds are not sampled", str(getattr(self, name))
                found.append(InputProblem(name, what, got, "its default", "", "collect.teacher=policy, or drop it"))
        return found


HINDSIGHT = ("relabelled", "transferred")
"""Kinds of rows whose task was made from a program."""
KINDS = (*HINDSIGHT, "correct", "refined")
"""Kinds of self-made rows; the rest of a batch is gold."""


@dataclass
class SelfPlay(Drawing):
    """Rounds of self-play. A policy samples answers, turns them into tasks with reference answers, and imitates them
    together with the data's own."""

    rounds: int = option(2, low=1)
    """Number of rounds. algorithm.max_steps is divided among them."""
    weights: str = option("last", choices=("last", "base"))
    """Weights at the start of a round. last: those of the last round. base: those of the start of the run, with a new
    optimizer and schedule."""
    tasks: int = option(6000, low=0)
    """Tasks sampled in a round, chosen by the curriculum. 0: as many as there are."""
    samples: int = option(4, low=1)
    """Completions sampled for each task."""
    refine: int = option(0, low=0)
    """Failed answers to refine for each task that no sample solved. Thompson sampling chooses them, and the prompt shows
    the verifier's feedback. 0: none."""
    relabelled: float = option(0.35, low=0, high=1)
    """Share of the imitated rows that are programs of the policy with the task that they solve in hindsight. 0: none."""
    transferred: float = option(0.1, low=0, high=1)
    """Share of the imitated rows that are reference answers applied to other tasks. 0: none."""
    correct: float = option(0.0, low=0, high=1)
    """Share of the imitated rows that are passing answers of the policy, other than the reference answer."""
    refined: float = option(0.0, low=0, high=1)
    """Share of the imitated rows that show a failed answer, the verifier's feedback, and a passing answer."""
    golds_alone: float = option(0.25, low=0, high=1)
    """Last share of the updates, which imitates only reference answers of the data. It has no effect if the data have none."""
    per_behaviour: int = option(1, low=0)
    """Most rows with the same behaviour on a task, over all rounds. 0: no limit."""
    per_family: int = option(400, low=0)
    """Most rows of a kind from the tasks of a family in a round. 0: no limit."""
    per_round: int = option(20_000, low=0)
    """Most rows of a kind in a round. 0: no limit."""
    choose: str = option("diverse", choices=("diverse", "best", "random"))
    """Rows of a task that are kept if there are more than `per_task`: diverse (half the best, half the most different),
    best, or random."""
    per_task: int = option(4, low=0)
    """Most rows of a kind from a task in a round. 0: no limit."""
    solutions: str = ""
    """Store of solutions, which several runs may share. Empty: solutions.sqlite in the run directory."""

    def problems(self) -> list[InputProblem]:
        found = self.drawing_problems()
        shares = {kind: getattr(self, kind) for kind in KINDS}
        if sum(shares.values()) > 1:
            got = " + ".join(f"{kind} {share:g}" for kind, share in shares.items())
            found.append(InputProblem("relabelled", "shares of rows add up to more than 1", got, "a sum of at most 1"))
        if not self.per_task and self.choose != SelfPlay.choose:
            remedy = "self_play.per_task=4, or drop it"
            found.append(InputProblem("choose", "has no effect here", self.choose, "its default", "", remedy))
        return found

    def conflicts(self, config: Any, reads: Callable[[str], bool]) -> Iterator[InputProblem]:
        steps = getattr(config.algorithm, "max_steps", self.rounds)
        if steps < self.rounds:
            what, remedy = "a round would have no update", f"algorithm.max_steps={self.rounds} or more"
            got = f"{self.rounds} rounds, {steps} steps"
            yield InputProblem("self_play.rounds", what, got, "at most algorithm.max_steps", "", remedy)
        if self.from_base and config.parallel.strategy in SHARDING:
            what = "DeepSpeed holds weights of its own, which no round can go back from"
            yield InputProblem("self_play.weights", what, "base", "last under ZeRO", "", "self_play.weights=last")

    @property
    def without_golds(self) -> bool:
        """There is something to imitate even if the data have no reference answers."""
        return self.relabelled > 0 or self.correct > 0

    @property
    def from_base(self) -> bool:
        """Each round trains from the weights that the run began with."""
        return self.weights == "base"
