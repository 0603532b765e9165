"""Validating tasks: golds pass, wrong programs are refused, weak tests and bad golds are named, mismatches reported at
once."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from program import ENVIRONMENT, PROGRAM, json_rows
from thinning import thinned

from rlvr_exp.config.compose import compose
from rlvr_exp.config.load import build
from rlvr_exp.core.errors import GuardStop, InputError
from rlvr_exp.core.files import write_text
from rlvr_exp.records.context import RunContext, StageResult
from rlvr_exp.stages import validate
from rlvr_exp.stages.shared.data_and_verifier import build_verifier
from rlvr_exp.stages.shared.reference_checks import check_golds

GOOD = "def double(x):\n    if x == 0:\n        return 0\n    return 2 * x"
TESTS = ["assert double(3) == 6", "assert double(0) == 0", "assert double(-1) == -2"]


def mbpp(folder: Path, codes: Sequence[str], tests: Sequence[str] = TESTS) -> Path:
    """Tasks 601, 602, ... in MBPP's format."""
    folder.mkdir()
    rows = [
        {
            "task_id": 601 + number,
            "text": "Double.",
            "code": code,
            "test_setup_code": "",
            "test_list": list(tests),
            "challenge_test_list": [],
        }
        for number, code in enumerate(codes)
    ]
    (folder / "mbpp.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return folder


def checked(folder: Path, *words: str) -> Any:
    given = ["+stage=validate", "data=code", f"data.path={folder}", "sandbox.workers=2", "cache.enabled=false"]
    given += ["data.weak=true", *([] if any("universal" in word for word in words) else ["validate.universal=none"])]
    return compose([*given, *words]).config


def run(tmp_path: Path, config: Any) -> tuple[StageResult, list[dict[str, Any]], list[dict[str, Any]]]:
    """The result, the rows written and the events sent."""
    events: list[dict[str, Any]] = []
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "manifest.json").write_text("{}")
    result = validate.run(config, RunContext(tmp_path / "run", lambda event: events.append(dict(event))))
    return result, rows(tmp_path), events


def rows(tmp_path: Path) -> list[dict[str, Any]]:
    return json_rows(tmp_path / "run" / "validate.jsonl")


def test_golds_pass_and_wrong_programs_are_refused(tmp_path: Path) -> None:
    result, found, events = run(tmp_path, checked(mbpp(tmp_path / "set", [GOOD, GOOD + "\n"]), "validate.mutants=5"))
    assert {name: rate.value for name, rate in result.after.items() if name != "mutants_killed"} == {
        "gold_passed": 1.0,
        "hollow_refused": 1.0,
    }
    assert result.metrics["gold_passed"] == result.metrics["gold_passed_of"] == 2
    assert result.metrics["mutants_killed_of"] == 10 and result.after["mutants_killed"].n == 2
    assert [row["kind"] for row in found if row["task"] == "Mbpp/601"] == ["gold", *["hollow"] * 8, *["mutant"] * 5]
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert manifest["data"]["train"]["tasks"] == 2 and manifest["verifier"]["name"] == "python_io"
    assert events[-1]["text"] == (tmp_path / "run" / "validate.md").read_text()
    assert [event["done"] for event in events if event["kind"] == "phase"][-1] == 2


def test_a_gold_that_does_not_pass_stops_with_its_reason_and_the_files(tmp_path: Path) -> None:
    config = checked(mbpp(tmp_path / "set", [GOOD, "def double(x):\n    return x"]), "validate.mutants=0")
    with pytest.raises(
        GuardStop, match=r"1 of 2 reference answers do not pass(.|\n)*Mbpp/602: failed \(wrong_answer\)"
    ):
        run(tmp_path, config)
    bad = [row for row in rows(tmp_path) if row["kind"] == "gold" and row["outcome"] != "passed"]
    assert [row["task"] for row in bad] == ["Mbpp/602"] and bad[0]["code"] == "def double(x):\n    return x\n"
    assert "- Mbpp/602: failed (wrong_answer)" in (tmp_path / "run" / "validate.md").read_text()


def test_the_share_that_must_pass_is_an_option(tmp_path: Path) -> None:
    codes = [GOOD, "def double(x):\n    return x"]
    result, _, _ = run(tmp_path, checked(mbpp(tmp_path / "set", codes), "validate.mutants=0", "validate.require=0.5"))
    assert result.after["gold_passed"].value == 0.5


def test_tests_that_a_hollow_program_passes_are_named(tmp_path: Path) -> None:
    result, found, _ = run(
        tmp_path, checked(mbpp(tmp_path / "set", [GOOD], ["assert double(0) == 0"]), "validate.mutants=0")
    )
    passing = [row["variant"] for row in found if row["kind"] == "hollow" and row["outcome"] == "passed"]
    assert passing == ["identity", "return_zero"] and result.after["hollow_refused"].value == 0.75
    assert (
        "Hollow programs that pass:\n\n- Mbpp/601: identity, return zero"
        in (tmp_path / "run" / "validate.md").read_text()
    )


def test_weak_tasks_are_named_with_the_fixed_answers_that_pass(tmp_path: Path) -> None:
    folder = mbpp(tmp_path / "set", [GOOD, "def double(x):\n    return 1"], ["assert double(0) == 0"])
    config = checked(folder, "validate.mutants=0", "validate.universal=plain", "validate.require=0")
    result, found, _ = run(tmp_path, config)
    passed = [row["variant"] for row in found if row["kind"] == "universal" and row["outcome"] == "passed"]
    assert {"zero", "first_argument"} <= set(passed) and "none" not in passed
    assert 0 < result.after["universal_refused"].value < 1 and result.metrics["universal_refused_of"] > 40
    text = (tmp_path / "run" / "validate.md").read_text()
    assert "Weak tasks, and the fixed answers that pass:\n\n- Mbpp/601: zero, " in text
    assert "| - first argument | 0 | 2 |" in text


def test_mutants_that_pass_are_named_with_their_line_and_the_kinds_are_explained(tmp_path: Path) -> None:
    even = "def double(x):\n    return x % 2 == 0"
    folder = mbpp(tmp_path / "set", [even], ["assert double(4) == True", "assert double(3) == False"])
    run(tmp_path, checked(folder, "validate.mutants=20"))
    text = (tmp_path / "run" / "validate.md").read_text()
    assert "Weak tasks, and the mutants that pass:\n\n- Mbpp/601: `return x % 2 == 0` becomes `return x % " in text
    assert "\n- mutant: the reference answer with one change." in text and "\n- wrong: " not in text


def test_weak_tasks_that_are_left_out_are_named(tmp_path: Path) -> None:
    folder = mbpp(tmp_path / "set", [GOOD], ["assert double(0) == 0"])
    row = json.loads((folder / "mbpp.jsonl").read_text()) | {"task_id": 700, "test_list": TESTS}
    with open(folder / "mbpp.jsonl", "a", encoding="utf-8") as file:
        file.write("\n" + json.dumps(row))
    _, found, _ = run(tmp_path, checked(folder, "validate.mutants=0", "data.weak=false"))
    assert {row["task"] for row in found} == {"Mbpp/700"}
    assert "Weak tasks, left out:\n\n- Mbpp/601: 0" in (tmp_path / "run" / "validate.md").read_text()


def test_a_wrong_program_of_the_set_that_passes_is_named(tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    row = {"task_id": "Python/1", "declaration": "def f(x):\n", "canonical_solution": "    return x\n", "bug_type": "b"}
    row |= {
        "buggy_solution": "    return x + 0\n",
        "entry_point": "f",
        "docstring": "",
        "test": "def check(f):\n    assert f(1) == 1\ncheck(f)",
    }
    (tmp_path / "set" / "pack.jsonl").write_text(json.dumps(row))
    result, _, _ = run(tmp_path, checked(tmp_path / "set", "validate.mutants=0"))
    assert result.after["wrong_refused"].value == 0.0
    assert "Wrong programs that pass:\n\n- Python/1: 0" in (tmp_path / "run" / "validate.md").read_text()


def test_a_split_may_be_named(tmp_path: Path) -> None:
    _, found, _ = run(tmp_path, checked(mbpp(tmp_path / "set", [GOOD]), "validate.split=train", "validate.mutants=0"))
    assert {row["task"] for row in found} == {"Mbpp/601"}
    with pytest.raises(InputError, match="no tasks"):
        validate.wanted_splits(build(checked(tmp_path / "set").data), "tset")


def test_a_verifier_that_does_not_judge_this_data_is_refused(tmp_path: Path) -> None:
    words = [*PROGRAM, "+stage=validate", "verifier=pytest", "data.limit=1", f"run.dir={tmp_path / 'run'}"]
    done = subprocess.run(
        words, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 2 and "does not judge the problems of this data" in done.stderr
    assert "allowed: verifier=python_io" in done.stderr


def test_the_stages_with_a_policy_refuse_it_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from rlvr_exp.stages.shared import components

    monkeypatch.setattr(components, "load_policy", lambda *_: SimpleNamespace(notes=()))
    config = compose(["+stage=evaluate", "verifier=pytest", "data.limit=1", "sandbox.workers=1"]).config
    context = RunContext(tmp_path, lambda event: None)
    refused = pytest.raises(InputError, match="does not judge the problems of this data")
    with refused, components.build_components(config, context):
        pass


def test_the_command_validates_the_embedded_corpus(tmp_path: Path) -> None:
    words = [*PROGRAM, "+stage=validate", "+experiment=quick", "data.limit=2", f"run.dir={tmp_path / 'run'}"]
    done = subprocess.run(
        words, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["after"]["gold_passed"]["value"] == 1.0 and summary["metrics"]["gold_passed_of"] == 8


def test_it_needs_no_torch() -> None:
    code = "import rlvr_exp.stages.validate, sys; print('torch' in sys.modules)"
    said = subprocess.run(
        [sys.executable, "-c", code], env=ENVIRONMENT, capture_output=True, text=True, timeout=120, check=True
    )
    assert said.stdout.strip() == "False"


@pytest.fixture
def bad_second(tmp_path: Path) -> Any:
    """A domain whose second train task has a gold that does not pass, and its verifier."""
    config = checked(mbpp(tmp_path / "set", [GOOD, "def double(x):\n    return x", GOOD]))
    with build_verifier(config) as verifier:
        yield build(config.data), verifier


@pytest.mark.parametrize(("count", "stops"), [(0, False), (1, False), (2, True), (16, True)])
def test_training_looks_at_the_golds_of_its_first_tasks(
    bad_second: Any, count: int, stops: bool, tmp_path: Path
) -> None:
    domain, verifier = bad_second
    context = RunContext(tmp_path, lambda event: None)
    if not stops:
        check_golds(domain, verifier, domain.splits()["train"], count, context)
        return
    with pytest.raises(GuardStop, match=r"1 of \d gold answers of the training tasks do not pass:\nMbpp/602: failed"):
        check_golds(domain, verifier, domain.splits()["train"], count, context)


def test_tasks_without_a_gold_are_passed_over(bad_second: Any, tmp_path: Path) -> None:
    from dataclasses import replace

    domain, verifier = bad_second
    tasks, events = domain.splits()["train"], []
    check_golds(
        domain, verifier, [tasks[0], replace(tasks[1], gold=None), tasks[2]], 16, RunContext(tmp_path, events.append)
    )
    assert [(event["done"], event["total"]) for event in events] == [(0, 2), (2, 2)]


@pytest.mark.slow
def test_training_on_a_task_with_a_bad_gold_ends_with_3(tmp_path: Path) -> None:
    grids = {"train": [{"input": [[1, 0]], "output": [[0, 1]]}], "test": [{"input": [[2, 0]], "output": [[0, 2]]}]}
    for split, program in (("train", "def solve(g):\n    return g\n"), ("test", None)):
        shifted = {
            side: [
                {key: [[cell + (split == "test") for cell in r] for r in grid] for key, grid in pair.items()}
                for pair in pairs
            ]
            for side, pairs in grids.items()
        }
        write_text(tmp_path / "data" / f"{split}.jsonl", json.dumps({"id": split, "program": program, **shifted}))
    words = [
        *PROGRAM,
        "+stage=grpo",
        "+experiment=quick",
        f"data.path={tmp_path / 'data'}",
        f"run.dir={tmp_path / 'run'}",
    ]
    done = subprocess.run(
        words, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 3 and "gold answers of the training tasks do not pass" in done.stderr, (
        done.stdout + done.stderr
    )


pytest.importorskip("ast_grep_py")


def program(place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [*PROGRAM, *words, "data=edits", "sandbox.workers=1"]
    return subprocess.run(command, cwd=place, env=ENVIRONMENT, capture_output=True, text=True, timeout=300)


@pytest.mark.slow
def test_answers_are_judged_and_measured_as_where_they_were_given(tmp_path: Path) -> None:
    given = program(tmp_path, "+stage=infer", "infer.split=dev", "infer.tasks=12", "infer.output=a.jsonl", "run.dir=a")
    assert given.returncode == 0, given.stdout + given.stderr
    done = program(tmp_path, "+stage=validate", "validate.split=dev", "validate.answers=a.jsonl", "run.dir=b")
    assert done.returncode == 0, done.stdout + done.stderr
    answers = json_rows(tmp_path / "a.jsonl")
    rows = json_rows(tmp_path / "b" / "validate.jsonl")
    given_ones = [(one["id"], one["outcome"], one["bucket"]) for one in answers]
    assert given_ones == [(one["task"], one["outcome"], one["bucket"]) for one in rows] and len(rows) == 12
    assert {"parses", "valid", "field_similarity"} <= {name for one in rows for name in one["measures"]}
    summary = json.loads((tmp_path / "b" / "summary.json").read_text())
    passed = sum(one["outcome"] == "passed" for one in rows)
    assert summary["after"]["answers_passed"]["value"] == pytest.approx(passed / 12)
    assert summary["metrics"].get("verdict/passed", 0) == passed and "measure/parses" in summary["metrics"]
    assert "| answers_passed |" in (tmp_path / "b" / "validate.md").read_text()
    assert "answers_passed" in (tmp_path / "b" / "report.html").read_text()


@pytest.mark.slow
def test_what_was_cut_or_never_given_fails_as_such(tmp_path: Path) -> None:
    rows = [{"id": "dev-00001", "text": "x", "truncated": True}, {"id": "dev-00002", "text": None}]
    (tmp_path / "a.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    done = program(tmp_path, "+stage=validate", "validate.answers=a.jsonl", "run.dir=b")
    assert done.returncode == 0, done.stdout + done.stderr
    found = json_rows(tmp_path / "b" / "validate.jsonl")
    assert [one["bucket"] for one in found] == ["truncated", "prompt_too_long"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "told"),
    thinned(
        [
            ('{"id": "nobody", "text": "x"}', "line 1: names no task of this data"),
            ('{"id": "dev-00001"}', "line 1: no answer"),
            ("{", "line 1: no answer"),
            ("", "has no answer"),
            (None, "validate.answers"),
        ]
    ),
)
def test_a_file_without_answers_to_these_tasks_is_refused(text: str | None, told: str, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / "a.jsonl").write_text(text)
    done = program(tmp_path, "+stage=validate", "validate.answers=a.jsonl", "run.dir=b")
    assert done.returncode == 2 and told in done.stdout + done.stderr, done.stdout + done.stderr
