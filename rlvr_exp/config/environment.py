"""Options of the `environment` group: how many turns an episode has, and who takes them."""

from dataclasses import dataclass

from rlvr_exp.config.options import configures, option

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
