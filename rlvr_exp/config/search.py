"""Options of `study=search`: what may vary and how, who chooses, and what the choice is checked on."""

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from rlvr_exp.config.names import suggest
from rlvr_exp.config.options import configures, option
from rlvr_exp.config.scales import scale_of
from rlvr_exp.config.study import Budgeted
from rlvr_exp.core.errors import InputProblem

RANGES = ("uniform", "log_uniform", "int", "log_int")
CHOICE = "choice"
KINDS = (*RANGES, CHOICE)
ALLOWED = "{uniform|log_uniform|int|log_int: [LOW, HIGH]} or {choice: [A, B, ...]}"
BARE = re.compile(r"[A-Za-z_][\w./-]*")
"""A text that Hydra's grammar reads as a text without quotes, but for its few names of other values."""
NO_TEXT = ("true", "false", "null", "nan", "inf")


@dataclass(frozen=True)
class Dimension:
    """A key of the configuration that a search varies."""

    key: str
    kind: str
    values: tuple[Any, ...]
    """Its two ends, or its choices."""

    @property
    def logarithmic(self) -> bool:
        return self.kind.startswith("log_")

    @property
    def integer(self) -> bool:
        return self.kind.endswith("int")

    def word(self, value: Any) -> str:
        """The word of a command line that sets it."""
        return f"{self.key}={text_of(value)}"

    def holds(self, value: Any) -> bool:
        """Whether a value could be drawn."""
        if self.kind == CHOICE:
            return text_of(value) in map(text_of, self.values)
        number = isinstance(value, int if self.integer else int | float) and not isinstance(value, bool)
        return number and self.values[0] <= value <= self.values[1]


def text_of(value: Any) -> str:
    """A value as Hydra's grammar reads it."""
    if isinstance(value, list):
        return f"[{','.join(map(text_of, value))}]"
    if isinstance(value, str) and BARE.fullmatch(value) and value.lower() not in NO_TEXT:
        return value
    return json.dumps(value, ensure_ascii=False)


def dimensions(space: Mapping[str, Any]) -> list[Dimension]:
    """Of a space without faults."""
    return [Dimension(key, *_only(given)) for key, given in _leaves(space)]


def _only(given: Mapping[str, Any]) -> tuple[str, tuple[Any, ...]]:
    ((kind, values),) = given.items()
    return kind, tuple(values)


def _leaves(space: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """What is given for each key: keys with dots may be written as nodes below each other, as a command line does."""
    for name, given in space.items():
        if isinstance(given, dict) and given and all(isinstance(part, dict) for part in given.values()):
            yield from _leaves(given, f"{above}{name}.")
        else:
            yield f"{above}{name}", given


def _space_faults(space: Mapping[str, Any]) -> Iterator[InputProblem]:
    seen = set[str]()
    for key, given in _leaves(space):
        where, remedy = f"space.{key}", f"'study.space.{key}={{log_uniform: [1e-5, 1e-3]}}'"
        if key in seen:
            yield InputProblem(where, "is there twice, as a path and as nodes", key, "one of them")
        seen.add(key)
        if not isinstance(given, dict) or len(given) != 1:
            what = "one way to draw it is needed"
            remedy = f"~study.space.{key} removes what a file says; {remedy}"
            yield InputProblem(where, what, json.dumps(given), ALLOWED, "", remedy)
            continue
        ((kind, values),) = given.items()
        if kind not in KINDS:
            near = suggest(kind, KINDS)
            what = f"no such way to draw{f'; did you mean {near}' if near else ''}"
            yield InputProblem(where, what, kind, ", ".join(KINDS), "", remedy)
        elif what := (_choice_fault(values) if kind == CHOICE else _range_fault(kind, values)):
            yield InputProblem(where, what, f"{kind}: {json.dumps(values)}", ALLOWED)


def _choice_fault(values: Any) -> str:
    if not isinstance(values, list) or len(values) < 2:
        return "a choice is among two or more"
    texts = [text_of(value) for value in values]
    return "choices differ from each other" if len(set(texts)) < len(texts) else ""


def _range_fault(kind: str, values: Any) -> str:
    if not isinstance(values, list) or len(values) != 2 or not all(_number(value) for value in values):
        return "a range has two ends, both numbers"
    low, high = values
    if kind.endswith("int") and not all(isinstance(value, int) for value in values):
        return "both ends are whole numbers"
    if low >= high:
        return "the second end is above the first"
    return "on a logarithmic scale both ends are above 0" if kind.startswith("log_") and low <= 0 else ""


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


@configures("rlvr_exp.runs.studies.search.Search")
@dataclass
class Search(Budgeted):
    """Which values of some options do best: Optuna asks for trials, each of which is run with every seed."""

    space: dict[str, Any] = field(default_factory=dict)
    """How each key of the configuration is drawn: uniform, log_uniform, int or log_int with [LOW, HIGH], or choice with its
    values."""
    trials: int = option(20, low=1)
    """Trials in all; the first is the command without a change, where the space holds its values."""
    sampler: str = option("tpe", choices=("tpe", "random"))
    """How trials are drawn: by the tree-structured Parzen estimator, which learns from those before, or at random."""
    startup: int = option(10, low=1)
    """Trials that tpe draws at random before it learns from them."""
    pruner: str = option("none", choices=("none", "median", "halving"))
    """When a trial is stopped early, by what its first seed logs: below the median of the others in that step, by successive
    halving, or never."""
    curve: str = "success/mean"
    """The metric of a run's rows that the pruner goes by; in the direction of `direction`."""
    pruner_startup: int = option(5, low=0)
    """Trials that median lets end before it stops any."""
    pruner_warmup: int = option(1, low=1)
    """The first step in which a trial may be stopped."""
    pruner_window: int = option(10, low=1)
    """Rows of which the pruner takes the mean: single steps are noisy."""
    direction: str = option("maximize", choices=("maximize", "minimize"))
    """Which way the metric is better."""
    trial_words: list[str] = field(default_factory=list)
    """Further words of the trials alone, such as evaluation.split=dev: what chooses is then not what is reported."""
    confirm: list[int] = option([1000, 1001, 1002], low=0)
    """Seeds of which no trial had any, on which the best trial and the unchanged command are compared; empty: they are not."""

    def _faults(self) -> Iterator[InputProblem]:
        yield from super()._faults()
        if not self.space:
            remedy = "'study.space.optimizer.lr={log_uniform: [1e-5, 1e-3]}'"
            yield InputProblem("space", "no key is varied", "", ALLOWED, "", remedy)
        yield from _space_faults(self.space)
        if known := sorted({*self.confirm} & {*self.seeds}):
            what = "the trials have these seeds, so that they confirm nothing"
            yield InputProblem("confirm", what, str(known), "other seeds than study.seeds, or []")
        if len(set(self.confirm)) < len(self.confirm):
            yield InputProblem("confirm", "one run for each", str(self.confirm), "different seeds")
        if scale_of(self.metric).less_is_better and self.direction == "maximize":
            yield InputProblem("direction", f"less {self.metric} is better", self.direction, "minimize")

    def _words(self) -> Iterator[tuple[str, list[str]]]:
        yield from super()._words()
        yield "trial_words", self.trial_words
