"""`benchmark=theory`: known results on problems that are small enough to be computed exactly, against the functions that train
policies. Needs no model and no data."""

from collections.abc import Sequence
from typing import Any

from rlvr_exp.benchmarks.theory_checks import OUTSIDE, Row, rows_of
from rlvr_exp.benchmarks.theory_estimators import clipping_checks, gae_checks, kl_checks
from rlvr_exp.benchmarks.theory_gradient import gradient_checks
from rlvr_exp.config.schema import Config
from rlvr_exp.core.errors import GuardStop
from rlvr_exp.records.context import RunContext


def measure(config: Config, context: RunContext) -> tuple[str, dict[str, Any]]:
    """The table of all checks, and each by its name.

    Raises:
        GuardStop: a check is outside of what chance explains.
    """
    draws, level = config.benchmark.draws, config.benchmark.level
    makers = (gradient_checks, clipping_checks, gae_checks, kl_checks)
    checks = []
    for place, make in enumerate(makers):
        context.progress(kind="phase", name="checks", done=place, total=len(makers))
        checks += make(draws, config.seed)
    rows = rows_of(checks, level)
    text = table(rows, draws)
    if outside := [row.name for row in rows if row.verdict == OUTSIDE]:
        raise GuardStop(f"{len(outside)} of {len(rows)} known results do not hold: {'; '.join(outside)}\n{text}")
    return text, {row.name: {"exact": row.exact, **row.estimate._asdict(), "p_holm": row.p} for row in rows}


def table(rows: Sequence[Row], draws: int) -> str:
    wide = max(len(row.name) for row in rows)
    head = f"{'quantity':<{wide}}{'exact':>11}  {'estimate [95%]':<32}{'p, Holm':>8}  verdict"
    lines = [f"{row.name:<{wide}}{row.exact:>11.5g}  {_interval(row):<32}{row.p:>8.3g}  {row.verdict}" for row in rows]
    return "\n".join([f"known results, {draws:,} draws", head, *lines])


def _interval(row: Row) -> str:
    value, low, high = row.estimate
    return f"{value:.5g}" if low == high else f"{value:.5g} [{low:.5g}, {high:.5g}]"
