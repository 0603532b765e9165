"""Whatever a line holds, it becomes a record or is dropped with a reason; nothing else is raised."""

from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from raw_edits import commit, edit

from rlvr_exp.config.compose import compose
from rlvr_exp.config.prepare import EditSets
from rlvr_exp.corpora.edit_sets.draft import Dropped, Place
from rlvr_exp.corpora.edit_sets.lines import Line
from rlvr_exp.corpora.edit_sets.normalize import normalize
from rlvr_exp.corpora.edit_sets.sets import READERS
from rlvr_exp.corpora.edit_sets.signature import signature
from rlvr_exp.tasks.rows import Row

ODD = st.sampled_from(["", " ", "\x00", "\ud800", "def f(", '"""', "x = 1\n", "é" * 9, "a+" * 3000, "(" * 300])
VALUES = st.recursive(
    ODD | st.none() | st.booleans() | st.integers() | st.floats(), lambda inner: st.lists(inner, max_size=2)
)
CHAT = {
    "messages": [{"role": "user", "content": "## Instruction:\nDo\n## Code After:\n"}],
    "old_code": "a",
    "new_code": "b",
}
EDIT_EVAL = {
    "task_id": "a",
    "instruction": "b",
    "context": "x\n{{Code}}",
    "input": "c",
    "output": "d",
    "test": "def check(): pass",
}
TRIPLET = {"code_before_purify": "a", "instruct_purify": "b", "code_after_purify": "c"}
LABEL = {
    "Language": "Python",
    "Class": "Shop",
    "Code Smell": "a",
    "Method": "b",
    "Code Smell #": "1",
    "Type": "",
    "Category": "",
}
BASES = {
    "commitpackft": [commit("one")],
    "editpackft": [commit("one", instruction="a")],
    "smelly_code": [LABEL],
    "edit_eval": [EDIT_EVAL, {key: EDIT_EVAL[key] for key in ("instruction", "input", "output")}],
    "opencodeedit": [TRIPLET, CHAT],
    "rows": [edit("one", id="a", tests="b", licence="c", metadata={"d": 1}, split="dev")],
}


@cache
def options(maker: str) -> EditSets:
    return compose(["+stage=prepare", f"prepare={maker}", "prepare.path=x"]).config.prepare


@pytest.mark.parametrize("maker", ["edits", "edits_filtered"])
@pytest.mark.parametrize("name", READERS)
@given(st.data())
def test_any_line_is_taken_or_dropped(name: str, maker: str, data: st.DataObject) -> None:
    base = data.draw(st.sampled_from(BASES[name]))
    values = base | data.draw(st.dictionaries(st.sampled_from(sorted(base)), VALUES, max_size=3))
    for key in data.draw(st.lists(st.sampled_from(sorted(base)), max_size=1)):
        del values[key]
    try:
        found = normalize(
            Line(1, 1, values), Row(values, "rows, line 1"), READERS[name], Place(Path("x"), options(maker))
        )
    except Dropped as fault:
        assert fault.reason
    else:
        assert found.record.language and found.record.id and found.record.instruction.strip()
        signature(found.record.before, found.record.after or "")
        found.text.encode("ascii")
