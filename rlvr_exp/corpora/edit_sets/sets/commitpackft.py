"""CommitPackFT: commits of one file, JSON lines by language in `data/LANGUAGE/data.jsonl`; and whatever has its keys.

The instruction is the first line of the commit's message (`subject`), as the set's own use has it, or the message.
"""

from rlvr_exp.corpora.edit_sets.draft import Draft, Place
from rlvr_exp.corpora.edit_sets.lines import row_files as files
from rlvr_exp.tasks.rows import Row

__all__ = ["NAME", "commit_of", "files", "read"]

NAME = "commitpackft"
KEPT = ("commit", "old_file", "new_file", "repos")
"""Keys that become metadata."""


def read(row: Row, place: Place) -> Draft:
    return commit_of(row, row.text(place.options.instruction), row.text("lang"))


def commit_of(row: Row, instruction: str, language: str) -> Draft:
    """The draft of a commit; its id is the commit's hash and the file."""
    return Draft(
        f"{row.text('commit')}:{row.text('new_file', '')}",
        language,
        instruction.strip(),
        row.text("old_contents"),
        row.text("new_contents"),
        licence=row.text("license", ""),
        metadata={key: row.values[key] for key in KEPT if key in row.values},
    )
