"""Published sets of edits with tests as rows: those that `data=code` reads, here to be answered by actions, too."""

from collections.abc import Iterator
from pathlib import Path

from rlvr_exp.tasks.code.load import load
from rlvr_exp.tasks.code.prompt import CodeInputs
from rlvr_exp.tasks.code.record import CodeRecord
from rlvr_exp.tasks.edits.rows import EditRow


def published(path: Path, name: str) -> list[EditRow]:
    """The rows of a set, all in the split that it says. Raises InputError where the set is not there or is damaged."""
    return list(_rows(load(path, name), name))


def _rows(records: list[CodeRecord], name: str) -> Iterator[EditRow]:
    for record in records:
        inputs, lazy, tests = record.inputs, record.lazy, record.tests
        assert isinstance(inputs, CodeInputs) and tests is not None, "a set of edits has programs and tests"
        yield EditRow(
            id=record.id,
            source=name,
            language="python",
            instruction=inputs.instruction,
            before=inputs.before,
            after=record.gold,
            tests=tests.tests,
            split=record.split,
            family=record.family,
            lazy_instruction=lazy.instruction if isinstance(lazy, CodeInputs) else "",
            script=record.script,
        )
