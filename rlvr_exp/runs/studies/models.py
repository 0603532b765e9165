"""Architectures, capacity and tokenizers of models trained from scratch: a row for each arm, each against the first.

At equal tokens, arms are compared by the metric after training; tokenizers see equal texts. At equal time or equal tokens of
other tokenizers they are compared by the loss on `dev` that each run had reached when the first run ended, between two
measurements in its rows. The latter is fair if the learning rate is constant, as by default. Capacity is Spearman's rank
correlation of held-out loss and size, over sizes and seeds.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

from rlvr_exp.config import study as options
from rlvr_exp.core.crossed import holm
from rlvr_exp.core.measures import HELD_OUT_BITS, HELD_OUT_LOSS, scale_of
from rlvr_exp.core.statistics import LEVEL, Estimate, mean_p_value, rank_correlation, t_interval
from rlvr_exp.evaluation.paired import FLOOR, of_few_seeds
from rlvr_exp.records import manifest
from rlvr_exp.records.rollout_files import read_evaluation
from rlvr_exp.report.plots import Curve, curves
from rlvr_exp.runs.comparison import (
    AGAINST_FIRST,
    EVALUATE_MORE_OFTEN,
    arm_values,
    budgets,
    compared,
    interval,
    judged,
    level,
    measured,
    metric_at,
    unequal,
    used,
)
from rlvr_exp.runs.study import ArmStudy, Findings, Job, JobRun, Study

SUCCESS = "pass_at_1"
MODELS = "models"
"""The table with a row for each arm."""
Row = Mapping[str, Any]


def model_findings(runs: Sequence[JobRun], metric: str, equal: str) -> Findings:
    """Each arm against the first by the metric, then by success if any arm succeeds.

    Raises:
        InputError: no run was measured by the metric.
    """
    found = compared(runs, runs[0].job.arm, metric, equal, AGAINST_FIRST)
    answer = [*found.answer, *(_success(runs) if metric != SUCCESS else ())]
    return replace(found, answer=answer, tables={MODELS: model_rows(runs, metric), **found.tables})


def model_rows(runs: Sequence[JobRun], metric: str) -> list[Row]:
    """A row for each arm that was measured: means over its runs, rates with 95% intervals over seeds and tasks."""
    succeeded = arm_values(runs, SUCCESS) if any(measured(run, SUCCESS) for run in runs) else {}
    rows: list[Row] = []
    for arm, values in arm_values(runs, metric).items():
        own = [run for run in runs if run.completed and run.job.arm == arm]
        parameters = int(manifest.section(own[0].directory, "model").get("total", 0))
        row: dict[str, Any] = {"arm": arm, "runs": len(own), "parameters": parameters}
        row |= {f"training_{kind}": fmean(used(run.directory, kind) for run in own) for kind in ("tokens", "seconds")}
        of_metrics = {metric: values} | ({SUCCESS: succeeded[arm]} if arm in succeeded else {})
        for name, of in of_metrics.items():
            mean, low, high = interval(of, name)
            share = scale_of(name).share
            row |= {
                name: share(mean),
                f"{name}/low": share(low),
                f"{name}/high": share(high),
                f"{name}/tasks": len(judged([*of.values()])),
            }
        answers = read_evaluation(own[0].directory, "after")
        golds = {one.completion.task.id: (one.about or {}).get("gold") for one in answers}
        if counts := [gold["prompt_tokens"] + gold["tokens"] for gold in golds.values() if gold]:
            row |= {"tokens_a_task": fmean(counts)}
        rows.append(row)
    return rows


def _success(runs: Sequence[JobRun]) -> Iterator[str]:
    if not any(measured(run, SUCCESS) for run in runs):
        return
    levels = {arm: level(values) for arm, values in arm_values(runs, SUCCESS).items()}
    best = max(levels, key=levels.__getitem__)
    if levels[best] <= FLOOR:
        yield f"Success does not count: no arm exceeds {FLOOR:.0%} ({SUCCESS} of {best} {levels[best]:.1%})."
        return
    for sentence in compared(runs, runs[0].job.arm, SUCCESS, "none", AGAINST_FIRST).answer:
        yield f"By {SUCCESS}: {sentence}"


TOLERANCE = 0.03
"""Sizes that differ by a smaller share count as equal."""


class ArchitectureStudy(options.ArchitectureStudy, ArmStudy):
    def jobs(self) -> list[Job]:
        return self.arm_jobs()

    def summarise(self, runs: Sequence[JobRun]) -> Findings:
        found = model_findings(runs, self.metric, self.equal)
        least, most = (choose(found.tables[MODELS], key=lambda row: row["parameters"]) for choose in (min, max))
        if most["parameters"] - least["parameters"] <= TOLERANCE * most["parameters"]:
            return found
        sizes = f"{least['arm']} has {least['parameters']:,} parameters, {most['arm']} {most['parameters']:,}"
        remedy = "a difference may come from that. model.scratch.intermediate of an arm evens them out"
        return replace(found, answer=[f"Unequal sizes: {sizes}; {remedy}.", *found.answer])


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

    def summarise(self, runs: Sequence[JobRun]) -> Findings:
        found = model_findings(runs, self.metric, self.equal)
        losses: list[Row] = [
            {
                **_size(run),
                "at": TOKENS,
                "measure": self.metric,
                "value": scale_of(self.metric).share(rates[self.metric]["value"]),
            }
            for run in runs
            if run.completed and self.metric in (rates := run.summary.get("after") or {})
        ]
        losses += _at_equal_time(runs)
        ranks = [row for kind in KINDS for at in (TOKENS, TIME) if (row := _rank(losses, kind, at))]
        ranks = [{**row, "p_holm": p} for row, p in zip(ranks, holm([row["p"] for row in ranks]), strict=True)]
        unfair = [unequal(budgets(runs, self.equal), self.equal)] if self.equal != "none" else []
        others = [sentence for sentence in found.answer if sentence not in unfair]
        answer = [*filter(None, unfair), *map(_sentence, ranks), *_untimed(runs, losses), *others]
        tables = {**found.tables, "rank_correlation": ranks, "losses": losses}
        return replace(
            found, answer=answer, tables=tables, plots={**found.plots, **_plot(found.tables[MODELS], self.metric)}
        )


def _size(run: JobRun) -> dict[str, Any]:
    kind, _, size = run.job.arm.partition("_")
    return {"of": kind, "size": int(size), "seed": run.job.seed}


def _at_equal_time(runs: Sequence[JobRun]) -> Iterator[Row]:
    """The loss of each run after the seconds of the fastest run of its kind. Kinds with a run without such a loss are left
    out."""
    for kind in KINDS:
        own = [run for run in runs if run.completed and _size(run)["of"] == kind]
        seconds = min((used(run.directory, "seconds") for run in own), default=0.0)
        losses = [(run, metric_at(run.directory, HELD_OUT_LOSS, "seconds", seconds)) for run in own]
        if all(loss is not None for _, loss in losses):
            for run, loss in losses:
                yield {**_size(run), "at": TIME, "measure": HELD_OUT_LOSS, "value": loss, "seconds": seconds}


def _rank(losses: Sequence[Row], kind: str, at: str) -> dict[str, Any]:
    """Empty if fewer than two sizes have a loss."""
    some = [row for row in losses if row["of"] == kind and row["at"] == at]
    sizes, values = [row["size"] for row in some], [row["value"] for row in some]
    if len(set(sizes)) < 2 or len(set(values)) < 2:
        return {}
    correlation, chance = rank_correlation(sizes, values)
    counts = {"sizes": len(set(sizes)), "seeds": len({row["seed"] for row in some})}
    return {"of": kind, "at": at, "measure": some[0]["measure"], "correlation": correlation, "p": chance, **counts}


def _untimed(runs: Sequence[JobRun], losses: Sequence[Row]) -> Iterator[str]:
    """A sentence for each kind of size without a comparison at equal time."""
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
    return (
        {"capacity": curves(title, drawn, "parameters, on a logarithmic axis", metric, True, scale_of(metric).bounded)}
        if drawn
        else {}
    )


EQUAL_TOKENS = "equal_tokens"
"""The table with a row for each arm when all had seen as many tokens."""


class Tokenization(options.Tokenization, ArmStudy):
    def jobs(self) -> list[Job]:
        return self.arm_jobs()

    def summarise(self, runs: Sequence[JobRun]) -> Findings:
        found = model_findings(runs, self.metric, self.equal)
        counts = {row["arm"]: row["tokens_a_task"] for row in found.tables[MODELS] if "tokens_a_task" in row}
        tokens = min(used(run.directory, "tokens") for run in runs if run.completed)
        rows = _equal_tokens(_bits_at(runs, tokens), runs[0].job.arm, tokens)
        answer = [*_unequal_texts(runs), *found.answer, _sentence_at_equal_tokens(rows, tokens), *_tokens(counts)]
        return replace(found, answer=answer, tables={**found.tables, **({EQUAL_TOKENS: rows} if rows else {})})


def _bits_at(runs: Sequence[JobRun], tokens: float) -> dict[str, dict[int, float]]:
    """Bits per character of the reference answers of `dev` after that many tokens, by arm and seed. Empty if a run was not
    measured by then."""
    found: dict[str, dict[int, float]] = {}
    for run in runs:
        if run.completed:
            bits = metric_at(run.directory, HELD_OUT_BITS, "tokens", tokens)
            if bits is None:
                return {}
            found.setdefault(run.job.arm, {})[run.job.seed] = bits
    return found


def _equal_tokens(levels: Mapping[str, Mapping[int, float]], first: str, tokens: float) -> list[Row]:
    """A row per arm, each against the first, paired by seed. Intervals and p-values are over seeds only, corrected for all
    compared arms. Empty if the first arm has no run."""
    if first not in levels:
        return []
    known = levels[first]
    apart = {
        arm: [of[seed] - known[seed] for seed in of if seed in known] for arm, of in levels.items() if arm != first
    }
    judged = {arm: of for arm, of in apart.items() if len(of) > 1}
    chances = dict(zip(judged, holm([mean_p_value(of, 0.0) for of in judged.values()]), strict=True))
    rows: list[Row] = []
    for arm, of in levels.items():
        row: dict[str, Any] = {"arm": arm, "tokens": tokens, "runs": len(of), HELD_OUT_BITS: fmean(of.values())}
        if pairs := apart.get(arm):
            row |= {"pairs": len(pairs), "difference": fmean(pairs)}
        if arm in chances:
            row |= {**dict(zip(("low", "high"), t_interval(apart[arm])[1:], strict=True)), "p_holm": chances[arm]}
        rows.append(row)
    return rows


def _sentence_at_equal_tokens(rows: Sequence[Row], tokens: float) -> str:
    if not rows:
        missing = f"some run had no {HELD_OUT_BITS} after {tokens:,.0f} of them, or the first arm has no run"
        return f"At equal tokens nothing is said: {missing}; {EVALUATE_MORE_OFTEN}."
    first, *others = rows
    of = f"At equal tokens ({tokens:,.0f}, those of prompts included) by {HELD_OUT_BITS} of dev"
    listed = [f"{first['arm']} {first[HELD_OUT_BITS]:.3f}", *(_difference(row) for row in others if "pairs" in row)]
    few = of_few_seeds(min((row["pairs"] for row in others if "pairs" in row), default=1), "an interval")
    return f"{of}, others less {first['arm']}, over seeds alone: {'; '.join(listed)}{few}."


def _difference(row: Row) -> str:
    difference = f"{row['arm']} {row['difference']:+.3f}"
    if "p_holm" not in row:
        return f"{difference} (one seed)"
    sure = "beyond chance" if row["p_holm"] <= LEVEL else "no difference was found"
    return f"{difference} [{row['low']:+.3f}, {row['high']:+.3f}], {sure}"


def _unequal_texts(runs: Sequence[JobRun]) -> Iterator[str]:
    """A sentence if arms imitated, or were measured on, different numbers of tasks: tasks with too many tokens are left out."""
    sections = {run.job.arm: manifest.section(run.directory, "imitation") for run in runs if run.completed}
    for kind, done in (("examples", "imitated"), ("held_out", "were measured in training on")):
        counts = {arm: found.get(kind) for arm, found in sections.items()}
        if len(set(counts.values())) > 1:
            listed = ", ".join(f"{arm} {count}" for arm, count in counts.items())
            yield f"Unequal texts: arms {done} other numbers of tasks ({listed}); algorithm.max_sequence_tokens leaves long ones out."


def _tokens(counts: Mapping[str, float]) -> Iterator[str]:
    if counts:
        least, most = (choose(counts, key=counts.__getitem__) for choose in (min, max))
        yield f"A task with its gold is {counts[least]:,.0f} tokens by {least}, {counts[most]:,.0f} by {most}."
