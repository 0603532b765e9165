"""Answers of a server that scores tokens: the scores of a completion, and bodies of another form."""

from typing import Any

import pytest

from rlvr_exp.rollouts.engines.client import Nonsense
from rlvr_exp.rollouts.engines.teacher_server import scored_of


def place(*logprobs: float, first: int = 0) -> dict[str, Any]:
    """Tokens `first` and after it, the most probable first."""
    return {str(first + rank): {"rank": rank + 1, "logprob": value} for rank, value in enumerate(logprobs)}


def answer(*places: Any) -> dict[str, Any]:
    return {"choices": [{"prompt_logprobs": [*places]}]}


def test_a_completion_is_scored_by_the_last_places() -> None:
    drawn = {**place(-0.5, -1.0), "7": {"rank": 5, "logprob": -6.0}}
    found = scored_of(answer(None, place(-9.0, -9.5), place(-0.1, -2.0), drawn), [1, 7], 2, 10)
    assert found == ([[0, 1], [0, 1]], [[-0.1, -2.0], [-0.5, -1.0]], [-2.0, -6.0])


def test_tokens_after_the_vocabulary_are_left_out() -> None:
    wider = {**place(-0.5), "10": {"rank": 2, "logprob": -1.0}, "3": {"rank": 3, "logprob": -1.5}}
    assert scored_of(answer(None, wider), [0], 2, 10)[0] == [[0, 3]]
    with pytest.raises(Nonsense, match="2 tokens of the policy among the 3 most probable ones"):
        scored_of(answer(None, wider), [0], 3, 10)


@pytest.mark.parametrize(
    "body",
    [
        "<html>",
        {},
        {"choices": []},
        answer(),
        {"choices": [{"prompt_logprobs": None}]},
        answer(None, None),
        answer(None, {"0": {"logprob": -1.0}}),
        answer(None, place(-1.0, first=5)),
    ],
)
def test_a_body_of_another_form_is_named(body: Any) -> None:
    with pytest.raises(Nonsense, match="an answer of another form"):
        scored_of(body, [0], 1, 10)
