"""Registers the ARC domain."""

from rlvr_exp.core.domains import Domain

DOMAIN = Domain(
    name="arc",
    schemas="rlvr_exp.domains.arc.options",
    rows="rlvr_exp.domains.arc.tasks:ROWS",
    picture="rlvr_exp.domains.arc.prompt:puzzle_picture",
    embedded={"tiny": "rlvr_exp.domains.arc.tasks:of_tiny"},
)
