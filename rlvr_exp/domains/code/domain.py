"""Registers the code domain."""

from rlvr_exp.core.domains import Domain

DOMAIN = Domain(
    name="code",
    schemas="rlvr_exp.domains.code.options",
    code_sets=(
        "rlvr_exp.domains.code.human_eval:HUMAN_EVAL",
        "rlvr_exp.domains.code.human_eval:HUMAN_EVAL_PLUS",
        "rlvr_exp.domains.code.mbpp:MBPP",
        "rlvr_exp.domains.code.mbpp:MBPP_PLUS",
        "rlvr_exp.domains.code.human_eval:HUMANEVALPACK",
    ),
    programs="rlvr_exp.domains.code.tasks:programs_at",
)
