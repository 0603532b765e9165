"""Options of the `environment` group: how many turns an episode has, and who takes them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from rlvr_exp.config.options import configures, option
from rlvr_exp.core.errors import InputProblem

SINGLE_TURN = "rlvr_exp.episodes.environments.single_turn.SingleTurn"


@configures(SINGLE_TURN)
@dataclass
class SingleTurn:
    """One prompt, one completion, one verdict."""


@configures("rlvr_exp.episodes.environments.retry.Retry")
@dataclass
class Retry:
    """A completion that does not pass is followed by another, whose prompt shows it with the verifier's feedback."""

    attempts: int = option(2, low=2, high=8)
    """The most completions of a branch, with the first."""


EDIT_STEPS = "rlvr_exp.episodes.environments.edits.Edits"


@configures(EDIT_STEPS)
@dataclass
class Edits:
    """An action is applied and the edited text shown, until the policy answers `done` or has taken all steps; success is that of the
    last text."""

    steps: int = option(4, low=2, high=16)
    """The most actions of an episode, `done` among them."""

    def conflicts(self, config: Any, reads: Callable[[str], bool]) -> Iterator[InputProblem]:
        if reads("evaluation") and config.evaluation.excess_code:
            what, remedy = "an episode's last action alone does not make the edited program", "environment=single_turn"
            yield InputProblem("evaluation.excess_code", what, "true", "false with environment=edits", "", remedy)
