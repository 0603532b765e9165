"""What a round did, as metrics."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from rlvr_exp.episodes.types import Completion
from rlvr_exp.self_play.found import Found


def metrics_of(
    completions: Iterable[Completion],
    seen: Sequence[Found],
    rows: Mapping[str, Sequence[Found]],
    refused: Mapping[str, int],
) -> dict[str, float]:
    """Success of the answers, how different they are, rows by kind, and what made no task by reason."""
    by_operator = {name: [one for one in seen if one.solution.operator == name] for name in ("sampled", "refined")}
    answers = [one for one in completions if one.verdict.outcome != "no_verdict"]
    solved = {one.host.id for one in seen if one.correct}
    row = {
        "self_play/success": fmean(one.correct for one in answers) if answers else 0.0,
        "self_play/answers": float(len(answers)),
        "self_play/solved_tasks": float(len(solved)),
        "self_play/programs": float(len(seen)),
        "self_play/behaviours": float(len({(one.host.id, one.solution.behaviour) for one in seen})),
        "self_play/correct_programs": float(len({one.solution.key for one in seen if one.correct})),
    }
    if by_operator["refined"]:
        row["self_play/refined_success"] = fmean(one.correct for one in by_operator["refined"])
    row |= {f"self_play/rows_{kind}": float(len(own)) for kind, own in rows.items()}
    return row | {f"self_play/refused_{reason}": float(count) for reason, count in refused.items()}
