"""EditPackFT: the Python commits of CommitPackFT that passed its published filters, with CommitPackFT's keys.

The instruction is the column `instruction` where there is one, else that of CommitPackFT. `content`, the prompt that
the release adds, is not read. The filters themselves are options: `prepare=edits_filtered` applies them to CommitPackFT.
"""

from rlvr_exp.corpora.edit_sets.draft import Draft, Place
from rlvr_exp.corpora.edit_sets.lines import row_files as files
from rlvr_exp.corpora.edit_sets.sets.commitpackft import commit_of
from rlvr_exp.tasks.rows import Row

__all__ = ["NAME", "files", "read"]

NAME = "editpackft"


def read(row: Row, place: Place) -> Draft:
    key = "instruction" if "instruction" in row.values else place.options.instruction
    return commit_of(row, row.text(key), row.text("lang", "Python"))
