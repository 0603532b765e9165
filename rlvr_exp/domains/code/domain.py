"""Registers the code domain."""

from rlvr_exp.core.domains import Domain

DOMAIN = Domain(
    name="code",
    abilities=frozenset({"HasEditTests"}),
    schemas="rlvr_exp.domains.code.options",
    code_sets=(
        "rlvr_exp.domains.code.sets:HUMAN_EVAL",
        "rlvr_exp.domains.code.sets:HUMAN_EVAL_PLUS",
        "rlvr_exp.domains.code.sets:MBPP",
        "rlvr_exp.domains.code.sets:MBPP_PLUS",
        "rlvr_exp.domains.code.sets:HUMANEVALPACK",
        "rlvr_exp.domains.code.sets:KODCODE",
        "rlvr_exp.domains.code.sets:BIGCODEBENCH",
        "rlvr_exp.domains.code.io_sets:LIVECODEBENCH",
        "rlvr_exp.domains.code.io_sets:APPS",
        "rlvr_exp.domains.code.io_sets:TACO",
    ),
    programs="rlvr_exp.domains.code.tasks:programs_at",
)
