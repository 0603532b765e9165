"""What a round sampled, as rows of `rollouts/`: a completion counts as trained on where its program is imitated."""

from rlvr_exp.records.rollout_files import RolloutRow
from rlvr_exp.self_play.round import Round


def rollout_rows(made: Round) -> list[RolloutRow]:
    """One row per completion, in the order of the prompts."""
    imitated = {(row.host.id, row.solution.program) for rows in made.rows.values() for row in rows}
    rows = []
    for group, one in enumerate(one for one in made.sampled if one.completions):
        for completion in one.completions:
            judged = completion.verdict.outcome != "no_verdict"
            trained = (completion.task.id, completion.candidate.text) in imitated
            rows.append(
                RolloutRow(
                    completion,
                    step=made.step + 1,
                    group=group,
                    prompt=one.prompt,
                    reward=float(completion.correct) if judged else None,
                    fate="no_verdict" if not judged else "trained" if trained else "filtered",
                )
            )
    return rows
