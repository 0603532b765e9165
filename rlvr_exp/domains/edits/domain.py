"""Registers the edits domain."""

from rlvr_exp.core.domains import Domain

DOMAIN = Domain(
    name="edits",
    abilities=frozenset({"ContinuesEdits", "HasEditTests"}),
    schemas="rlvr_exp.domains.edits.options",
    formats={"ast_grep": "rlvr_exp.domains.edits.problem:AstGrep"},
    checks=("rlvr_exp.domains.edits.tasks:teacher_problems",),
    embedded={"tiny_edits": "rlvr_exp.domains.edits.tasks:of_tiny"},
)
