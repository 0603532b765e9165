"""The options of a command line in words, for --help: all that its stage reads, or those that a word is in.

What is still to be given, such as a path, is no obstacle; only what the words themselves have wrong is.
"""

from collections.abc import Sequence

from rlvr_exp.config.compose import compose_lenient, near_option
from rlvr_exp.config.describe import option_lines
from rlvr_exp.config.stages import STAGES, nodes
from rlvr_exp.config.typed_config import Checked
from rlvr_exp.core.errors import InputError, InputProblem

COMMON_STAGE = "grpo"
"""Whose options are shown where no stage is given and it has them."""


def options_page(words: Sequence[str], filters: Sequence[str], problems: Sequence[InputProblem] = ()) -> str:
    """The options of a command line whose path has one of the filters in it; all without filters.

    Raises:
        InputError: a word is wrong, or no option has a filter.
    """
    if filters and not any(word.startswith("+stage=") for word in words):
        words = [f"+stage={_stage_with(filters)}", *words]
    checked = compose_lenient(words)
    faults = [*problems, *_of_words(checked, words)]
    lines = option_lines(checked) if checked.config.stage in STAGES else []
    found = [line for line in lines if not filters or any(one in line.partition("=")[0] for one in filters)]
    if filters and not found and not faults:
        near = " or ".join(filter(None, (near_option(words, one) for one in filters)))
        allowed = ", ".join(dict.fromkeys(line.split("=")[0].split(".")[0] for line in lines))
        faults = [InputProblem(" ".join(filters), f"no option of +stage={checked.config.stage}", "", allowed, near)]
    if faults:
        raise InputError(*faults)
    head = f"Options of {' '.join(words)}:"
    return "\n".join([head, "", *(f"  {line}" for line in found)])


def _stage_with(filters: Sequence[str]) -> str:
    """A stage that has options of such a name: the common one where it has."""
    tops = {one.split(".")[0] for one in filters}
    return next((stage for stage in (COMMON_STAGE, *STAGES) if tops <= nodes(stage)), COMMON_STAGE)


def _of_words(checked: Checked, words: Sequence[str]) -> list[InputProblem]:
    """The problems that a word has, not those of options that no word names."""
    named = {word.lstrip("+~").partition("=")[0] for word in words}
    return [
        problem
        for problem in checked.problems
        if problem.where in {*named, *words} or checked.config.stage not in STAGES
    ]
