"""Options of the node `solutions`, which exists under +stage=solutions alone: which store, what is done with it."""

from dataclasses import dataclass, field
from pathlib import Path

from rlvr_exp.config.options import option
from rlvr_exp.core.errors import InputProblem

LOOKS, GROWS = ("list", "export", "check"), ("import", "add", "merge")
METRICS = ("correct", "pairs_right", "size", "cpu_s", "step", "difficulty")
QUALITY = tuple(sign + name for name in METRICS for sign in ("", "-"))
FILTERS = ("task", "family", "operator", "correct", "difficulty_min", "difficulty_max", "limit")
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
    task: str = ""
    """Solutions of this task alone; empty: of all."""
    family: str = ""
    """Solutions of this family of tasks alone; empty: of all."""
    operator: str = option("", choices=("", "sampled", "refined", "relabelled", "gold"))
    """Solutions that this made; empty: any."""
    correct: str = option("any", choices=("any", "yes", "no"))
    """Whether they passed."""
    difficulty_min: float | None = None
    """Solutions of tasks at least so difficult; null: of any."""
    difficulty_max: float | None = None
    """Solutions of tasks at most so difficult; null: of any."""
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
        low, high = self.difficulty_min, self.difficulty_max
        if low is not None and high is not None and low > high:
            found.append(InputProblem("difficulty_min", "lets nothing through", str(low), f"at most {high}"))
        return found
