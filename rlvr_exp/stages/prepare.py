"""Make data: an embedded corpus, rows, a checked or translated set. `prepare=NAME` chooses the maker.

A maker is a function of rlvr_exp.corpora. It takes the configuration and the context, and writes its files. It returns
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
