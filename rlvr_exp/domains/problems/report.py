"""Report of a solver and a tester: their credits, pass rates, the quality of tests, and the gap between valid tests and hidden
tests, with the diagnosis of a gap that grows.

Every number is read from the rows of metrics.
"""

from collections.abc import Mapping, Sequence
from html import escape
from statistics import fmean
from typing import Any

from rlvr_exp.core.statistics import difference_error
from rlvr_exp.records.tracking import Row
from rlvr_exp.report.cause import Cause, Sign, Weight
from rlvr_exp.report.charts import chart
from rlvr_exp.report.data import RunData
from rlvr_exp.report.evidence import Evidence, Trend
from rlvr_exp.report.outcome import credit_table

ROLES = ("solver", "tester")
PASSED, HIDDEN, GAP, CAUGHT, STAGE = 1, 3, 2, 6, 4
"""Colours: success is green."""
CHARTS: Mapping[str, tuple[Mapping[str, tuple[str, int]], bool]] = {
    "What programs pass": (
        {
            "the tester's valid tests": ("adversarial/pass_rate", PASSED),
            "the hidden tests": ("adversarial/hidden", HIDDEN),
            "gap": ("adversarial/gap", GAP),
        },
        True,
    ),
    "What testers write": (
        {
            "valid tests": ("adversarial/validity", HIDDEN),
            "wrong programs caught": ("adversarial/discrimination", CAUGHT),
            "critiques that agree with the tests": ("adversarial/critiques_right", PASSED),
        },
        True,
    ),
    "Stage of reasoning": ({"stage": ("adversarial/stage", STAGE)}, False),
    "Agreement of an output with the next": (
        {"all": ("adversarial/coherence", PASSED), "the code": ("adversarial/coherence_code", HIDDEN)},
        True,
    ),
}
"""By title: lines with their metrics and colours, and whether they are shares."""


def adversarial_section(run: RunData) -> str:
    """'' for a run of another stage."""
    options = run.config.get("schedule")
    if run.config.get("stage") != "adversarial" or not isinstance(options, Mapping):
        return ""
    drawn = "".join(chart(run.metrics, title, lines, share) for title, (lines, share) in CHARTS.items())
    charts = f'<div class="charts big">{drawn}</div>' if drawn else ""
    table = credit_table(run.metrics, "adversarial", ROLES)
    return f"<p>{escape(_description(options, run.config, run.metrics))}</p>{table}{charts}"


def _description(options: Mapping[str, Any], config: Mapping[str, Any], metrics: Sequence[Row]) -> str:
    steps = {role: sum(f"{role}/loss" in row for row in metrics) for role in ROLES}
    learned = ", ".join(f"{role} {count}" for role, count in steps.items())
    alone, alternating = options.get("alone"), options.get("alternating")
    order = "both roles learn in every step"
    if options.get("mode") == "n_n_k":
        order = f"at each stage of reasoning {alone} steps of a role, {alone} of the other, {alternating} in turn"
    reward = (config.get("environment") or {}).get("reward")
    return (
        f"Schedule: {order}. Rows of metrics in which a role learned: {learned}. Reward: {reward}. The hidden tests decide "
        "success and are in no reward."
    )


LEAST_GAP, ROWS_OF_GAP = 0.1, 4
"""Least difference between the pass rates on a tester's tests and on the hidden tests that counts as a gap; least rows in a third of a
run for a diagnosis."""


def _gap_opens(seen: Evidence) -> Sign | None:
    """A tester's tests think ever more of programs than the hidden tests do."""
    gap = seen.column("adversarial/gap")
    third = len(gap) // 3
    if third < ROWS_OF_GAP:
        return None
    first, last = ([value for _, value in part] for part in (gap[:third], gap[-third:]))
    grew = Trend(fmean(first), fmean(last), difference_error(first, last))
    if not grew.rose or grew.last < LEAST_GAP or grew.rise < LEAST_GAP / 2:
        return None
    validity = fmean(value for _, value in seen.column("adversarial/validity")[-third:])
    rows = [row for row in seen.rollouts if not row.completion.correct and (row.about or {}).get("role") == "solver"]
    facts = {"gap": grew, "validity": validity}
    return Sign(weight=Weight.HOLDS_BACK, onset=gap[third][0], rows=rows, facts=facts)


def _stronger_tests(seen: Evidence) -> Mapping[str, Any]:
    """Twice the test sets, a larger archive of mistakes, and a reward for caught mistakes."""
    twice = {f"environment.{name}": 2 * int(seen.number(f"environment.{name}")) for name in ("tests", "book")}
    return {**twice, "environment.reward": "gated"}


CAUSES = (
    Cause("gap_opens", _gap_opens,
        "Diverging tests: the gap to the hidden tests grew from {gap.first:.3f} to {gap.last:.3f}",
        "Programs pass more of the tester's valid tests than of the hidden tests. The tests are weak, or solver and tester "
        "collude. {validity:.0%} of the tests are valid.",
        "Let the tester learn alone for a while.", _stronger_tests, later=4),
)  # fmt: skip
