"""The output file of an inference: one answer per line, in the order of the tasks. Never generates."""

from typing import Any

from rlvr_exp.records.resumable_jsonl import ResumableJsonl


class AnswerFile(ResumableJsonl):
    """The file of answers; `provenance` is everything that determines them."""

    option = "infer.output"

    @staticmethod
    def fits(row: Any) -> bool:
        return isinstance(row, dict) and {"id", "outcome", "attempts"} <= row.keys()
