"""One reader per set of edits, and the table of them.

A reader is a module with NAME, `files(root)`, the files that it reads in their order, and `read(row, place)`, which turns
one line into a draft or raises Dropped. It keeps nothing between lines.
"""

from types import ModuleType

from rlvr_exp.corpora.edit_sets.sets import commitpackft, edit_eval, editpackft, opencodeedit, rows, smelly_code

READERS: dict[str, ModuleType] = {
    reader.NAME: reader for reader in (commitpackft, editpackft, smelly_code, edit_eval, opencodeedit, rows)
}
