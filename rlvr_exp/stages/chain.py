"""Run a chain of runs, chosen by `chain=NAME`. The YAML file of the chain describes its links."""

from typing import Any

from hydra.utils import get_method

from rlvr_exp.records.context import RunContext, StageResult


def run(config: Any, context: RunContext) -> StageResult:
    return get_method(config.chain._target_)(config, context)
