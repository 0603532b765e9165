"""Options of +stage=collect and +stage=solutions: data that a run samples or finds, and keeps for training."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlvr_exp.config.algorithm import Drawing
from rlvr_exp.config.options import option
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
"""What an action cannot do without."""


@dataclass
class Solutions:
    """Options of +stage=solutions."""

    action: str = option("list", choices=(*LOOKS, *GROWS))
    """list, export: solutions that the filters let through; check: what is wrong with the store; import: rows of a file;
    add: what passed in a run's rollouts; merge: another store's. The last three make the store where there is none."""
    path: str = ""
    """The store, which runs and processes share; empty: solutions.sqlite in this run's own directory."""
    input: str = ""
    """import: solutions, one JSON object a line (gzip allowed), as export writes them; merge: the other store."""
    run: str = ""
    """add: the run directory; its data is inherited, except for options that are given here."""
    output: str = ""
    """export: the file of JSON lines, or with form=sft a new or empty folder; empty: solutions.jsonl or sft in this run's
    own directory."""
    form: str = option("jsonl", choices=("jsonl", "sft"))
    """jsonl: rows that import reads; sft: correct programs as golds of their tasks, for +stage=sft with `data.path`."""
    correct: str = option("any", choices=("any", "yes", "no"))
    """Whether they passed."""
    limit: int = option(0, low=0)
    """The first N of the ranking; 0: all, and 20 in a list."""
    quality: list[str] = field(default_factory=list, metadata=option([], choices=QUALITY).metadata)
    """The ranking, best first: the first metric decides, the next where it ties, then the order of insertion; `-NAME` turns
    one round. Of a new store: by which the best stay. Empty: [correct,pairs_right,size]."""
    per_task: int = option(0, low=0)
    """Most solutions of a task in a new store, half of them the best and half the most different; 0: 50."""

    def problems(self) -> list[InputProblem]:
        return [*self._unused(), *self._contradictions()]

    def _unused(self) -> list[InputProblem]:
        empty = Solutions()
        return [
            InputProblem(name, f"has no effect with action={self.action}", str(value), "", "", "drop it")
            for name, actions in USED_BY.items()
            if (value := getattr(self, name)) != getattr(empty, name) and self.action not in actions
        ]

    def _contradictions(self) -> list[InputProblem]:
        found = []
        if self.action == "merge" and self.path and Path(self.path).resolve() == Path(self.input).resolve():
            found.append(InputProblem("input", "is the store itself", self.input, "another store"))
        if self.form == "sft" and self.correct == "no":
            found.append(InputProblem("correct", "golds have to pass", "no", "any, yes", "", "drop it"))
        if self.output.endswith(".gz"):
            found.append(InputProblem("output", "is written as plain text", self.output, "a name without .gz"))
        return found


TEACHERS = ("policy", "golds")


@dataclass
class Collect(Drawing):
    """Options of +stage=collect."""

    teacher: str = option("policy", choices=TEACHERS)
    """Who acts. policy: the model node's, or the endpoint of engine=server; golds: the data's own actions, rule by rule."""
    split: str = "train"
    """Split of the data whose tasks are shown."""
    skip: int = option(0, low=0)
    """The first N tasks are left out, such as those that another teacher has."""
    tasks: int = option(0, low=0)
    """N tasks from there; 0: all."""
    samples: int = option(1, low=1)
    """Trajectories sampled of each task."""
    output: str = ""
    """Trajectories, one JSON object a line, in the order of the tasks; empty: trajectories.jsonl in the run directory."""
    max_tokens: int = option(0, low=0)
    """Stop after so many sampled tokens in all, those of an earlier run of the same output among them; 0: no limit."""
    max_cost: float = option(0.0, low=0)
    """Stop once this run's endpoint has cost so much (engine.prompt_price, engine.completion_price); 0: no limit."""
    batch_size: int = option(64, low=1)
    """Trajectories at once. They are written after each batch. If a preset sets a smaller evaluation.batch_size, that is the
    default."""

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
