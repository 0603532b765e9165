"""All families, by name: importing this registers every file of families."""

from rlvr_exp.domains.arc.generator import colour, geometry, lines, objects, patterns, resize
from rlvr_exp.domains.arc.generator.family import FAMILIES

KINDS = (geometry, resize, colour, lines, patterns, objects)

__all__ = ["FAMILIES", "KINDS"]
