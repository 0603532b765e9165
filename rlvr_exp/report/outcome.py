"""The results of a run: rates before and after with their intervals, by family, role and stratum, verdicts, and other runs.

Every number is read from the files of the evaluation and from the summary; nothing is computed here.
"""

from collections.abc import Mapping, Sequence
from itertools import groupby
from statistics import fmean
from typing import Any

from markupsafe import Markup

from rlvr_exp.config.schema import STAGES, trains
from rlvr_exp.core.measures import BITS, EXCESS_CODE, GREEDY, counted, detectable, is_count, read_voted, scale_of
from rlvr_exp.core.measures import FEW as FEW_TASKS
from rlvr_exp.records.rollout_files import When
from rlvr_exp.records.tracking import Row
from rlvr_exp.report.charts import curves, run_names
from rlvr_exp.report.data import WHENS, RunData
from rlvr_exp.report.evidence import early, late
from rlvr_exp.report.rendering import part, words

TITLES = {
    "pass_at_1": "pass@1, sampled",
    "pass_at_1_greedy": "pass@1, greedy",
    "pass_at_8": "pass@8",
    "writer/pass_at_1": "writer: body proved, sampled",
    "writer/pass_at_1_greedy": "writer: body proved, greedy",
    "annotator/pass_at_1": "annotator: provable bodies, sampled",
    "annotator/pass_at_1_greedy": "annotator: provable bodies, greedy",
}
LESS_TITLES = {
    **dict(zip(EXCESS_CODE, ("excess code, lines of the diff", "excess code, added statements"), strict=True)),
    BITS: "bits per character of the reference answers",
}
"""Titles of metrics for which less is better."""
MEASURE_TITLES = {
    "exact_match": "exact match",
    "bleu": "BLEU",
    "functional_coverage": "functional coverage",
    "verified_rate": "verified",
}
BASELINE = "difference/"
"""Prefix of the paired differences from a baseline in a summary's metrics."""
CHOSEN = "chosen_at_"
"""Prefix of the success of answers that were chosen among so many samples."""
FAMILY_METRICS = ("pass_at_1", "pass_at_1_greedy")
"""The page shows the first of these that was measured for each family."""
FEW = 5
"""Families with fewer tasks are folded."""

Rates = Mapping[str, Mapping[str, Any]]


def title(metric: str) -> str:
    """A metric in words."""
    if metric.startswith(CHOSEN):
        return f"chosen@{metric.removeprefix(CHOSEN)}, by the tester's tests"
    if (vote := read_voted(metric)) is None:
        return (TITLES | LESS_TITLES).get(metric, words(metric))
    samples, answers = vote
    return f"voted@{samples}" + (f", up to {answers} answers" if answers > 1 else ", one answer")


def is_success(metric: str) -> bool:
    """Whether it is a success rate of an evaluation."""
    return metric in TITLES or metric.startswith(CHOSEN) or read_voted(metric) is not None


def compared(run: RunData) -> bool:
    """Whether the run has evaluations before and after: it trains, or it trained."""
    stage = str(run.config.get("stage"))
    return trains(stage) if stage in STAGES else bool(run.summary.get("before"))


def rate_table(run: RunData) -> Markup:
    """A row per metric: before, after and the paired change, or the single measurement. Empty without a rate."""
    before, after = (run.summary.get(when) or run.numbers.get(when, {}).get("rates", {}) for when in WHENS)
    both, change = compared(run), run.numbers.get("after", {}).get("change", {})
    before = before if both else {}
    names = list(dict.fromkeys([*before, *after]))
    if not names:
        return Markup()
    rows = []
    for name in names:
        cells = [rated(before.get(name), name), rated(after.get(name), name), changed(change.get(name), name)]
        rows.append((title(name), cells if both else cells[1:2], track_of(before.get(name), after.get(name), name)))
    heads = ("before", "after", "change") if both else ("measured",)
    return part("rates", heads=heads, rows=rows, scale="0% … 100%") + part(
        "rate_notes", **_sample_size(names, before, after), both=both, selection=_selection(run)
    )


def _sample_size(names: Sequence[str], before: Rates, after: Rates) -> dict[str, Any]:
    rates = [rate for name in names for rate in (before.get(name), after.get(name)) if rate]
    tasks, samples = (sorted({rate[key] for rate in rates}) for key in ("n", "samples"))
    held_out = any(map(is_success, names))
    few = held_out and tasks[0] < FEW_TASKS
    return {
        "held_out": held_out,
        "tasks": counted(tasks[0]) if len(tasks) == 1 else f"{tasks[0]:,} to {tasks[-1]:,} tasks",
        "samples": samples[-1],
        "few": detectable(tasks[0], samples[-1], "pass_at_1_greedy" in names) if few else "",
        "fewest": counted(tasks[0]),
    }


def _selection(run: RunData) -> Mapping[str, Any] | None:
    """The step that the rates after training belong to, if the run selected the best step."""
    select = (run.config.get("run") or {}).get("select") or {}
    step, measured = _measured(run).get("best/step"), run.manifest.get("select") or {}
    if step is None:
        return None
    split = repr((run.config.get("evaluation") or {}).get("split"))
    source = f" on {measured['tasks']} tasks of split {measured['split']!r}" if measured.get("every_steps") else ""
    restored = select.get("restore", True)
    return {"step": step, "metric": select.get("metric"), "source": source, "restored": restored, "split": split}


def _measured(run: RunData) -> Mapping[str, Any]:
    return run.summary.get("metrics") or {}


def rated(rate: Any, metric: str = "") -> Markup:
    if not rate:
        return part("absent", text="not measured")
    scale = scale_of(metric)
    low, high = (scale.number(rate[key]) for key in ("low", "high"))
    return part("estimate", value=scale.shown(rate["value"]), more=f"{low} to {high}")


def changed(change: Any, metric: str = "") -> Markup:
    """A paired difference. A fall counts as better if less is better."""
    if not change:
        return part("absent")
    scale, (low, high) = scale_of(metric), (change["low"], change["high"])
    better, worse = (high < 0, low > 0) if scale.less_is_better else (low > 0, high < 0)
    kind = "up" if better else "down" if worse else "level"
    ends = f"{scale.number(low, '+')} to {scale.number(high, '+')}"
    more = f"{ends}; tasks won: {change['won']}, lost: {change['lost']}"
    return part("estimate", value=f"{scale.number(change['value'], '+')} {scale.unit}", more=more, kind=kind)


def track_of(before: Any, after: Any, metric: str = "") -> Markup:
    """Intervals and means on a line from 0 to 1, open before and filled after. Empty for a metric that 1 does not bound."""
    return part("track", before=before, after=after) if scale_of(metric).bounded else Markup()


def number_table(run: RunData) -> Markup:
    """The numbers of the summary, for a run without steps. Empty if charts show more."""
    numbers = {name: value for name, value in _measured(run).items() if not name.startswith(BASELINE)}
    if run.metrics or not numbers:
        return Markup()
    return part("table", heads=("", "value"), rows=[(name, _number(value)) for name, value in numbers.items()])


def _number(value: Any) -> str:
    if isinstance(value, Mapping) and {"value", "low", "high"} <= value.keys():
        return f"{value['value']:.4g} [{value['low']:.4g}, {value['high']:.4g}]"
    if isinstance(value, float):
        return f"{value:,.4g}"
    return f"{value:,}" if type(value) is int else str(value)


def baseline_table(run: RunData) -> Markup:
    """Paired differences from the run of `evaluate.baseline`, or of chosen answers from random samples."""
    changes = {
        name.removeprefix(BASELINE): value for name, value in _measured(run).items() if name.startswith(BASELINE)
    }
    baseline = (run.config.get("evaluate") or {}).get("baseline", "a random sample")
    rows = [(title(name), changed(change, name)) for name, change in changes.items()]
    return part("table", heads=("", f"difference from {baseline}"), rows=rows) if rows else Markup()


def family_rows(run: RunData) -> Markup:
    """A line per family, the largest gain first, or the highest rate if there is no evaluation before."""
    before, after = (run.numbers.get(when, {}).get("families", {}) for when in WHENS)
    metric = next((m for m in FAMILY_METRICS if any(m in rates for rates in (after or before).values())), None)
    if metric is None:
        return Markup()
    pairs = {
        family: (before.get(family, {}).get(metric), after.get(family, {}).get(metric))
        for family in dict.fromkeys([*after, *before])
    }
    ordered = sorted(filter(lambda family: any(pairs[family]), pairs), key=lambda name: (_gain(*pairs[name]), name))
    lines = [family_line(name, words(name), *pairs[name], (pairs[name][1] or pairs[name][0])["n"]) for name in ordered]
    many = [line for line in lines if line["n"] >= FEW]
    few = [line for line in lines if line["n"] < FEW]
    return part("held_out_families", metric=TITLES[metric], many=many, few=few, least=FEW)


def family_line(name: str, shown: str, before: Any, after: Any, n: int) -> dict[str, Any]:
    return {"name": name, "shown": shown, "before": before, "after": after, "n": n}


def _gain(before: Any, after: Any) -> float:
    """Negative gain, for ascending order."""
    if before and after:
        return before["value"] - after["value"]
    return -((after or before or {"value": 0.0})["value"])


def verdict_table(run: RunData) -> Markup:
    """Counts of held-out verdicts, by when and mode, with the latency of a completion."""
    columns = {
        f"{when}, {mode}": counts
        for when in WHENS
        for mode, counts in run.numbers.get(when, {}).get("verdicts", {}).items()
        if sum(counts.values())
    }
    names = dict.fromkeys(name for counts in columns.values() for name in counts)
    rows = [
        (words(name), *(part("share", count=of.get(name, 0), of=sum(of.values())) for of in columns.values()))
        for name in names
        if any(of.get(name) for of in columns.values())
    ]
    latencies = [(when, text) for when in WHENS if when in run.numbers and (text := _latency(run, when))]
    if not rows:
        return Markup()
    return part("table", heads=("", *columns), rows=rows, kind="counts") + part("latency", latencies=latencies)


def _latency(run: RunData, when: When) -> str:
    """Seconds per completion: the median of a server's, else the time of each batch divided among its completions."""
    rows, known = run.answers.get(when, ()), run.numbers[when].get("latency")
    if not rows or not known:
        return ""
    if str((run.config.get("engine") or {}).get("_target_", "")).endswith("Server"):
        return f"median {known['p50']:.3g} s, 95th percentile {known['p95']:.3g} s"
    most = (run.config.get("evaluation") or {}).get("batch_size") or len(rows)
    batches: list[list[float]] = [[]]
    for _, of_task in groupby(rows, key=lambda row: row.completion.task.id):
        seconds = [row.completion.seconds for row in of_task]
        if batches[-1] and len(batches[-1]) + len(seconds) > most:
            batches.append([])
        batches[-1] += seconds
    slowest = sum(map(max, batches))
    return f"{slowest / len(rows):.3g} s ({len(rows):,} completions in {slowest:.3g} s, up to {min(most, len(rows)):,} at once)"


def roles_section(run: RunData) -> Markup:
    """A table of rates for each role, and a folded table for each kind of group."""
    found = {when: run.numbers.get(when, {}).get("roles", {}) for when in WHENS}
    shown = Markup()
    for role in sorted({role for of_when in found.values() for role in of_when}):
        of_role = {when: of_when.get(role, {}) for when, of_when in found.items()}
        shown += _measures(role, _by_name({when: one.get("rates", {}) for when, one in of_role.items()}))
        last: Mapping[str, Any] = next((of_role[when] for when in reversed(WHENS) if of_role[when]), {})
        for kind, groups in last.get("by", {}).items():
            rows = {name: dict(list(of_group.items())[:2]) for name, of_group in groups.items()}
            shown += part("folded", title=f"{role} by {kind}", body=_measures(kind, rows))
    return shown


def measures_section(run: RunData) -> Markup:
    """A table of the verifier's own measures."""
    rows = _by_name({when: run.numbers.get(when, {}).get("measures", {}) for when in WHENS})
    return _measures("measure", rows) if rows else Markup()


def strata_section(run: RunData) -> Markup:
    """A table for each kind of stratum, such as the style of the instruction."""
    every = [run.numbers.get(when, {}).get("strata", {}) for when in reversed(WHENS)]
    found: dict[str, Any] = next(filter(None, every), {})
    return Markup().join(_measures(kind, groups) for kind, groups in found.items())


def _by_name(found: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Rates by name and then by when, from rates by when and then by name."""
    names = dict.fromkeys(name for of_when in found.values() for name in of_when)
    return {name: {when: of[name] for when, of in found.items() if name in of} for name in names}


def _measures(corner: str, rows: Mapping[str, Mapping[str, Any]]) -> Markup:
    columns = list(dict.fromkeys(column for cells in rows.values() for column in cells))
    lines = [
        (_measure_title(name), *(_measure(cells.get(column), is_count(name)) for column in columns))
        for name, cells in rows.items()
    ]
    return part("table", heads=(corner, *map(_measure_title, columns)), rows=lines, kind="roles", labels=True)


def _measure_title(name: str) -> str:
    plain = name.removesuffix(GREEDY)
    return MEASURE_TITLES.get(plain, words(plain)) + (", greedy" if plain != name else "")


def _measure(rate: Any, of_counts: bool) -> Markup:
    if not rate:
        return part("absent", text="not measured")
    value, low, high = (rate[key] if of_counts else 100 * rate[key] for key in ("value", "low", "high"))
    shown = (f"{value:.2f}", f"{low:.2f} to {high:.2f}") if of_counts else (f"{value:.1f}%", f"{low:.1f} to {high:.1f}")
    return part("estimate", value=shown[0], more=f"{shown[1]}; {counted(rate['n'])}")


def credit_table(metrics: Sequence[Row], environment: str, roles: Sequence[str]) -> Markup:
    """Mean credit and its spread within a group, early and late in the run, for each role that was sampled."""
    rows = []
    for role in roles:
        mean, spread = (_ends(metrics, f"{environment}/{name}/{role}") for name in ("credit", "credit_spread"))
        learned = "learns" if any(f"{role}/loss" in row for row in metrics) else "frozen"
        if mean:
            rows.append((f"{role}, {learned}", mean, spread))
    heads = ("", "credit, early → late", "spread within a group, early → late")
    return part("table", heads=heads, rows=rows) if rows else Markup()


def _ends(metrics: Sequence[Row], name: str) -> str:
    values = [value for row in metrics if (value := row.get(name)) is not None]
    return f"{fmean(early(values)):.3f} → {fmean(late(values)):.3f}" if values else ""


def other_runs(run: RunData, others: Sequence[RunData]) -> Markup:
    """Rates and curves of this run and of others. +stage=compare computes paired differences."""
    if not others:
        return Markup()
    every = [run, *others]
    runs = dict(zip(run_names([one.directory for one in every]), every, strict=True))
    rates = {
        name: {
            (metric, when): rate
            for when in WHENS
            for metric, rate in one.numbers.get(when, {}).get("rates", {}).items()
            if is_success(metric)
        }
        for name, one in runs.items()
    }
    columns = dict.fromkeys(key for of_run in rates.values() for key in of_run)
    heads = ("", *(f"{title(metric)}, {when}" for metric, when in columns))
    rows = [
        (name, *(rated(of[key], key[0]) if key in of else part("absent") for key in columns))
        for name, of in rates.items()
    ]
    return part("table", heads=heads, rows=rows) + curves({name: one.metrics for name, one in runs.items()})
