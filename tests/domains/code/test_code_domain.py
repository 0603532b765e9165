"""The code domain: every set in its own format, judged like pytest does, split, limited, worded and parsed."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from code_samples import (
    CANITEDIT,
    HUMAN_EVAL,
    HUMAN_EVAL_PLUS,
    MBPP,
    MBPP_PLUS_FLOATS,
    ROWS,
    SANITIZED,
    write,
    write_set,
)

from rlvr_exp.config.compose import compose
from rlvr_exp.core.errors import InputError
from rlvr_exp.domains.code import options as schema
from rlvr_exp.domains.code.tasks import Code
from rlvr_exp.stages.shared.data_and_verifier import build_verifier
from rlvr_exp.tasks.base import Candidate, Task
from rlvr_exp.tasks.code_records import OWN_ROWS
from rlvr_exp.tasks.code_sets import QUIXBUGS, by_rows
from rlvr_exp.tasks.formats.pytest_suite import PytestProblem
from rlvr_exp.tasks.formats.python_io import Case, PythonProblem
from rlvr_exp.verifiers.base import Request, Verifier
from rlvr_exp.verifiers.compare import equal

ALL = [*ROWS, "quixbugs"]


def only(domain: Code) -> Task:
    (task,) = [task for tasks in domain.splits().values() for task in tasks]
    return task


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    words = "+stage=validate data=code data.path=x verifier=pytest sandbox.workers=2 cache.enabled=false"
    with build_verifier(compose(words.split()).config) as built:
        yield built


def outcomes(verifier: Verifier, problem: object, *programs: str | None) -> list[str]:
    return [verdict.outcome for verdict in verifier.verify([Request(problem, Candidate(text)) for text in programs])]


@pytest.mark.heavy
@pytest.mark.parametrize("name", ALL)
def test_the_tests_of_a_set_pass_its_gold_and_no_wrong_program(name: str, tmp_path: Path, verifier: Verifier) -> None:
    domain = Code(str(write_set(tmp_path, name)))
    for task in (task for tasks in domain.splits().values() for task in tasks):
        assert task.id and task.family.startswith(name) and 0 < task.difficulty <= 1
        programs = [domain.parse(text, task).text for text in (task.gold or "", *task.negatives)]
        assert None not in programs
        assert outcomes(verifier, task.problem, *programs) == ["passed", *["failed"] * len(task.negatives)], (
            task.problem.tests
        )


@pytest.mark.heavy
def test_what_was_asked_is_taken_from_the_solution_and_nothing_else(tmp_path: Path, verifier: Verifier) -> None:
    task = only(Code(str(write_set(tmp_path, "canitedit"))))
    cheat = "pytestmark = __import__('pytest').mark.skip\nassert_ = print\n\n\ndef test_extra():\n    pass\n\n\n"
    assert "from solution import Counter, _hidden\n" in task.problem.tests
    assert "*" not in task.problem.tests and "import math" in task.problem.tests
    assert outcomes(verifier, task.problem, cheat + task.negatives[0])[0] in ("failed", "rejected")
    other = (task.gold or "").replace("import math", "from math import floor").replace("math.floor", "floor")
    assert outcomes(verifier, task.problem, other) == ["passed"], "how the solution imports a module is its own matter"


@pytest.mark.heavy
def test_helpers_that_the_task_gives_are_not_taken_from_the_solution(tmp_path: Path, verifier: Verifier) -> None:
    task = only(Code(str(write_set(tmp_path, "human_eval"))))
    cheat = "def half(x):\n    return 5\n\ndef double(x):\n    return 6\n"
    assert outcomes(verifier, task.problem, cheat) == ["failed"]
    assert "from solution import double\n" in task.problem.tests


@pytest.mark.heavy
def test_a_solutions_name_that_reads_like_a_test_is_none(tmp_path: Path, verifier: Verifier) -> None:
    row = CANITEDIT | {"after": "def test_it(x):\n    return x", "tests": "assert test_it(2) == 2", "before": "x = 1"}
    write(tmp_path / "canitedit.jsonl", [row])
    task = only(Code(str(tmp_path)))
    assert outcomes(verifier, task.problem, row["after"]) == ["passed"]


@pytest.mark.parametrize(
    ("name", "cases"),
    [
        ("mbpp", (Case((3,), 6), Case((0,), 0), Case((-1,), -2))),
        ("mbpp_plus", (Case((3,), 6), Case((0,), 0), Case(((1, 2),), (1, 2, 1, 2)))),
        ("humanevalpack", (Case((3,), 6), Case((4,), 8))),
        ("quixbugs", (Case((1,), 2), Case((5,), 10))),
    ],
)
def test_plain_arguments_and_values_become_cases(name: str, cases: tuple[Case, ...], tmp_path: Path) -> None:
    domain = Code(str(write_set(tmp_path, name)), judge="rlvr_exp.verifiers.python_io.PythonIO")
    problem = only(domain).problem
    assert (problem.entry_point, problem.cases, problem.strict) == ("double", cases, False)


ROUNDED = "def double(x):\n    return x * (2 + {}e-8)\n"
"""Its floats differ from those of the gold by half of that part."""


@pytest.mark.heavy
@pytest.mark.parametrize(("tenths", "outcome"), [(10, "passed"), (40, "failed")])
def test_the_relative_tolerance_of_evalplus_is_that_of_its_sets(
    tenths: int, outcome: str, tmp_path: Path, verifier: Verifier
) -> None:
    write(tmp_path / "mbpp_plus.jsonl", [MBPP_PLUS_FLOATS])
    program = ROUNDED.format(tenths) + "\n\nwhole = double\ndouble = lambda x: 6 if x == 3 else whole(x)\n"
    problem, part = only(Code(str(tmp_path), judge="python_io")).problem, 1 + tenths * 5e-9
    found = [
        equal(got, case.expected, *problem.comparison)
        for got, case in zip((2e30 * part, -0.2 * part, 6), problem.cases, strict=True)
    ]
    assert all(found) is (outcome == "passed")
    assert outcomes(verifier, only(Code(str(tmp_path))).problem, program) == [outcome]
    floats = HUMAN_EVAL_PLUS | {"base_input": [[1e30], [-2.5]], "plus_input": [[[1.5, 1e30]]]}
    nested = floats | {"canonical_solution": "    return [2 * y for y in x] if isinstance(x, list) else 2 * x\n"}
    write(tmp_path / "plus" / "HumanEvalPlus.jsonl", [nested])
    each = "\n\none = double\ndouble = lambda x: [one(y) for y in x] if isinstance(x, list) else one(x)\n"
    problem = only(Code(str(tmp_path / "plus"))).problem
    assert outcomes(verifier, problem, ROUNDED.format(tenths) + each) == [outcome]


def test_what_has_no_cases_is_left_out_with_the_reason(tmp_path: Path) -> None:
    domain = Code(str(write_set(tmp_path / "a", "quixbugs")), judge="python_io")
    assert domain.left_out() == {"QuixBugs/last": "it has a driver in place of cases"}
    assert "is no plain call" in next(
        iter(Code(str(write_set(tmp_path / "b", "human_eval")), judge="python_io").left_out().values())
    )
    assert Code(str(tmp_path / "b")).left_out() == {}


def test_values_that_json_has_not_are_compared_by_type(tmp_path: Path) -> None:
    rows = [
        MBPP | {"task_id": n, "test_list": [text]}
        for n, text in ((1, "assert double(1) == {1, 2}"), (2, "assert double(1) == (1, [2])"))
    ]
    write(tmp_path / "mbpp.jsonl", rows)
    assert [task.problem.strict for task in Code(str(tmp_path), judge="python_io").splits()["prompt"]] == [True, False]


def test_mbpp_is_split_by_its_ids(tmp_path: Path) -> None:
    edges = {1: "prompt", 10: "prompt", 11: "test", 510: "test", 511: "dev", 600: "dev", 601: "train"}
    write(tmp_path / "mbpp.jsonl", [MBPP | {"task_id": number} for number in edges])
    found = {task.id: name for name, tasks in Code(str(tmp_path)).splits().items() for task in tasks}
    assert found == {f"Mbpp/{n}": name for n, name in edges.items()}


def test_limit_takes_the_first_of_a_seeded_shuffle(tmp_path: Path) -> None:
    write(tmp_path / "mbpp.jsonl", [MBPP | {"task_id": number} for number in range(601, 641)])
    found = [[task.id for task in Code(str(tmp_path), limit=limit).splits()["train"]] for limit in (0, 6, 3)]
    assert found[1][:3] == found[2] and found[1] != found[0][:6] and set(found[1]) < set(found[0])


def test_a_prompt_shows_what_is_needed_and_no_more(tmp_path: Path) -> None:
    domain = Code(str(write_set(tmp_path / "mbpp", "mbpp")))
    text = domain.task_prompt(only(domain))
    assert MBPP["text"] in text and "assert double(3) == 6" in text and "assert double(0)" not in text
    domain = Code(str(write_set(tmp_path / "edit", "canitedit")))
    text = domain.task_prompt(only(domain))
    assert CANITEDIT["before"] in text and "Add a method `up`." in text and "def up" not in text
    assert domain.parse(f"Sure.\n```python\n{only(domain).gold}```\nDone.", only(domain)).text == only(domain).gold


def test_the_small_file_is_read_first_and_another_by_its_name(tmp_path: Path) -> None:
    write(tmp_path / "mbpp.jsonl", [MBPP])
    write(tmp_path / "sanitized-mbpp.json", [SANITIZED])
    assert only(Code(str(tmp_path))).id == "Mbpp/700"
    assert only(Code(str(tmp_path / "sanitized-mbpp.json"))).id == "Mbpp/12"


def test_several_sets_in_one_folder_have_to_be_named(tmp_path: Path) -> None:
    for name in ALL[:3]:
        write_set(tmp_path / name, name)
    with pytest.raises(InputError, match="several sets are here"):
        Code(str(tmp_path)).splits()
    assert only(Code(str(tmp_path), set="mbpp")).id == "Mbpp/700"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (json.dumps(HUMAN_EVAL) + "\n{", "line 2: not JSON"),
        (json.dumps(HUMAN_EVAL) + "\n[1]", "line 2: not a row"),
        (json.dumps(HUMAN_EVAL | {"test": 3}), "line 1, test: not text"),
        (json.dumps(HUMAN_EVAL | {"test": "def check(:"}), "line 1: its code cannot be read as Python"),
        (json.dumps(HUMAN_EVAL) + "\n" + json.dumps(HUMAN_EVAL), "ids that stand twice"),
        ("{}", "no code set is here"),
    ],
)
def test_faults_name_file_line_and_key(text: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text(text)
    with pytest.raises(InputError, match=told):
        Code(str(tmp_path)).splits()


def test_a_damaged_archive_is_named(tmp_path: Path) -> None:
    file = write_set(tmp_path, "human_eval") / "data" / "HumanEval.jsonl.gz"
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(InputError, match="cannot be read"):
        Code(str(file), set="human_eval").splits()


@pytest.mark.parametrize("name", ["python_programs/double.py", "python_testcases/test_double.py"])
def test_a_missing_file_of_quixbugs_is_named(name: str, tmp_path: Path) -> None:
    (write_set(tmp_path, "quixbugs") / name).unlink()
    with pytest.raises(InputError, match=name):
        Code(str(tmp_path)).splits()


def test_a_fingerprint_follows_content(tmp_path: Path) -> None:
    texts = ["assert double(1) == {'a', 'b'}", "assert double(1) == {'a', 'c'}"]
    prints = []
    for number, text in enumerate([texts[0], *texts]):
        write(tmp_path / str(number) / "mbpp.jsonl", [MBPP | {"test_list": [text]}])
        prints.append(Code(str(tmp_path / str(number)), judge="python_io").fingerprint("train"))
    assert prints[0] == prints[1] != prints[2]


def test_the_sets_of_the_schema_are_those_that_are_read() -> None:
    assert set(schema.CODE_SETS) == {*(one.name for one in by_rows()), QUIXBUGS, OWN_ROWS.name}


def test_a_verifier_of_both_forms_judges_every_task(tmp_path: Path) -> None:
    found = Code(path=str(write_set(tmp_path, "quixbugs")), judge="rlvr_exp.verifiers.python_tests.PythonTests")
    tasks = {task.id: task for split in found.splits().values() for task in split}
    kinds = {name: type(task.problem) for name, task in tasks.items()}
    assert kinds == {"QuixBugs/double": PythonProblem, "QuixBugs/last": PytestProblem} and not found.left_out()
    assert {found.entry_point(task) for task in tasks.values()} == {"double", "last"}


def test_instructions_in_one_style_or_in_both(tmp_path: Path) -> None:
    """One style keeps the set's names; both give two tasks that differ in their words alone."""
    write_set(tmp_path, "canitedit")
    domains = {style: Code(str(tmp_path), instruction=style) for style in ("descriptive", "lazy", "both")}
    found = {style: tuple(domain.splits()["test"]) for style, domain in domains.items()}
    (task,), both = found["descriptive"], found["both"]
    assert (task.id, task.family) == ("CanItEdit/7_counter", "canitedit/adaptive")
    assert "Add a method `up`." in task.inputs.instruction and domains["descriptive"].strata(task) == {}
    assert [one.id for one in both] == [f"CanItEdit/7_counter/{style}" for style in ("descriptive", "lazy")]
    assert [one.family for one in both] == ["canitedit/descriptive/adaptive", "canitedit/lazy/adaptive"]
    assert [domains["both"].strata(one) for one in both] == [
        {"instruction": "descriptive"},
        {"instruction": "lazy"},
    ]
    first, second = map(domains["both"].task_prompt, both)
    assert first.replace("Add a method `up`.", "Count up.") == second != first
    assert both[0].problem == both[1].problem and both[0].gold == both[1].gold and found["lazy"] == both[1:]


@pytest.mark.parametrize("name", sorted(set(ROWS) - {"canitedit"}))
def test_sets_with_one_instruction_refuse_another(tmp_path: Path, name: str) -> None:
    write_set(tmp_path, name)
    with pytest.raises(InputError, match="data.instruction"):
        Code(str(tmp_path), instruction="lazy").splits()


def test_an_edit_is_followed_by_the_sets_own_tests(tmp_path: Path) -> None:
    domain = Code(str(write_set(tmp_path, "canitedit")))
    (task,) = domain.splits()["test"]
    for program in ("x = 1", "x = 1\n"):
        edit = domain.edit_with_tests(task, program)
        assert edit is not None and edit.script == "x = 1\n" + CANITEDIT["tests"] and edit.after == "x = 1"
        assert edit.before.rstrip() == CANITEDIT["before"]
    other = Code(str(write_set(tmp_path / "other", "human_eval")), draw_splits=False)
    assert other.edit_with_tests(other.splits()["test"][0], "x = 1") is None
