"""Make data: an embedded corpus, rows, a checked or translated set. The maker is chosen by `prepare=NAME`.

A maker is a function of rlvr_exp.corpora that takes the configuration and the context, writes its files and returns
its report, which becomes `prepare.txt`, and its counts.
"""

from typing import Any

from hydra.utils import get_method

from rlvr_exp.core.files import write_text
from rlvr_exp.records.context import RunContext, StageResult


def run(config: Any, context: RunContext) -> StageResult:
    text, counts = get_method(config.prepare._target_)(config, context)
    write_text(context.directory / "prepare.txt", text + "\n")
    context.progress(kind="note", text=text)
    return StageResult(metrics=counts)
