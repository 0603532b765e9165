"""The contract of a reward term, and `@term`, which makes a term of a function. Terms read completions and their verdicts; they
never verify.
"""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields, make_dataclass
from typing import Any, ClassVar

from rlvr_exp.config import verifier as options
from rlvr_exp.core.errors import InputError, InputProblem
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


GIVEN = ("completion", "task", "verdict")


def term(
    *, when_correct: tuple[float, float], when_wrong: tuple[float, float]
) -> Callable[[Callable[..., float]], type[Term]]:
    """Makes a term of `function(completion, task, verdict, **options) -> float`.

    Args:
        when_correct: the lowest and the highest unweighted value for a correct completion.
        when_wrong: the same for a failed or rejected completion.

    Further parameters of the function are options of the term: each has a type and a default (which may be an
    `option`, with its range). The term raises InputError for a value outside the range declared.
    """

    def declared(function: Callable[..., float]) -> type[Term]:
        parameters = list(inspect.signature(function, eval_str=True).parameters.values())
        if tuple(each.name for each in parameters[:3]) != GIVEN:
            raise TypeError(f"{function.__name__}: a reward term takes ({', '.join(GIVEN)}), then its options")

        def __call__(self: Term, completion: Completion) -> float:
            own = {each.name: getattr(self, each.name) for each in parameters[3:]}
            value = float(function(completion, completion.task, completion.verdict, **own))
            _check_range(function.__name__, value, self.when_correct if completion.correct else self.when_wrong)
            return value

        body: dict[str, Any] = {
            "when_correct": ValueRange(*when_correct),
            "when_wrong": ValueRange(*when_wrong),
            "__call__": __call__,
            "__module__": function.__module__,
            "__doc__": function.__doc__,
        }
        specs = [(each.name, each.annotation, each.default) for each in parameters[3:]]
        if taken := {each.name for each in parameters[3:]} & {spec.name for spec in fields(options.Term)}:
            raise TypeError(f"{function.__name__}: {', '.join(taken)} is an option of every term")
        return make_dataclass(function.__name__, specs, bases=(Term,), namespace=body)

    return declared


def _check_range(name: str, value: float, span: ValueRange) -> None:
    if (
        value < span.low or value > span.high
    ):  # A value that is no number passes: the reward leaves it out and counts it.
        got, allowed = f"{value:g}", f"{span.low:g} to {span.high:g}"
        remedy = "declare the whole range at @term(...), so that wrong answers stay below correct ones"
        raise InputError(
            InputProblem(f"reward term {name}", "a value outside its declared range", got, allowed, "", remedy)
        )
