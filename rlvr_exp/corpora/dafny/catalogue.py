"""All families, by name: importing this registers every file of families."""

from rlvr_exp.corpora.dafny import arithmetic, arrays, calls, choices, recursion, sequences
from rlvr_exp.corpora.dafny.family import FAMILIES

KINDS = (arithmetic, choices, recursion, calls, arrays, sequences)

__all__ = ["FAMILIES", "KINDS"]
