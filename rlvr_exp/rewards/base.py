"""The contract of a reward term. Terms read completions and their verdicts; they never verify."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from rlvr_exp.config import reward as options
from rlvr_exp.episodes.types import Completion


@dataclass(frozen=True)
class ValueRange:
    """The range of a term's values. `open_top`: values come arbitrarily near to `high` and never reach it."""

    low: float
    high: float
    open_top: bool = False


class Term(options.Term, ABC):
    """A named part of a reward, multiplied by `weight`. A weight of 0 switches the term off: it is not computed."""

    when_correct: ClassVar[ValueRange]
    """The range of the unweighted value for a correct completion."""
    when_wrong: ClassVar[ValueRange]
    """The range of the unweighted value for a failed or rejected completion."""

    @abstractmethod
    def __call__(self, completion: Completion) -> float:
        """The unweighted value, within the range for the verdict. Never called without a verdict."""
