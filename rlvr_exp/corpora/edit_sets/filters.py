"""The published filters of EditPackFT (its filter.py), for Python: each an option, in the order in which it applies them.

One difference: a header is stripped before anything is compared, as there, and rows that differ in it alone are then
dropped as edits of nothing, which there have a distance below 10.
"""

from rapidfuzz.distance import Levenshtein

from rlvr_exp.config.prepare import EditSets
from rlvr_exp.corpora.edit_sets.draft import Dropped
from rlvr_exp.tasks.completion import syntax_fault

FORBIDDEN = "a forbidden word in the text after"
SMALL = "too small an edit"
NO_PYTHON = "the text after is no Python"
QUOTES = '"""'


def without_header(program: str) -> str:
    """A program without the comments, blank lines between them and docstring that it begins with."""
    lines, cut, inside = program.split("\n"), 0, False
    for number, line in enumerate(lines, 1):
        if line.count(QUOTES) == 1:
            if inside:
                cut = number
                break
            inside = True
        elif not inside and line.startswith("#"):
            cut = number
        elif not inside and line.strip():
            break
    return "\n".join(lines[cut:])


def check(before: str, after: str, options: EditSets) -> None:
    """Raises Dropped where a filter that is on does not let an edit of Python pass."""
    for word in options.forbidden:
        if word in after or word.lower() in after:
            raise Dropped(FORBIDDEN, word)
    least = options.min_distance
    if least and Levenshtein.distance(before, after, score_cutoff=least) < least:
        raise Dropped(SMALL, f"fewer than {least} characters")
    if options.must_parse and syntax_fault(after) is not None:
        raise Dropped(NO_PYTHON)
