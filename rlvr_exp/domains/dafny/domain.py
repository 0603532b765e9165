"""Registers the Dafny domain."""

from rlvr_exp.core.domains import Domain

DOMAIN = Domain(
    name="dafny",
    schemas="rlvr_exp.domains.dafny.options",
    embedded={"tiny_dafny": "rlvr_exp.domains.dafny.tasks:of_tiny"},
    formats={"dafny": "rlvr_exp.domains.dafny.problem:Dafny"},
    stages="rlvr_exp.domains.dafny.options:STAGES",
    options={
        "evaluate": "rlvr_exp.domains.dafny.options:CascadeEvaluate",
        "infer": "rlvr_exp.domains.dafny.options:CascadeInfer",
    },
    stage_nodes={"cascade": "rlvr_exp.domains.dafny.options:Cascade"},
    passed_over={"dafny": "rlvr_exp.domains.dafny.tool:passed_over"},
    team="rlvr_exp.domains.dafny.options:TEAM",
    contests={"dafny": "rlvr_exp.domains.dafny.contest"},
    report_sections=("rlvr_exp.domains.dafny.cascade_report:cascade_section",),
)
