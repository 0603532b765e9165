"""The names that raw sets give to languages, as rlvr_exp.tasks.edits.languages names them."""

from rlvr_exp.corpora.edit_sets.draft import Dropped
from rlvr_exp.tasks.edits.languages import LANGUAGES

UNKNOWN = "a language that ast-grep does not know"
OTHERS = {
    "c++": "cpp",
    "c#": "csharp",
    "c-sharp": "csharp",
    "shell": "bash",
    "sh": "bash",
    "javascript react": "javascript",
    "python3": "python",
    "terraform": "hcl",
}
"""Spellings that ast-grep does not have."""


def canonical(spelling: str) -> str:
    """The canonical name of a set's spelling. Raises Dropped."""
    name = spelling.strip().lower()
    found = LANGUAGES.get(name) or OTHERS.get(name)
    if found is None:
        raise Dropped(UNKNOWN, spelling[:60])
    return found
