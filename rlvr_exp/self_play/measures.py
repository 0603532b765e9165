"""What a round did, as metrics."""

from collections.abc import Mapping, Sequence
from statistics import fmean

from rlvr_exp.episodes.types import Completion
from rlvr_exp.self_play.found import Found


def metrics_of(
    sampled: Sequence[Completion],
    refined: Sequence[Completion],
    seen: Sequence[Found],
    rows: Mapping[str, Sequence[Found]],
    refused: Mapping[str, int],
) -> dict[str, float]:
    """Success of first and of refined answers, how different programs are, rows by kind, what made no task by reason."""
    row = {
        **_success("success", sampled),
        **_success("refined_success", refined),
        "answers": len(sampled) + len(refined),
        "solved_tasks": len({one.host.id for one in seen if one.correct}),
        "programs": len(seen),
        "behaviours": len({(one.host.id, one.solution.behaviour) for one in seen}),
        "correct_programs": len({one.solution.key for one in seen if one.correct}),
        **{f"rows_{kind}": len(own) for kind, own in rows.items()},
        **{f"refused_{reason}": count for reason, count in refused.items()},
    }
    return {f"self_play/{name}": float(value) for name, value in row.items()}


def _success(name: str, completions: Sequence[Completion]) -> dict[str, float]:
    """The share of the completions with a verdict that passed."""
    verified = [one.correct for one in completions if one.verdict.outcome != "no_verdict"]
    return {name: fmean(verified)} if verified else {}
