"""The jobs of a sweep: every combination of the values that its words list, each checked before any is started."""

from collections.abc import Sequence
from dataclasses import dataclass

from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException

from rlvr_exp.config.compose import compose_lenient
from rlvr_exp.config.schema_check import Checked
from rlvr_exp.config.words import nothing_given, unreadable
from rlvr_exp.core.errors import InputError, InputProblem


@dataclass(frozen=True)
class SweepJob:
    """One job of a sweep."""

    words: tuple[str, ...]
    """Its full command line."""
    swept: tuple[str, ...]
    """The words that differ between jobs."""
    checked: Checked


def expand(words: Sequence[str]) -> list[SweepJob]:
    """All jobs of a sweep, checked.

    Raises:
        InputError: with all that is wrong in any of them.
    """
    parsed, problems = _parse(words)
    (lines,) = BasicSweeper.split_arguments(parsed, max_batch_size=None)
    differing = [len(set(column)) > 1 for column in zip(*lines, strict=True)]
    jobs = []
    for line in lines:
        swept = tuple(word for word, differs in zip(line, differing, strict=True) if differs)
        jobs.append(SweepJob(tuple(line), swept, compose_lenient(line)))
        problems += jobs[-1].checked.problems
    if problems:
        raise InputError(*dict.fromkeys(problems))
    return jobs


def _parse(words: Sequence[str]) -> tuple[list[Override], list[InputProblem]]:
    """The words that can be read and split, and a problem for each of the others."""
    parser, parsed, problems = OverridesParser.create(), [], []
    for place, word in enumerate(words):
        try:
            override = parser.parse_override(word)
            if override.is_sweep_override() and override.is_hydra_override():
                problems.append(InputProblem(word, "cannot be swept over"))
                continue
            if problem := nothing_given(word):
                problems.append(problem)
                continue
            BasicSweeper.split_arguments([override], max_batch_size=None)
        except (HydraException, ValueError) as fault:
            problems.append(unreadable(word, fault, words[place - 1] if place else ""))
            continue
        parsed.append(override)
    return parsed, problems
