"""Old against new verdicts of the same completions: which buckets changed, and the success rates, step by step.

A completion that was carried over counts in the step that sampled it. Rates are means over tasks with their 95%
interval over tasks; a completion without a verdict on a side enters no rate of that side. Verifies nothing and reads no file.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from rlvr_exp.core.measures import counted
from rlvr_exp.core.statistics import mean_interval
from rlvr_exp.evaluation.metrics import Rate
from rlvr_exp.records.rollout_files import RolloutRow
from rlvr_exp.verifiers.base import BUCKETS, Verdict

VERDICT, SCORE = "verdict", "score"
"""Kinds of change: the outcome with its bucket or rule, or only the number of passed cases."""
ORDER = ("passed", *BUCKETS, "rejected", "no_verdict")


def label(verdict: Verdict) -> str:
    return f"rejected: {verdict.rule}" if verdict.outcome == "rejected" else verdict.reason


def change(old: Verdict, new: Verdict) -> str:
    """VERDICT, SCORE, or empty where the two agree."""
    if label(old) != label(new):
        return VERDICT
    return SCORE if (old.passed, old.total) != (new.passed, new.total) else ""


@dataclass
class _Task:
    """Counts of one task in one step: (passed, judged) on either side."""

    old: list[int] = field(default_factory=lambda: [0, 0])
    new: list[int] = field(default_factory=lambda: [0, 0])


class Rescored:
    """Collects completions with their old and new verdicts."""

    def __init__(self) -> None:
        self.table: Counter[tuple[str, str]] = Counter()
        """(old label, new label) -> completions."""
        self.scores = 0
        """Completions whose verdict stayed and whose passed cases did not."""
        self._steps: dict[int, dict[str, _Task]] = defaultdict(lambda: defaultdict(_Task))

    def add(self, row: RolloutRow, new: Verdict) -> None:
        if row.waited:  # It stands in an earlier step's file already.
            return
        old = row.verdict
        self.table[label(old), label(new)] += 1
        self.scores += change(old, new) == SCORE
        counted = self._steps[row.step][row.completion.task.id]
        for side, verdict in ((counted.old, old), (counted.new, new)):
            if verdict.outcome != "no_verdict":
                side[0] += verdict.outcome == "passed"
                side[1] += 1

    @property
    def count(self) -> int:
        return self.table.total()

    @property
    def changed(self) -> int:
        """Completions with another outcome, bucket or rule."""
        return sum(count for (old, new), count in self.table.items() if old != new)

    def metrics(self) -> dict[str, float]:
        counts = {"completions": self.count, "changed": self.changed, "scores_changed": self.scores}
        counts |= {"gained": self._moved(to="passed"), "lost": self._moved(of="passed")}
        return {**counts, "agreement": 1 - self.changed / self.count if self.count else 1.0}

    def _moved(self, of: str = "", to: str = "") -> int:
        pairs = ((old, new, count) for (old, new), count in self.table.items() if old != new)
        return sum(count for old, new, count in pairs if of in ("", old) and to in ("", new))

    def rates(self) -> dict[str, Rate]:
        """Success over all steps by the old verdicts and by the new; a side without any verdict is left out."""
        whole: dict[str, _Task] = defaultdict(_Task)
        for tasks in self._steps.values():
            for name, count in tasks.items():
                for side in ("old", "new"):
                    mine, theirs = getattr(whole[name], side), getattr(count, side)
                    mine[0], mine[1] = mine[0] + theirs[0], mine[1] + theirs[1]
        return _rates(whole)

    def steps(self) -> dict[int, dict[str, Rate]]:
        """The same for each step."""
        return {step: _rates(tasks) for step, tasks in sorted(self._steps.items())}

    def to_dict(self) -> dict[str, Any]:
        rows = [{"old": old, "new": new, "completions": count} for (old, new), count in self.table.most_common()]
        steps = [{"step": step, **_plain(rates)} for step, rates in self.steps().items()]
        return {"metrics": self.metrics(), "rates": _plain(self.rates()), "table": rows, "steps": steps}

    def text(self) -> str:
        """The tables in Markdown, which read well as text too."""
        metrics = self.metrics()
        head = (
            f"{self.count} completions rescored: {metrics['agreement']:.2%} agree, {self.changed} changed "
            f"({metrics['gained']:.0f} pass now, {metrics['lost']:.0f} no longer), of the others {self.scores} passed "
            "another number of cases"
        )
        overall = " -> ".join(f"{name} {_shown(rate)}" for name, rate in self.rates().items())
        parts = [head, f"success: {overall or 'nothing was judged'}", self._buckets(), self._by_step()]
        return "\n\n".join(parts) + "\n"

    def _buckets(self) -> str:
        olds, news = ([*dict.fromkeys(sorted((pair[side] for pair in self.table), key=_place))] for side in (0, 1))
        rows = [[old, *(str(self.table[old, new] or "") for new in news)] for old in olds]
        return _table(["old \\ new", *news], rows)

    def _by_step(self) -> str:
        rows = [
            [str(step), *(_shown(rates[side]) if side in rates else "-" for side in ("old", "new"))]
            for step, rates in self.steps().items()
        ]
        return _table(["step", "success, old verdicts", "success, new verdicts"], rows)


def _rates(tasks: Mapping[str, _Task]) -> dict[str, Rate]:
    found = {}
    for side in ("old", "new"):
        counts = [count for task in tasks.values() if (count := getattr(task, side))[1]]
        if counts:
            interval = mean_interval([passed / judged for passed, judged in counts])
            found[side] = Rate(*interval, n=len(counts), samples=max(judged for _, judged in counts))
    return found


def _plain(rates: Mapping[str, Rate]) -> dict[str, Any]:
    return {side: asdict(rate) for side, rate in rates.items()}


def _shown(rate: Rate) -> str:
    return f"{rate.value:.1%} [{rate.low:.1%}, {rate.high:.1%}], {counted(rate.n)}"


def _place(shown: str) -> tuple[int, str]:
    name = shown.partition(":")[0]
    return (ORDER.index(name) if name in ORDER else len(ORDER)), shown


def _table(head: list[str], rows: list[list[str]]) -> str:
    cells = [head, *rows]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    padded = [[text.ljust(width) for text, width in zip(row, widths, strict=True)] for row in cells]
    lines = [f"| {' | '.join(row)} |" for row in padded]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([lines[0], rule, *lines[1:]])
