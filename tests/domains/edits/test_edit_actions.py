"""prepare=edit_actions: rows in, rows with proved actions out; every other line is counted with its reason."""

import csv
import json
import subprocess
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from makers import made
from program import ENVIRONMENT, PROGRAM
from raw_edits import edit, program, write_lines

pytest.importorskip("ast_grep_py")

from rlvr_exp.config.verifier import Sandbox
from rlvr_exp.core.errors import InputError, RlvrError
from rlvr_exp.core.hashing import checksum
from rlvr_exp.domains.edits import derive as build
from rlvr_exp.domains.edits.derive import NO_AFTER, NO_RULE, NO_TEXTS, OTHER_TEXT, REFUSED
from rlvr_exp.domains.edits.normalize import INCOMPLETE, NO_INSTRUCTION, NO_TEXT, UNCHANGED, UNKNOWN, UNREADABLE
from rlvr_exp.domains.edits.rows import load
from rlvr_exp.domains.edits.rules import LARGE
from rlvr_exp.domains.edits.tasks import Edits
from rlvr_exp.domains.edits.verifier import AstGrep
from rlvr_exp.tasks.base import Candidate
from rlvr_exp.verifiers.base import Request, Verdict

WORKERS = "sandbox.workers=1"


def row(word: str, **other: Any) -> dict[str, Any]:
    return edit(word, id=word, language="python", **other)


def prepared(tmp_path: Path, *words: str, rows: str = "rows") -> tuple[Path, dict[str, int]]:
    """The output of a run over a folder, and its counts."""
    output = tmp_path / "out"
    words = (f"prepare.path={tmp_path / rows}", f"prepare.output={output}", WORKERS, *words)
    return output, made(tmp_path / "run", "edit_actions", *words)[1]


def dropped(output: Path) -> list[tuple[str, str, str, str]]:
    """File, line, id and reason of all that gave no row."""
    with open(output / "dropped.csv", newline="") as file:
        return [(found["file"], found["line"], found["id"], found["reason"]) for found in csv.DictReader(file)]


def test_the_command_writes_rows_whose_actions_are_golds_of_their_tasks(tmp_path: Path) -> None:
    write_lines(tmp_path / "rows/train/set.jsonl", [row("one"), row("two", licence="MIT", metadata={"n": 1})])
    write_lines(tmp_path / "rows/dev/set.jsonl", [row("three", source="mine"), '{"id": "broken'])
    write_lines(tmp_path / "rows/test/set.jsonl", [row("four")])
    words = ["+stage=prepare", "prepare=edit_actions", "prepare.path=rows", "prepare.output=out", WORKERS, "run.dir=a"]
    command = [*PROGRAM, *words]
    done = subprocess.run(command, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stdout + done.stderr
    found = {edit.id: edit for edit in load(tmp_path / "out")}
    assert {name: edit.split for name, edit in found.items()} == {
        "one": "train",
        "two": "train",
        "three": "dev",
        "four": "test",
    }
    assert (found["two"].licence, found["two"].metadata, found["three"].source) == ("MIT", {"n": 1}, "mine")
    assert json.loads(found["one"].action) == {"pattern": "$A + 3", "rewrite": "$A + 4"}
    assert dropped(tmp_path / "out") == [("dev/set.jsonl", "2", "", UNREADABLE)]
    tasks = [task for split in Edits(path=str(tmp_path / "out"), target="action").splits().values() for task in split]
    with AstGrep(Sandbox(workers=1)) as verifier:
        verdicts = verifier.verify([Request(task.problem, Candidate(task.gold)) for task in tasks])
    assert [verdict.outcome for verdict in verdicts] == ["passed"] * 4
    summary = json.loads((tmp_path / "a/summary.json").read_text())["metrics"]
    assert summary == {"lines": 5, "records": 4, "dropped": 1}


def test_the_page_and_the_metadata_have_the_counts(tmp_path: Path) -> None:
    lines = [*(row(f"w{at}") for at in range(3)), row("gone", after=None), row("lost", after="x = 1\n" * 300)]
    file = write_lines(tmp_path / "rows/train/set.jsonl", lines)
    output, counts = prepared(tmp_path)
    assert counts == {"lines": 5, "records": 3, "dropped": 2}
    found = json.loads((output / "metadata.json").read_text())
    assert found["sources"] == {"rows": {"train/set.jsonl": checksum(file)}}
    assert found["files"] == {"train/set.jsonl": checksum(output / "train/set.jsonl")}
    assert found["languages"] == {"python": 3} and found["options"] == {
        "set": "rows",
        "max_characters": 1000,
        "max_share": 0.5,
    }
    assert found["counts"]["dropped"] == {NO_AFTER: 1, LARGE: 1} and {"ast-grep", "ast-grep-py"} < set(
        found["versions"]
    )
    page = (output / "stats.md").read_text()
    assert "| python | 4 | 3 | 75.0% [30.1%, 95.4%] |" in page and "| 1 | 3 | 100.0%" in page
    assert f"| {LARGE} | 1 |" in page and "| train | rows | 3 |" in page


FAULTS = {
    "no JSON": ('{"id": "broken', UNREADABLE),
    "no text before": ({"id": "x", "instruction": "y"}, INCOMPLETE),
    "no id": ({"instruction": "y", "before": "a = 1\n", "after": "b = 1\n"}, INCOMPLETE),
    "no text after": (row("w", after=None), NO_AFTER),
    "nothing changes": (row("w", after=program("w")), UNCHANGED),
    "an unknown language": ({**row("w"), "language": "cobol"}, UNKNOWN),
    "no text": ({**row("w"), "after": "a = '\ud800'\n"}, NO_TEXT),
    "an action that is none": (row("w", action="{}"), INCOMPLETE),
    "another action's text": (row("w", action=json.dumps({"pattern": "return $X", "rewrite": "return 5"})), OTHER_TEXT),
    "a kind that is none": (row("w", action=json.dumps({"rule": {"kind": "no_kind"}, "fix": "x"})), REFUSED),
}


KEPT = row("kept") | {
    "before": "x = call(3)\nprint(x)\n",
    "after": "x = call(4)\nprint(x)\n",
    "action": json.dumps({"rule": {"kind": "integer", "regex": "^3$"}, "fix": "4"}),
}
ENDED = row("ended") | {"after": program("ended").replace("+ 3", "+ 4") + "\n\n"}
ONLY_ENDED = row("only") | {"after": program("only") + "\n"}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, int]]:
    """The output and the counts of one run over rows of all kinds."""
    place = tmp_path_factory.mktemp("whole")
    faulty = [line for line, _ in FAULTS.values()]
    write_lines(place / "rows/train/set.jsonl", [row("first"), *faulty, row("last"), KEPT, ENDED, ONLY_ENDED])
    write_lines(place / "rows/mine.jsonl", [row("one"), row("two", split="validation")])
    return prepared(place)


def test_a_line_that_gives_no_row_is_named_and_the_others_stay(whole: tuple[Path, dict[str, int]]) -> None:
    output, counts = whole
    assert [(number, why) for _, number, _, why in dropped(output)[:-1]] == [
        (str(number), reason) for number, (_, reason) in enumerate(FAULTS.values(), 2)
    ]
    assert counts == {"lines": len(FAULTS) + 7, "records": 6, "dropped": len(FAULTS) + 1}
    assert {found.id for found in load(output)} == {"first", "last", "kept", "ended", "one", "two"}


def test_an_action_that_is_there_is_proved_and_kept(whole: tuple[Path, dict[str, int]]) -> None:
    assert {found.id: found.action for found in load(whole[0])}["kept"] == KEPT["action"]


def test_line_ends_at_the_end_are_no_part_of_an_edit(whole: tuple[Path, dict[str, int]]) -> None:
    """As in data=edits, whose answers say nothing of them."""
    found = {found.id: found for found in load(whole[0])}["ended"]
    assert found.after == program("ended").replace("+ 3", "+ 4") and "+ 4" in found.action
    assert dropped(whole[0])[-1][2:] == ("only", UNCHANGED)


def test_rows_without_a_split_are_placed_later(whole: tuple[Path, dict[str, int]]) -> None:
    splits = {found.id: found.split for found in load(whole[0])}
    assert (splits["one"], splits["two"], splits["first"]) == ("", "dev", "train")
    assert sorted(file.parent.name for file in whole[0].rglob("*.jsonl")) == ["dev", "train", "unplaced"]


def test_equal_rows_give_equal_files_whatever_the_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_lines(tmp_path / "rows/train/set.jsonl", [row(f"w{at}") for at in range(7)] + ["{", row("end")])
    one, _ = prepared(tmp_path)
    contents = {file.name: file.read_bytes() for file in one.rglob("*") if file.is_file()}
    one.rename(tmp_path / "one")
    monkeypatch.setattr(build, "BATCH", 2)
    two, _ = prepared(tmp_path)
    assert {file.name: file.read_bytes() for file in two.rglob("*") if file.is_file()} == contents


LONG = row("w", after=program("w").replace("return w_0", "return 'a text that is longer than ten characters'"))
CALLS = "first(1)\nsecond(2)\nthird(3)\n"


@pytest.mark.parametrize(
    ("option", "large"),
    [
        ("prepare.max_characters=10", LONG),
        ("prepare.max_share=0.1", row("w") | {"before": CALLS, "after": CALLS.replace("second(2)", "fourth(5, 6)")}),
    ],
)
def test_smaller_rules_may_be_demanded(tmp_path: Path, option: str, large: dict[str, Any]) -> None:
    small = row("v", after=program("v").replace("v_0", "other"))
    write_lines(tmp_path / "rows/train/set.jsonl", [large, small if large is LONG else row("v")])
    output, _ = prepared(tmp_path, option)
    assert [found.id for found in load(output)] == ["v"] and dropped(output)[0][2:] == ("w", LARGE)


@pytest.mark.parametrize(
    ("words", "files", "message"),
    [
        (["prepare.output={}/rows/out"], {"rows/a.jsonl": [row("w")]}, "is inside a set that is read"),
        ([], {"rows/a.jsonl": [row("w")], "out/other.jsonl": [row("v")]}, "holds other files"),
        ([], {"rows/a.txt": ["text"]}, "no files of the set are there"),
        ([], {"other/a.jsonl": [row("w")]}, "not there"),
        ([], {"rows/a.jsonl": [row("w", after=None)]}, f"no record is kept\n    got: {NO_AFTER}: 1"),
        (["prepare.set=ast_grep_catalog"], {"rows/a.jsonl": [row("w")]}, "no files of the set are there"),
    ],
)  # fmt: skip
def test_what_cannot_be_prepared_is_refused(
    tmp_path: Path, words: list[str], files: dict[str, list[Any]], message: str
) -> None:
    for name, rows in files.items():
        write_lines(tmp_path / name, rows)
    with pytest.raises(InputError) as fault:
        prepared(tmp_path, *(word.format(tmp_path) for word in words))
    assert message in str(fault.value)
    assert not list(tmp_path.glob("out/.partial")) and not list(tmp_path.glob("out/*/a.jsonl"))


def test_what_a_kill_left_is_done_again(tmp_path: Path) -> None:
    write_lines(tmp_path / "rows/train/set.jsonl", [row("w")])
    write_lines(tmp_path / "out/.partial/train/set.jsonl", [row("left")])
    output, _ = prepared(tmp_path)
    assert [found.id for found in load(output)] == ["w"] and not (output / ".partial").exists()


def test_no_verdict_is_no_reason_to_drop_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_lines(tmp_path / "rows/train/set.jsonl", [row("w")])
    settled: Future[Verdict] = Future()
    settled.set_result(Verdict("no_verdict", log="no sandbox worker"))
    monkeypatch.setattr(AstGrep, "submit", lambda *_: settled)
    with pytest.raises(RlvrError, match="w: no verdict: no sandbox worker"):
        prepared(tmp_path)
    assert not list(tmp_path.glob("out/train"))


PAGE = "## Use `is` <Badge text='Has Fix' />\n\n* [Play](/x)\n\n### Description\n\nPrefer [identity](https://x.org).\n\n### YAML\n"
YAML = "language: {}\nrule:\n  pattern: $A == None\nfix: $A is None\n"


def entry(name: str, **other: Any) -> dict[str, Any]:
    keys = {"id": name, "language": "python", "has_fix": True, "rule": YAML.format("python"), "commands": []}
    texts = {"diff_before": ["if a == None:\n    b()\n"], "diff_after": ["if a is None:\n    b()\n"]}
    return keys | {"examples": [], "check": "fix-exact"} | texts | other


def test_the_catalogue_gives_rows_by_its_own_rules(tmp_path: Path) -> None:
    entries = [
        entry("exact"),
        entry("blanks", check="fix-same-but-blanks", diff_after=["if a  is  None:\n    b()\n"]),
        entry("own", language="tsx", rule=YAML.format("ts"), diff_before=["x(a == None)"], diff_after=["x(a is None)"]),
        entry("command", rule=None, commands=["ast-grep -p '$A == None' -r '$A is None' -l py"], check="no-yaml"),
        entry("search", diff_before=None, diff_after=None, check="match"),
        entry("wrong", diff_after=["if b is None:\n    b()\n"], check="fix-differs"),
        entry("file", rule=None, commands=["ast-grep -p '$A == None' -r '$A is None' x.py"], check="no-yaml"),
        entry("nothing", rule=None),
        entry("silent"),
        "{",
    ]
    write_lines(tmp_path / "rows/extracted.jsonl", entries)
    for one in entries[:-2]:
        page = tmp_path / "rows/catalog" / one["language"] / f"{one['id']}.md"
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(PAGE)
    output, _ = prepared(tmp_path, "prepare.set=ast_grep_catalog")
    found = {edit.id.rpartition("/")[2]: edit for edit in load(output)}
    assert sorted(found) == ["blanks", "command", "exact", "own"] and {one.split for one in found.values()} == {"train"}
    first = found["exact"]
    assert (first.instruction, first.lazy_instruction) == ("Use `is`\n\nPrefer identity.", "Use `is`")
    assert json.loads(first.action) == {"rule_yaml": YAML.format("python")} and first.licence == "MIT"
    assert found["blanks"].after == "if a is None:\n    b()\n" and found["own"].language == "typescript"
    assert [(name.rpartition("/")[2], reason) for _, _, name, reason in dropped(output)] == [
        ("", NO_TEXTS),
        ("wrong", OTHER_TEXT),
        ("file", REFUSED),
        ("nothing", NO_RULE),
        ("", NO_INSTRUCTION),
        ("", UNREADABLE),
    ]
