"""Every raw set in its own layout, through the maker: the records of its lines, and the reasons of dropped lines. No line raises
anything else."""

import csv
import gzip
import json
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st
from makers import made
from program import ENVIRONMENT, PROGRAM
from pyarrow import parquet
from raw_edits import commit, dropped, edit, ingest, program, reasons, records, write_lines

from rlvr_exp.config.compose import compose
from rlvr_exp.core.errors import InputError
from rlvr_exp.domains.edits.alike import signature
from rlvr_exp.domains.edits.normalize import READERS, Dropped, Line, SetSource, normalize
from rlvr_exp.domains.edits.options import EditSets
from rlvr_exp.domains.edits.tasks import Edits
from rlvr_exp.tasks.edit_sets import CANITEDIT
from rlvr_exp.tasks.rows import Row

BEFORE, AFTER = "def f(x):\n    return x", "def f(x):\n    return x + 1"
SMELLS = """\
Language,Class,Code Smell #,Category,Code Smell,Method,Type
Python,Shop,1,Bloaters,Large Class,Entire Class,"Too many, far too many"
Python,Shop,2,Bloaters,Long Method,order,
Language,Class,Code Smell #,Category,Code Smell,Method,Type
C++,Tart,1,Bloaters,Long Method,bake,Long
Java,Ghost,1,Bloaters,Long Method,boo,Long
"""


def text_file(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


@pytest.fixture(scope="module")
def every(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The output of one run over all sets, each in its own layout."""
    place = tmp_path_factory.mktemp("every")
    go = {"old_contents": "func a() int { return 1 }\n", "new_contents": "func a() int { return 2 }\n"}
    write_lines(place / "commitpackft/data/python/data.jsonl", [commit("one"), commit("two", license="apache-2.0")])
    write_lines(place / "commitpackft/data/go/data.jsonl", [commit("three", lang="Go", **go)])
    packed = [commit("five", instruction="In words", content="## Code Before:"), commit("six", instruction="More")]
    packed[1].pop("lang")
    (place / "editpackft").mkdir()
    parquet.write_table(pyarrow.Table.from_pylist(packed), place / "editpackft/train-00000-of-00001.parquet")
    text_file(place / "smelly_code/Analysis/GroundTruthLevel/GroundTruth.csv", SMELLS)
    text_file(place / "smelly_code/Python/Shop.py", "class Shop:\n    pass\n")
    text_file(place / "smelly_code/C++/Cake.h", "class Tart {};\n")
    drawn = {"instruction": "Add one.", "context": "", "input": BEFORE, "output": AFTER}
    test = {"task_id": "EditEval/0", "test": "def check():\n    assert f(1) == 2\n", **drawn}
    write_lines(place / "edit_eval/edit_eval.jsonl", [test, {**test, "task_id": "EditEval/1", "test": "def check(:"}])
    write_lines(place / "edit_eval/train.jsonl", [drawn | {"input": program("a"), "output": program("b")}])
    triplet = {"commit": ["a"], "instr_type": "lazy", "code_before_purify": program("c"), "instruct_purify": "Do a"}
    head = f"## Code Before:\n## Instruction:\nnot this\n{program('d')}"
    request = f"{head}\n## Instruction:\nDo b\nand more\n## Code After:\n"
    messages = [{"role": "system", "content": "s"}, {"role": "user", "content": request}]
    chat = {"messages": messages, "old_code": program("d"), "new_code": program("e"), "commit": "x"}
    lines = [triplet | {"code_after_purify": program("f")}, chat, chat | {"messages": []}]
    write_lines(place / "opencodeedit/oce.jsonl", lines)
    write_lines(place / "rows/validation.jsonl", [edit("seven", id="1", source="mine", licence="MIT")])
    zipped = "".join(json.dumps(edit(word, split="test", after=None)) + "\n" for word in ("eight", "nine"))
    (place / "rows/more.jsonl.gz").write_bytes(gzip.compress(zipped.encode()))
    write_lines(place / "rows/other.jsonl", [edit("ten", split="later"), edit("eleven", metadata=[1])])
    also = ", ".join(f"{name}: {place / name}" for name in READERS if name != "rows")
    words = (f"prepare.also={{{also}}}", "prepare.test_fraction=0", "prepare.dev_fraction=0")
    return ingest(place, "rows", place / "rows", *words)


def of_set(output: Path, name: str) -> tuple[list[dict[str, Any]], list[str]]:
    """The rows of a set by id, and the reasons of its dropped lines."""
    rows = [row for key, row in sorted(records(output).items()) if key.startswith(f"{name}/")]
    with open(output / "dropped.csv", newline="") as file:
        return rows, [line["reason"] for line in csv.DictReader(file) if line["set"] == name]


def test_commitpackft_by_language(every: Path) -> None:
    rows, _ = of_set(every, "commitpackft")
    assert {row["language"] for row in rows} == {"python", "go"}
    one = next(row for row in rows if row["id"] == "commitpackft/one1:one.py")
    assert {key: value for key, value in one.items() if key != "split"} == {
        "id": "commitpackft/one1:one.py",
        "source": "commitpackft",
        "language": "python",
        "instruction": "Return another one",
        "before": program("one"),
        "after": commit("one")["new_contents"],
        "tests": "",
        "licence": "MIT",
        "metadata": {"commit": "one1", "old_file": "one.py", "new_file": "one.py", "repos": "a/b"},
    }
    assert sorted(row["licence"] for row in rows) == ["Apache-2.0", "MIT", "MIT"]
    metadata = json.loads((every / "metadata.json").read_text())
    assert metadata["licences"] == {"MIT": 10, "": 4, "Apache-2.0": 1} and metadata["counts"]["lines"] == 21
    assert list(metadata["sources"]["commitpackft"]) == ["data/go/data.jsonl", "data/python/data.jsonl"]
    assert not (every / ".ingest").exists()


def test_editpackft_as_a_table(every: Path) -> None:
    rows, _ = of_set(every, "editpackft")
    assert {row["instruction"] for row in rows} == {"In words", "More"}
    assert {row["source"] for row in rows} == {"editpackft"}


def test_smelly_code_gives_tasks_without_an_answer(every: Path) -> None:
    rows, why = of_set(every, "smelly_code")
    assert [row["instruction"] for row in rows] == [
        "Remove the code smell Long Method in `bake` of class Tart. Long",
        "Remove the code smell Large Class in class Shop. Too many, far too many",
        "Remove the code smell Long Method in `order` of class Shop.",
    ]
    assert [(row["after"], row["licence"], row["language"]) for row in rows] == [
        (None, "MIT", "cpp"),
        *[(None, "MIT", "python")] * 2,
    ]
    assert why == ["the table's header again", "no source of that class"]


def test_edit_eval_stays_in_test_and_instruct_coder_is_drawn(every: Path) -> None:
    rows, why = of_set(every, "edit_eval")
    found = {row["split"]: row for row in rows}
    assert found["test"]["after"] == AFTER + "\n" and "check()" in found["test"]["tests"]
    assert found["train"]["before"] == program("a") and len(rows) == 2
    assert why == ["its tests cannot be read as Python"]


def test_opencodeedit_in_both_layouts(every: Path) -> None:
    rows, why = of_set(every, "opencodeedit")
    assert {row["instruction"] for row in rows} == {"Do a", "Do b\nand more"}
    assert why == ["a field is missing or has another type"]


def test_own_rows_with_splits_and_packed(every: Path) -> None:
    rows, why = of_set(every, "rows")
    assert [(row["split"], row["source"]) for row in rows if row["id"] == "rows/1"] == [("dev", "mine")]
    assert [row["split"] for row in rows if row["id"] != "rows/1"] == ["test", "test"]
    assert why == ["a field is missing or has another type"] * 2


def test_the_domain_reads_what_is_written(tmp_path: Path) -> None:
    write_lines(tmp_path / "set/data.jsonl", [commit(f"w{number}") for number in range(40)])
    output = ingest(tmp_path, "commitpackft", tmp_path / "set", "prepare.test_fraction=0.3", "prepare.dev_fraction=0.3")
    splits = Edits(path=str(output), target="text").splits()
    assert set(splits) == {"train", "dev", "test"} and sum(map(len, splits.values())) == 40
    assert {task.id for task in splits["dev"]} == {n for n, row in records(output).items() if row["split"] == "dev"}


def test_the_message_may_be_the_instruction(tmp_path: Path) -> None:
    write_lines(tmp_path / "set/data.jsonl", [commit("one")])
    (row,) = records(ingest(tmp_path, "commitpackft", tmp_path / "set", "prepare.instruction=message")).values()
    assert row["instruction"] == "Return\n\nanother one"


def test_what_is_no_edit_is_dropped_and_named(tmp_path: Path) -> None:
    lines = [
        commit("kept"),
        '{"commit": ',
        "[1]",
        commit("blank", old_contents=" \n"),
        commit("gone", new_contents=""),
        commit("same", new_contents=program("same")),
        commit("cobol", lang="COBOL"),
        commit("mute", subject="  "),
        {key: value for key, value in commit("less").items() if key != "old_contents"},
        commit("number", old_contents=3),
        commit("long", new_contents="x" * 100_001),
        commit("half", new_contents="a = '\ud800'"),
        "",
        commit("last", lang="Shell"),
    ]
    write_lines(tmp_path / "set/data.jsonl", lines)
    output = ingest(tmp_path, "commitpackft", tmp_path / "set")
    assert sorted(records(output)) == ["commitpackft/kept1:kept.py", "commitpackft/last1:last.py"]
    assert records(output)["commitpackft/last1:last.py"]["language"] == "bash"
    assert dropped(output) == [
        ("data.jsonl", 2, "not readable"),
        ("data.jsonl", 3, "not readable"),
        ("data.jsonl", 4, "nothing before"),
        ("data.jsonl", 5, "nothing after"),
        ("data.jsonl", 6, "nothing changes"),
        ("data.jsonl", 7, "a language that ast-grep does not know"),
        ("data.jsonl", 8, "no instruction"),
        ("data.jsonl", 9, "a field is missing or has another type"),
        ("data.jsonl", 10, "a field is missing or has another type"),
        ("data.jsonl", 11, "too long"),
        ("data.jsonl", 12, "lone surrogates, which are no text"),
    ]
    assert "| not readable | 2 |" in (output / "stats.md").read_text()


def test_edits_that_make_a_file_may_be_kept(tmp_path: Path) -> None:
    write_lines(tmp_path / "set/data.jsonl", [commit("new", old_contents="")])
    assert len(records(ingest(tmp_path, "commitpackft", tmp_path / "set", "prepare.keep_empty=true"))) == 1


def test_a_file_that_ends_in_the_middle_is_counted(tmp_path: Path) -> None:
    text = "".join(json.dumps(edit(f"w{number}")) + "\n" for number in range(50))
    (tmp_path / "set").mkdir()
    (tmp_path / "set/cut.jsonl.gz").write_bytes(gzip.compress(text.encode())[:-40])
    write_lines(tmp_path / "set/good.jsonl", [edit("good")])
    output = ingest(tmp_path, "rows", tmp_path / "set")
    assert "not readable" in reasons(output) and records(output)


def test_tokens_are_those_of_the_model(tmp_path: Path) -> None:
    from rlvr_exp.models.policy import load_tokenizer

    write_lines(tmp_path / "set/rows.jsonl", [row := edit("one"), edit("two", after=None)])
    output = ingest(tmp_path, "rows", tmp_path / "set", "prepare.count_tokens=true")
    (counted,) = json.loads((output / "metadata.json").read_text())["counts"]["splits"]
    tokenizer = load_tokenizer(compose(["+stage=prepare", "prepare=edits", "prepare.path=x"]).config.model)
    texts = [row["instruction"], row["before"], row["after"], "Change two", program("two")]
    assert counted["tokens"] == sum(len(tokenizer(text, add_special_tokens=False).input_ids) for text in texts)
    assert counted["characters"] == sum(map(len, texts)) and counted["with_after"] == 1


def test_through_the_command_line(tmp_path: Path) -> None:
    write_lines(tmp_path / "set/rows.jsonl", [edit("one"), "{", edit("two", split="test")])
    write_lines(tmp_path / "bad/canitedit.jsonl", [dict.fromkeys(CANITEDIT.keys, "")])
    words = [*PROGRAM, "+stage=prepare", "prepare=edits", "prepare.output=out", "run.dir=run", "prepare.path=set"]
    done = subprocess.run(words, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out/stats.md").read_text() in (tmp_path / "run/prepare.txt").read_text()
    counts = {"lines": 3, "records": 2, "dropped": 1, "records/train": 1, "records/test": 1}
    assert json.loads((tmp_path / "run/summary.json").read_text())["metrics"] == counts
    words[-3:] = ["prepare.output=other", "run.dir=run2", "prepare.path=bad"]
    done = subprocess.run(words, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2 and "its licence forbids its use as training data" in done.stderr
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize(("name", "what"), [("smelly_code", "no files of the set"), ("rows", "no record is kept")])
def test_a_path_without_the_set_is_refused(tmp_path: Path, name: str, what: str) -> None:
    write_lines(tmp_path / "set/data.jsonl", [commit("one")])
    with pytest.raises(InputError, match=what):
        ingest(tmp_path, name, tmp_path / "set")
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").iterdir())


def test_a_further_set_that_is_no_other_is_refused(tmp_path: Path) -> None:
    words = ["prepare.set=rows", f"prepare.path={tmp_path}", "prepare.also={rows: x}", "prepare.test_fraction=0.99"]
    with pytest.raises(InputError) as fault:
        made(tmp_path / "run", "edits", *words)
    assert [problem.where for problem in fault.value.problems] == ["prepare.test_fraction", "prepare.also"]


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
            Line(1, 1, values), Row(values, "rows, line 1"), READERS[name], SetSource(Path("x"), options(maker))
        )
    except Dropped as fault:
        assert fault.reason
    else:
        assert found.record.language and found.record.id and found.record.instruction.strip()
        signature(found.record.before, found.record.after or "")
        found.text.encode("ascii")
