"""Registers the domain of coding problems."""

from rlvr_exp.core.domains import Domain

DOMAIN = Domain(
    name="problems",
    schemas="rlvr_exp.domains.problems.options",
    stages="rlvr_exp.domains.problems.options:STAGES",
    abilities=frozenset({"ShowsCases"}),
    nodes={"schedule": "rlvr_exp.domains.problems.options:Schedule"},
    inference={
        "rlvr_exp.domains.problems.reasoning.Reasoning": "rlvr_exp.domains.problems.engine.Solver",
        "rlvr_exp.domains.problems.adversarial.Adversarial": "rlvr_exp.domains.problems.engine.Solving",
    },
    report_sections=("rlvr_exp.domains.problems.report:adversarial_section",),
    causes=("rlvr_exp.domains.problems.report:CAUSES",),
    embedded={
        "tiny_solver": "rlvr_exp.domains.problems.tasks:of_tiny_solver",
        "tiny_tester": "rlvr_exp.domains.problems.tasks:of_tiny_tester",
    },
)
