"""What a first look at the data tells before a run starts: whether they may be trained on, and their splits."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rlvr_exp.config import Config, build
from rlvr_exp.config.algorithm import SFT
from rlvr_exp.config.options import SCHEMAS
from rlvr_exp.config.stages import reads
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.tasks.base import Domain

SHOWN = 3
"""Reasons that are named."""


def not_for_training(reason: str) -> InputProblem:
    allowed, remedy = "+stage=evaluate, validate or infer", "train on another set"
    return InputProblem("data.path", "no policy may be trained on this set", reason, allowed, "", remedy)


def data_problems(config: Config) -> Iterator[InputProblem]:
    """Data that must not be trained on."""
    domain = _domain(config) if reads(config, "optimizer") else None
    if domain is None:
        return
    try:
        reason = domain.no_training()
    except InputError:
        return  # The stage reports it, with all other faults of the data.
    if reason:
        yield not_for_training(reason)


def _domain(config: Config) -> Domain | None:
    """The domain; None where its data are not here, or its class is a user's own, which may import anything."""
    if not reads(config, "data") or config.data._target_ not in SCHEMAS:
        return None
    return None if config.data.path and not Path(config.data.path).exists() else build(config.data)


@dataclass(frozen=True)
class Splits:
    """How many tasks each split has, and how many tasks are in none, by reason."""

    sizes: Mapping[str, int]
    left_out: Mapping[str, int]
    note: str


def splits_of(config: Config) -> Splits | None:
    """The splits of the data; None where they cannot be read here.

    Raises:
        InputError: the data are faulty, or a split that the stage needs is not there.
    """
    domain = _domain(config)
    if domain is None:
        return None
    sizes = domain.sizes()
    left_out = reasons(domain) if config.data.path else {}
    missing = [name for name in _needed(config) if not sizes.get(name)]
    if missing:
        raise InputError(no_split(missing, sizes, left_out))
    return Splits(sizes, left_out, domain.splits_note())


def reasons(domain: Domain) -> dict[str, int]:
    """How many tasks of the data are in no split, by reason."""
    return dict(Counter(domain.left_out().values()).most_common())


def no_split(names: Sequence[str], sizes: Mapping[str, int], left_out: Mapping[str, int]) -> InputProblem:
    """The problem of splits that have no tasks. `left_out`: number of tasks that are in no split, by reason."""
    there = ", ".join(f"{split} ({count} tasks)" for split, count in sizes.items())
    what = f"no tasks in split {' and '.join(map(repr, names))}"
    remedy = "name another split, or other data" + (", or a verifier that judges those left out" if left_out else "")
    return InputProblem("data", what, shown(left_out), there or "no split has tasks", "", remedy)


def shown(left_out: Mapping[str, int]) -> str:
    """Tasks that are in no split, as text: their number and the first reasons."""
    first = [f"{reason.splitlines()[0]} ({count})" for reason, count in list(left_out.items())[:SHOWN]]
    return f"{sum(left_out.values())} tasks left out: {'; '.join(first)}" if left_out else ""


def _needed(config: Config) -> list[str]:
    needed = ["train"] if reads(config, "optimizer") else []
    needed += ["dev"] if isinstance(config.algorithm, SFT) and reads(config, "optimizer") else []
    needed += [config.evaluation.split] if reads(config, "evaluation") else []
    needed += [config.infer.split] if config.infer is not None and not config.infer.input else []
    return [*dict.fromkeys(needed)]
