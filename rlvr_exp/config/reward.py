"""Options of the `reward` group: named terms, summed by weight, then an optional normalisation across tasks."""

from dataclasses import dataclass
from typing import Any

from rlvr_exp.config.options import configures, node, option


@dataclass
class Term:
    """Options of every term. Weight 0 switches a term off."""

    weight: float = 1.0
    """Factor of the term in the sum; 0: off."""


@configures("rlvr_exp.rewards.terms.CasesPassed")
@dataclass
class CasesPassed(Term):
    """Share of the cases passed, in [0, 1]."""

    weight: float = 0.2


@configures("rlvr_exp.rewards.terms.AllPassed")
@dataclass
class AllPassed(Term):
    """1 when every case passed, else 0."""

    weight: float = 1.0


@configures("rlvr_exp.rewards.terms.Syntax")
@dataclass
class Syntax(Term):
    """1 when the answer is a valid program."""

    weight: float = 0.05


@configures("rlvr_exp.rewards.terms.Length")
@dataclass
class Length(Term):
    """Falls with the length of a correct completion, thoughts and text around its code included."""

    weight: float = 0.05
    scale_tokens: int = option(200, low=1)
    """Length in tokens over which the term falls."""


@configures("rlvr_exp.rewards.terms.CodeLength")
@dataclass
class CodeLength(Term):
    """Falls with the length of a correct answer's code, without comments and the text around it."""

    weight: float = 0.05
    scale_characters: int = option(400, low=1)
    """Length in characters over which the term falls."""


@configures("rlvr_exp.rewards.terms.Severity")
@dataclass
class Severity(Term):
    """Negative, by how bad the error is."""

    weight: float = 0.1


@configures("rlvr_exp.rewards.terms.Parses")
@dataclass
class Parses(Term):
    """1 when the tool parsed the answer, else 0."""

    weight: float = 0.05


@configures("rlvr_exp.rewards.terms.Resolves")
@dataclass
class Resolves(Term):
    """1 when names and types of the answer were resolved, else 0."""

    weight: float = 0.1


@configures("rlvr_exp.rewards.terms.Obligations")
@dataclass
class Obligations(Term):
    """Share of the proof obligations that were proved, in [0, 1]."""

    weight: float = 0.25


@configures("rlvr_exp.rewards.compose.Identity")
@dataclass
class Identity:
    """Rewards as they are."""


@configures("rlvr_exp.rewards.compose.PerTask")
@dataclass
class PerTask(Identity):
    """Rewards less the mean of their task in the batch, divided by its deviation."""


@configures("rlvr_exp.rewards.compose.RunningScale")
@dataclass
class RunningScale:
    """Rewards divided by their running deviation; its state is part of a checkpoint."""


@configures("rlvr_exp.rewards.compose.Reward")
@dataclass
class Reward:
    """A weighted sum of named terms, then a normaliser."""

    terms: dict[str, Any] = node(base=Term)
    """The terms by name."""
    normalizer: Any = node()
    """Applied to the sum."""
    ordered: bool = True
    """No wrong answer may earn as much as a right one, as the terms' ranges show before anything is trained; false for rewards that
    are not about right and wrong, such as likeness to a teacher."""
