"""The outcome of a run: rates before and after with their intervals, by family, and why answers failed.

Every number is read from the evaluation's files; nothing is computed here.
"""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from rlvr_exp.config.scales import BITS, EXCESS_CODE, counted, detectable, read_voted, scale_of
from rlvr_exp.config.scales import FEW as FEW_TASKS
from rlvr_exp.config.stages import STAGES, trains
from rlvr_exp.report.curves import words
from rlvr_exp.report.data import WHENS, RunData

TITLES = {
    "pass_at_1": "pass@1, sampled",
    "pass_at_1_greedy": "pass@1, greedy",
    "pass_at_8": "pass@8",
    "writer/pass_at_1": "writer: body proved, sampled",
    "writer/pass_at_1_greedy": "writer: body proved, greedy",
    "annotator/pass_at_1": "annotator: of bodies that can be proved, sampled",
    "annotator/pass_at_1_greedy": "annotator: of bodies that can be proved, greedy",
}
LESS_TITLES = {
    **dict(zip(EXCESS_CODE, ("excess code, of the diff's lines", "excess code, of added statements"), strict=True)),
    BITS: "bits a character of the gold answers",
}
"""No success: less is better."""
BASELINE = "difference/"
"""Prefix of the paired differences from a baseline in a summary's metrics."""
CHOSEN = "chosen_at_"
"""Prefix of the success of answers that were chosen among so many samples."""
FAMILY_METRICS = ("pass_at_1", "pass_at_1_greedy")
"""The first of these that was measured is shown for each family."""
FEW = 5
"""Number of tasks below which a family's rate says little, so that it is folded."""


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
    """Whether there is a before and an after: a run that trains, or trained."""
    stage = str(run.config.get("stage"))
    return trains(stage) if stage in STAGES else bool(run.summary.get("before"))


def rate_table(run: RunData) -> str:
    """A row per metric: before, after, and the paired change, or the single measurement; '' where there is none."""
    before, after = (run.summary.get(when) or run.numbers.get(when, {}).get("rates", {}) for when in WHENS)
    both, change = compared(run), run.numbers.get("after", {}).get("change", {})
    before = before if both else {}
    names = list(dict.fromkeys([*before, *after]))
    if not names:
        return ""
    rows = "".join(_rate_row(name, before.get(name), after.get(name), change.get(name), both) for name in names)
    titles = ("", "before", "after", "change", "0% &hellip; 100%") if both else ("", "measured", "0% &hellip; 100%")
    heads = "".join(f"<th>{head}</th>" for head in titles)
    return (
        f'<div class="wide"><table class="rates"><tr>{heads}</tr>{rows}</table></div>'
        f"{_counted(names, before, after, both)}{_selected(run)}"
    )


def _selected(run: RunData) -> str:
    """Which step the rates after training are of, where the best one was looked for, and on which tasks it was found."""
    select = (run.config.get("run") or {}).get("select") or {}
    step, measured = _measured(run).get("best/step"), run.manifest.get("select") or {}
    if step is None:
        return ""
    where = f" on {measured['tasks']} tasks of split {measured['split']!r}" if measured.get("every_steps") else ""
    reported = (run.config.get("evaluation") or {}).get("split")
    whose = "those of the best step" if select.get("restore", True) else "the last step's; the best is checkpoints/best"
    return (
        f'<p class="note">Best step: {step:,.0f}, by {escape(str(select.get("metric")))}{escape(where)}. Rates after '
        f"training are {whose}, on split {escape(repr(reported))}, which had no part in the choice.</p>"
    )


def number_table(run: RunData) -> str:
    """The summary's own numbers, for a run without steps; '' where a chart shows more."""
    if run.metrics:
        return ""
    rows = "".join(
        f"<tr><th>{escape(name)}</th><td>{escape(_number(value))}</td></tr>"
        for name, value in _measured(run).items()
        if not name.startswith(BASELINE)
    )
    head = "<tr><th></th><th>value</th></tr>"
    return f'<div class="wide"><table>{head}{rows}</table></div>' if rows else ""


def _number(value: Any) -> str:
    if isinstance(value, Mapping) and {"value", "low", "high"} <= value.keys():
        return f"{value['value']:.4g} [{value['low']:.4g}, {value['high']:.4g}]"
    if isinstance(value, float):
        return f"{value:,.4g}"
    return f"{value:,}" if type(value) is int else str(value)


def baseline_table(run: RunData) -> str:
    """The difference from `evaluate.baseline`, this run minus that run, or of chosen answers from samples at random; paired. '' without
    either."""
    changes = {
        name.removeprefix(BASELINE): value for name, value in _measured(run).items() if name.startswith(BASELINE)
    }
    if not changes:
        return ""
    rows = "".join(
        f"<tr><th>{escape(title(name))}</th><td>{changed(change, name)}</td></tr>" for name, change in changes.items()
    )
    against = escape(str((run.config.get("evaluate") or {}).get("baseline", "a sample at random")))
    return f'<div class="wide"><table><tr><th></th><th>change against {against}</th></tr>{rows}</table></div>'


def _measured(run: RunData) -> Mapping[str, Any]:
    return run.summary.get("metrics") or {}


def _rate_row(name: str, before: Any, after: Any, change: Any, both: bool) -> str:
    shown = (("before", rated(before, name)), ("after", rated(after, name)), ("change", changed(change, name)))
    cells = "".join(
        f'<td data-label="{label}">{cell}</td>'
        for label, cell in (shown if both else [("measured", rated(after, name))])
    )
    cells += f'<td class="trackcell">{track_of(before, after, name)}</td>'
    return f"<tr><th>{escape(title(name))}</th>{cells}</tr>"


def rated(rate: Any, metric: str = "") -> str:
    if not rate:
        return '<span class="none">not measured</span>'
    scale = scale_of(metric)
    low, high = (scale.number(rate[key]) for key in ("low", "high"))
    return f"<b>{scale.shown(rate['value'])}</b> <small>{low} to {high}</small>"


def changed(change: Any, metric: str = "") -> str:
    """A paired difference; where less is better a fall is for the better."""
    if not change:
        return '<span class="none">&ndash;</span>'
    scale, (low, high) = scale_of(metric), (change["low"], change["high"])
    better, worse = (high < 0, low > 0) if scale.less_is_better else (low > 0, high < 0)
    kind = "up" if better else "down" if worse else "level"
    return (
        f'<b class="{kind}">{scale.number(change["value"], "+")} {scale.unit}</b> '
        f"<small>{scale.number(low, '+')} to {scale.number(high, '+')}; "
        f"tasks won: {change['won']}, lost: {change['lost']}</small>"
    )


def _counted(names: Sequence[str], before: Rates, after: Rates, both: bool) -> str:
    rates = [rate for name in names for rate in (before.get(name), after.get(name)) if rate]
    tasks, samples = (sorted({rate[key] for rate in rates}) for key in ("n", "samples"))
    held_out = "Held out: " if any(map(is_success, names)) else ""
    up_to = f", up to {samples[-1]} samples a task" if samples[-1] > 1 else ""
    paired = "; the change is paired task by task" if both else ""
    few = _few(tasks[0], samples[-1], "pass_at_1_greedy" in names) if held_out else ""
    return (
        f'<p class="note">{held_out}{_range(tasks)} {"task" if tasks == [1] else "tasks"}{up_to}.{few} Ranges are 95% intervals over tasks{paired}. What got'
        " no verdict enters no rate.</p>"
    )


def _few(tasks: int, samples: int, greedy: bool) -> str:
    """A warning about few tasks; '' of enough."""
    if tasks >= FEW_TASKS:
        return ""
    return f" <b>{counted(tasks)} can show little: {detectable(tasks, samples, greedy)}.</b> study=cross_validation measures every task."


def _range(numbers: Sequence[int]) -> str:
    return f"{numbers[0]:,}" if len(numbers) == 1 else f"{numbers[0]:,} to {numbers[-1]:,}"


def track_of(before: Any, after: Any, metric: str = "") -> str:
    """Intervals and means on a line from 0 to 1: hollow before, filled after; '' of a metric that 1 does not bound."""
    if not scale_of(metric).bounded:
        return ""
    drawn = []
    if before and after:
        left, right = sorted((before["value"], after["value"]))
        drawn.append(f'<i class="join" style="left:{100 * left:.2f}%;width:{100 * (right - left):.2f}%"></i>')
    for when, rate in zip(WHENS, (before, after), strict=True):
        if rate:
            low, wide = 100 * rate["low"], 100 * (rate["high"] - rate["low"])
            drawn.append(f'<i class="span {when}" style="left:{low:.2f}%;width:{wide:.2f}%"></i>')
            drawn.append(f'<i class="dot {when}" style="left:{100 * rate["value"]:.2f}%"></i>')
    return f'<div class="track">{"".join(drawn)}</div>'


def family_rows(run: RunData) -> str:
    """A line per family, best gain first; by rate where there is no before."""
    before, after = (run.numbers.get(when, {}).get("families", {}) for when in WHENS)
    metric = next((m for m in FAMILY_METRICS if any(m in rates for rates in (after or before).values())), None)
    if metric is None:
        return ""
    pairs = {
        family: (before.get(family, {}).get(metric), after.get(family, {}).get(metric))
        for family in dict.fromkeys([*after, *before])
    }
    ordered = sorted(filter(lambda family: any(pairs[family]), pairs), key=lambda name: (_gain(*pairs[name]), name))
    many = [name for name in ordered if _tasks(*pairs[name]) >= FEW]
    few = [name for name in ordered if _tasks(*pairs[name]) < FEW]
    shown, folded = (_families(pairs, names) for names in (many, few))
    key = '<p class="note"><i class="dot before"></i> before <i class="dot after"></i> after, '
    rest = f"{len(few)} families with fewer than {FEW} tasks"
    return f"{key}{TITLES[metric]}, on held-out tasks; thin lines are 95% intervals over tasks.</p>{shown}" + (
        f"<details{'' if many else ' open'}><summary>{rest}</summary>{folded}</details>" if few else ""
    )


def _tasks(before: Any, after: Any) -> int:
    return (after or before)["n"]


def _families(pairs: Mapping[str, tuple[Any, Any]], names: Sequence[str]) -> str:
    lines = "".join(_family(name, *pairs[name]) for name in names)
    return f'<div class="families">{lines}</div>' if lines else ""


def _gain(before: Any, after: Any) -> float:
    if before and after:
        return before["value"] - after["value"]
    return -((after or before or {"value": 0.0})["value"])


def _family(family: str, before: Any, after: Any) -> str:
    both = " &rarr; ".join(f"{100 * rate['value']:.0f}%" for rate in (before, after) if rate)
    return (
        f'<div class="family"><span title="{escape(family)}">{escape(words(family))}</span>{track_of(before, after)}'
        f"<b>{both}</b><small>n={_tasks(before, after)}</small></div>"
    )


def verdict_table(run: RunData) -> str:
    """Counts of held-out verdicts, by when and mode."""
    columns = [
        (f"{when}, {mode}", counts)
        for when in WHENS
        for mode, counts in run.numbers.get(when, {}).get("verdicts", {}).items()
        if sum(counts.values())
    ]
    names = dict.fromkeys(name for _, counts in columns for name in counts)
    met = [name for name in names if any(counts.get(name) for _, counts in columns)]
    if not met:
        return ""
    heads = "".join(f"<th>{escape(head)}</th>" for head, _ in columns)
    rows = "".join(
        f"<tr><th>{escape(words(name))}</th>" + "".join(_share(counts, name) for _, counts in columns) + "</tr>"
        for name in met
    )
    return f'<div class="wide"><table class="counts"><tr><th></th>{heads}</tr>{rows}</table></div>{_latency(run)}'


def _share(counts: Mapping[str, int], name: str) -> str:
    return f"<td>{counts.get(name, 0):,} <small>{counts.get(name, 0) / sum(counts.values()):.1%}</small></td>"


def _latency(run: RunData) -> str:
    parts = [
        f"{when}: median {numbers['latency']['p50']:.3g} s, 95th percentile {numbers['latency']['p95']:.3g} s"
        for when, numbers in run.numbers.items()
        if numbers.get("latency")
    ]
    return f'<p class="note">Time to answer and judge one completion: {"; ".join(parts)}.</p>' if parts else ""
