"""How much width and depth are worth: held-out loss against size, by Spearman's rank correlation over sizes and seeds.

At equal tokens by the metric after training; at equal time by the loss on `dev` that each run had reached when the fastest
run of its kind ended, between two measurements in its rows of metrics. The second is fair where the learning rate is constant,
as by default.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rlvr_exp.config import study as options
from rlvr_exp.config.scales import HELD_OUT_LOSS
from rlvr_exp.core.crossed import holm
from rlvr_exp.core.statistics import LEVEL, Estimate, rank_correlation
from rlvr_exp.report.plots import Curve, curves
from rlvr_exp.studies.budget import EVALUATE_MORE_OFTEN, budgets, metric_at, unequal, used
from rlvr_exp.studies.model_arms import MODELS, Row, model_findings
from rlvr_exp.studies.study import Findings, Job, Run, Study

KINDS = ("width", "depth")
TOKENS, TIME = "equal tokens", "equal time"


class Capacity(options.Capacity, Study):
    def jobs(self) -> list[Job]:
        widths = [job for width in self.widths for job in self.arm(f"width_{width}", self._words_of(width))]
        return widths + [
            job for depth in self.depths for job in self.arm(f"depth_{depth}", [f"model.scratch.layers={depth}"])
        ]

    def _words_of(self, width: int) -> list[str]:
        heads = width // self.head_dim
        numbers = {
            "hidden": width,
            "heads": heads,
            "kv_heads": heads,
            "head_dim": self.head_dim,
            "intermediate": 3 * width,
        }
        return [f"model.scratch.{name}={number}" for name, number in numbers.items()]

    def summarise(self, runs: Sequence[Run]) -> Findings:
        found = model_findings(runs, self.metric, self.equal)
        losses = [*_at_equal_tokens(runs, self.metric), *_at_equal_time(runs)]
        ranks = _corrected([row for kind in KINDS for at in (TOKENS, TIME) if (row := _rank(losses, kind, at))])
        unfair = [unequal(budgets(runs, self.equal), self.equal)] if self.equal != "none" else []
        others = [sentence for sentence in found.answer if sentence not in unfair]
        answer = [*filter(None, unfair), *map(_sentence, ranks), *_untimed(runs, losses), *others]
        tables = {**found.tables, "rank_correlation": ranks, "losses": losses}
        return replace(
            found, answer=answer, tables=tables, plots={**found.plots, **_plot(found.tables[MODELS], self.metric)}
        )


def _size(run: Run) -> dict[str, Any]:
    kind, _, size = run.job.arm.partition("_")
    return {"of": kind, "size": int(size), "seed": run.job.seed}


def _at_equal_tokens(runs: Sequence[Run], metric: str) -> Iterator[Row]:
    for run in runs:
        if run.completed and metric in (rates := run.summary.get("after") or {}):
            yield {**_size(run), "at": TOKENS, "measure": metric, "value": rates[metric]["value"]}


def _at_equal_time(runs: Sequence[Run]) -> Iterator[Row]:
    """The loss of each run after the seconds of the fastest of its kind; of a kind none where some run has none by then."""
    for kind in KINDS:
        own = [run for run in runs if run.completed and _size(run)["of"] == kind]
        seconds = min((used(run.directory, "seconds") for run in own), default=0.0)
        losses = [(run, metric_at(run.directory, HELD_OUT_LOSS, "seconds", seconds)) for run in own]
        if all(loss is not None for _, loss in losses):
            for run, loss in losses:
                yield {**_size(run), "at": TIME, "measure": HELD_OUT_LOSS, "value": loss, "seconds": seconds}


def _rank(losses: Sequence[Row], kind: str, at: str) -> dict[str, Any]:
    """Empty where fewer than two sizes have a loss."""
    some = [row for row in losses if row["of"] == kind and row["at"] == at]
    sizes, values = [row["size"] for row in some], [row["value"] for row in some]
    if len(set(sizes)) < 2 or len(set(values)) < 2:
        return {}
    correlation, chance = rank_correlation(sizes, values)
    counts = {"sizes": len(set(sizes)), "seeds": len({row["seed"] for row in some})}
    return {"of": kind, "at": at, "measure": some[0]["measure"], "correlation": correlation, "p": chance, **counts}


def _corrected(ranks: Sequence[Row]) -> list[Row]:
    return [{**row, "p_holm": p} for row, p in zip(ranks, holm([row["p"] for row in ranks]), strict=True)]


def _untimed(runs: Sequence[Run], losses: Sequence[Row]) -> Iterator[str]:
    """A sentence for each kind of size that equal time says nothing of."""
    timed = {row["of"] for row in losses if row["at"] == TIME}
    for kind in dict.fromkeys(_size(run)["of"] for run in runs if run.completed):
        if kind not in timed:
            yield f"At equal time nothing is said of {kind}: some run had no {HELD_OUT_LOSS} when the fastest ended; {EVALUATE_MORE_OFTEN}."


def _sentence(row: Mapping[str, Any]) -> str:
    sure = row["p_holm"] <= LEVEL
    way = "falls" if row["correlation"] < 0 else "rises"
    what = (
        f"{row['measure']} {way} with {row['of']}"
        if sure
        else f"cannot tell whether {row['measure']} changes with {row['of']}"
    )
    counted = f"{row['sizes']} sizes, {row['seeds']} {'seed' if row['seeds'] == 1 else 'seeds'}"
    return f"At {row['at']} {what}: rank correlation {row['correlation']:+.2f}, p = {row['p_holm']:.3f}, {counted}."


def _plot(rows: Sequence[Row], metric: str) -> dict[str, Any]:
    """The metric against parameters, a curve for each kind of size."""
    drawn = []
    for kind in KINDS:
        own = [row for row in rows if row["arm"].startswith(f"{kind}_") and row["parameters"]]
        points = [
            (row["parameters"], Estimate(row[metric], row[f"{metric}/low"], row[f"{metric}/high"])) for row in own
        ]
        drawn += [Curve(kind, sorted(points))] if points else []
    title = "At equal tokens, with 95% intervals over seeds and tasks"
    return {"capacity": curves(title, drawn, "parameters, on a logarithmic axis", metric, log=True)} if drawn else {}
