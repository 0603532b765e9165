"""The file of an inference: one answer a line, in the order of the tasks. Never asks."""

from typing import Any

from rlvr_exp.run.resumable_jsonl import ResumableJsonl


class AnswerFile(ResumableJsonl):
    """The file of answers; `made`: everything that decides them."""

    option = "infer.output"

    @staticmethod
    def fits(row: Any) -> bool:
        return isinstance(row, dict) and {"id", "outcome", "attempts"} <= row.keys()
