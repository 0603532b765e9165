"""Registers the ARC domain."""

from rlvr_exp.core.domains import Domain

DOMAIN = Domain(
    name="arc",
    abilities=frozenset({"ExportsSolutions", "HoldsBackCases", "RelabelsTasks", "ShowsCases"}),
    schemas="rlvr_exp.domains.arc.options",
    rows="rlvr_exp.domains.arc.tasks:ROWS",
    picture="rlvr_exp.domains.arc.prompt:puzzle_picture",
    embedded={"tiny": "rlvr_exp.domains.arc.tasks:of_tiny"},
)
