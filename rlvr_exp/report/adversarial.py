"""The section of a solver and a tester: their credits, what programs pass and tests catch, and the gap between the tests' opinion of
programs and that of the hidden tests.

Every number is read from the rows of metrics.
"""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from rlvr_exp.records.tracking import Row
from rlvr_exp.report.data import RunData
from rlvr_exp.report.role_rates import chart, credit_table

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
