"""What +stage=infer does not do in an environment of several turns."""

from collections.abc import Iterator
from typing import Any

from rlvr_exp.config.environment import ADVERSARIAL, EDIT_STEPS, REASONING, SINGLE_TURN
from rlvr_exp.config.infer import Infer
from rlvr_exp.core.errors import InputProblem

ALLOWED = {
    SINGLE_TURN: "single_turn",
    EDIT_STEPS: "edits",
    REASONING: "reasoning",
    ADVERSARIAL: "adversarial",
}
"""Environments whose answers it searches for."""
OF_THE_DATA = {"input": "", "max_attempts": 1, "vote": 0, "cascade": ""}
"""Options without a meaning for tasks of the data in several turns, with what they are where they have none."""


def of_answers(infer: Infer, environment: Any) -> Iterator[InputProblem]:
    """Options that have no meaning next to an environment."""
    turns = getattr(environment, "_target_", SINGLE_TURN)
    if turns not in ALLOWED:
        what, remedy = (
            "answers have one turn, or are edits or reasoning in steps",
            "infer.max_attempts=N to retry, or drop it",
        )
        yield InputProblem("environment", what, turns.rpartition(".")[2], ", ".join(ALLOWED.values()), "", remedy)
    elif turns == EDIT_STEPS:
        what = "has no meaning for edits in steps: a task of the data, whose every text is made and judged"
        yield from _unread(infer, OF_THE_DATA | {"verify": True}, what, {})
        yield from _of_beams(infer, "edits in steps are sampled or greedy")
    elif turns != SINGLE_TURN:
        yield from _of_stages(infer, environment)


def _of_stages(infer: Infer, environment: Any) -> Iterator[InputProblem]:
    again = "environment.attempts=N" if environment._target_ == ADVERSARIAL else "infer.samples=N"
    remedies = {"input": "data.path=FILE", "max_attempts": f"{again}, or drop it"}
    yield from _unread(infer, OF_THE_DATA, "has no meaning for problems of the data in stages of reasoning", remedies)
    yield from _of_beams(infer, "outputs of stages are sampled or greedy")
    if not infer.verify and getattr(environment, "attempts", 1) > 1:
        what, got = "without a verifier nothing decides what to try again", str(environment.attempts)
        yield InputProblem("environment.attempts", what, got, "1", "", "infer.verify=true")


def _unread(infer: Infer, usual: dict[str, Any], what: str, remedies: dict[str, str]) -> Iterator[InputProblem]:
    for name, value in usual.items():
        if (given := getattr(infer, name)) != value:
            remedy = remedies.get(name) or "environment=single_turn"
            yield InputProblem(f"infer.{name}", what, str(given), str(value), "", remedy)


def _of_beams(infer: Infer, what: str) -> Iterator[InputProblem]:
    if infer.decoding == "beam":
        yield InputProblem("infer.decoding", what, "beam", "greedy, sample", "", "infer.decoding=greedy")
