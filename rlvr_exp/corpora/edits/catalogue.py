"""All families, by name: importing this registers every file of families."""

from rlvr_exp.corpora.edits import behaviour, calls, classes, flow, functions, idioms, renames, replacements, strings
from rlvr_exp.corpora.edits.family import FAMILIES

KINDS = (renames, idioms, strings, functions, flow, classes, calls, behaviour, replacements)

__all__ = ["FAMILIES", "KINDS"]
