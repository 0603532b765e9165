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


@configures("rlvr_exp.episodes.environments.reasoning.Reasoning")
@dataclass
class Reasoning:
    """A problem worked out in the stages of `data.reasoning`, each shown to those after it; success is that of the code."""


@configures("rlvr_exp.episodes.environments.adversarial.Adversarial")
@dataclass
class Adversarial:
    """A solver works a problem out in stages, a tester writes tests of its code; each is paid by what the other does. Two roles."""

    tests: int = option(4, low=2)
    """Sets of tests sampled of one attempt in training."""


EDIT_STEPS = "rlvr_exp.episodes.environments.edits.Edits"


@configures(EDIT_STEPS)
@dataclass
class Edits:
    """An action is applied and the edited text shown, until the policy answers `done` or has taken all steps; success is that of the
    last text."""

    steps: int = option(4, low=2, high=16)
    """The most actions of an episode, `done` among them."""
