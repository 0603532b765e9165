"""Rows are parsed strictly by their format; any other content of a line is reported with its key and what is
allowed."""

import gzip
import json
import os

import pyarrow
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rlvr_exp.core.errors import InputError
from rlvr_exp.domains.dafny.problem import DafnyProblem
from rlvr_exp.domains.edits.problem import AstGrepProblem
from rlvr_exp.tasks.base import Candidate, Task
from rlvr_exp.tasks.formats.fields import Limits
from rlvr_exp.tasks.formats.pytest_suite import PytestProblem
from rlvr_exp.tasks.formats.python_io import Case, PythonProblem, StdinCase
from rlvr_exp.tasks.formats.rows import FORMATS, CandidateRow, Malformed, RowDomain, fault_of, read_row
from rlvr_exp.tasks.rows import RowLine, fingerprint, lines

CALL = {"id": "a", "code": "c", "entry_point": "f", "cases": [{"args": [1, [2]], "expected": {"k": None}}]}
PROGRAM = {"id": 7, "code": "c", "cases": [{"stdin": "x\n", "expected_stdout": "y\n"}]}
PYTEST = {"id": "a", "code": "c", "tests": "t"}
DAFNY = {"id": "a", "program": "p", "candidate": "c"}
AST_GREP = {"id": "a", "language": "python", "before": "b", "action": {"pattern": "x", "fix": "é"}, "after": "a"}
ROWS = {"python_io": CALL, "pytest": PYTEST, "dafny": DAFNY, "ast_grep": AST_GREP}


def read(row, kind="python_io"):
    return read_row(json.dumps(row).encode(), kind)


def problem(row, kind="python_io"):
    answer = read(row, kind)
    assert isinstance(answer, CandidateRow), answer
    return answer.problem


def reason(row, kind="python_io"):
    answer = read(row, kind)
    assert isinstance(answer, Malformed), answer
    return answer.reason


def cases(*given):
    return CALL | {"cases": list(given)}


def test_a_function_with_json_cases():
    assert read(CALL) == CandidateRow("a", PythonProblem("f", (Case((1, [2]), {"k": None}),)), Candidate("c"))


def test_a_function_with_literals_is_strict_about_types():
    row = cases({"args_py": "(1, (2,), {3})", "expected_py": " ('x', None, b'y', 1j) "})
    assert problem(row) == PythonProblem("f", (Case((1, (2,), {3}), ("x", None, b"y", 1j)),), strict=True)


def test_arguments_as_a_list_of_literals_and_with_json_answers():
    row = cases({"args_py": ["1", "(2,)"], "expected": 3}, {"args_py": "[4]", "expected": 5})
    assert problem(row).cases == (Case((1, (2,)), 3), Case((4,), 5)) and not problem(row).strict


def test_a_program_by_its_output():
    assert read(PROGRAM) == CandidateRow(7, PythonProblem("", (StdinCase("x\n", "y\n"),)), Candidate("c"))
    assert problem(PROGRAM | {"entry_point": None, "cases": [{"expected_stdout": "y"}]}).cases == (StdinCase("", "y"),)


def test_tolerance_and_limits():
    row = CALL | {"atol": 1, "limits": {"cpu_s": 1, "memory_mb": 64, "wall_s": None}}
    assert problem(row).atol == 1.0 and problem(row).limits == Limits(1.0, 0.0, 64)
    assert problem(CALL | {"atol": None, "limits": None}).limits == Limits()


@pytest.mark.parametrize(
    ("given", "tolerances"),
    [
        ({}, (0.0, 0.0)),
        ({"atol": 0}, (0.0, 0.0)),
        ({"atol": 0.5}, (0.5, 1e-7)),
        ({"atol": 0.5, "rtol": None}, (0.5, 1e-7)),
        ({"atol": 0.5, "rtol": 0}, (0.5, 0.0)),
        ({"rtol": 0.01}, (0.0, 0.01)),
    ],
)
def test_a_row_with_an_absolute_tolerance_alone_has_a_small_relative_one(given, tolerances):
    assert (problem(CALL | given).atol, problem(CALL | given).rtol) == tolerances


def test_the_other_formats():
    files = PYTEST | {"files": {"data/x.txt": "1"}, "limits": {"wall_s": 3}}
    assert problem(files, "pytest") == PytestProblem("t", (("data/x.txt", "1"),), Limits(wall_s=3.0))
    assert read(DAFNY, "dafny") == CandidateRow("a", DafnyProblem("p"), Candidate("c"))
    assert problem(DAFNY | {"keep": "k"}, "dafny") == DafnyProblem("p", keep="k")
    assert problem(DAFNY | {"keep": None}, "dafny") == DafnyProblem("p")
    assert problem(DAFNY | {"strength": "refresh"}, "dafny") == DafnyProblem("p", strength="refresh")
    assert problem(DAFNY | {"strength": None}, "dafny") == DafnyProblem("p")
    found = read(DAFNY | {"strength": "weak"}, "dafny")
    assert isinstance(found, Malformed) and found.reason == 'strength: got "weak", allowed strict, refresh, default'
    assert problem(AST_GREP | {"tests": "t", "after": None}, "ast_grep") == AstGrepProblem("python", "b", "", "t")
    assert read(AST_GREP, "ast_grep").candidate == Candidate('{"pattern": "x", "fix": "é"}')
    assert read(AST_GREP | {"action": "pattern: x"}, "ast_grep").candidate == Candidate("pattern: x")


def test_an_edited_text_in_place_of_an_action():
    row = {key: value for key, value in AST_GREP.items() if key != "action"} | {"text": "c"}
    found = read(row, "ast_grep")
    assert found.problem.answer == "text" and found.candidate == Candidate("c")
    assert read(row | {"text": None}, "ast_grep").candidate.text is None
    assert read(row | {"action": "pattern: x"}, "ast_grep").problem.answer == "action"


@pytest.mark.parametrize(
    ("kind", "key"), [("python_io", "code"), ("pytest", "code"), ("dafny", "candidate"), ("ast_grep", "action")]
)
def test_null_is_an_answer_without_a_candidate(kind, key):
    candidate = read(ROWS[kind] | {key: None}, kind).candidate
    assert candidate.text is None and key in candidate.fault


@pytest.mark.parametrize("kind", FORMATS)
def test_further_keys_are_left_alone(kind):
    assert read(ROWS[kind] | {"source": "mine", "canonical": [1]}, kind) == read(ROWS[kind], kind)


@pytest.mark.parametrize(("kind", "key"), [(kind, key) for kind, row in ROWS.items() for key in row])
@pytest.mark.parametrize("wrong", ["absent", 1.5, True])
def test_a_key_that_is_missing_or_of_another_type_is_named(kind, key, wrong):
    row = {name: value for name, value in ROWS[kind].items() if name != key} | (
        {} if wrong == "absent" else {key: wrong}
    )
    answer = read(row, kind)
    assert isinstance(answer, Malformed) and key in answer.reason
    assert answer.id == (None if key == "id" else "a")


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"id": None}, "id: got null, allowed a string or an integer"),
        ({"id": []}, "id: got [], allowed"),
        ({"cases": []}, "cases: got [], allowed a list of at least one case"),
        ({"cases": [1]}, "cases[0]: got a number, allowed an object"),
        (cases({"args": 1, "expected": 1}), "cases[0].args: got 1, allowed a list"),
        (cases(CALL["cases"][0], {"args": []}), "cases[1]: expected or expected_py: missing; give one of the two"),
        (cases({"args": [], "args_py": "()", "expected": 1}), "cases[0]: args or args_py: both are given"),
        (cases({"args_py": "1", "expected": 1}), 'cases[0].args_py: got "1", allowed a list or tuple of arguments'),
        (cases({"args_py": 1, "expected": 1}), "cases[0].args_py: got a number, allowed the text of a Python literal"),
        (cases({"args_py": "(1,", "expected": 1}), "cases[0].args_py: not a Python literal"),
        (cases({"args_py": "f()", "expected": 1}), "cases[0].args_py: not a Python literal"),
        (cases({"args_py": "(" * 5000, "expected": 1}), "cases[0].args_py: not a Python literal"),
        (cases({"args_py": "[" + "-" * 50000 + "1]", "expected": 1}), "cases[0].args_py: not a Python literal"),
        (cases({"args_py": ["1", "x"], "expected": 1}), "cases[0].args_py[1]: not a Python literal"),
        (cases({"args": [], "expected": 1}, {"args": [], "expected_py": "1"}), "cases: some have expected and some"),
        ({"entry_point": None, "cases": [{"stdin": 1, "expected_stdout": ""}]}, "cases[0].stdin: got 1, allowed text"),
        ({"entry_point": "", "cases": [{"stdin": ""}]}, "cases[0]: expected_stdout: missing"),
        ({"entry_point": None}, "entry_point: missing"),
        ({"cases": PROGRAM["cases"]}, "entry_point: given, though cases[0] is a program's"),
        ({"atol": -1}, "atol: got -1, allowed a number from 0"),
        ({"atol": float("nan")}, "atol: got NaN"),
        ({"atol": 10**400}, "atol: got 1000"),
        ({"rtol": 2}, "rtol: got 2, allowed a number from 0 to 1"),
        ({"rtol": True}, "rtol: got true"),
        ({"limits": {"cpu": 1}}, 'limits: got {"cpu": 1}, allowed an object with cpu_s, wall_s, memory_mb'),
        ({"limits": {"cpu_s": 0}}, "limits.cpu_s: got 0, allowed a number above 0"),
        ({"limits": {"cpu_s": True}}, "limits.cpu_s: got true"),
        ({"limits": {"memory_mb": 1.5}}, "limits.memory_mb: got 1.5, allowed a whole number"),
    ],
)
def test_what_is_wrong_is_told_with_what_is_allowed(changed, told):
    assert reason(CALL | changed).startswith(told)


@pytest.mark.parametrize("files", [[1], {"": "x"}, {"a": 1}])
def test_files_are_texts_by_name(files):
    assert reason(PYTEST | {"files": files}, "pytest").startswith("files: got ")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (b"", "not JSON: Expecting value at character 1"),
        (b'{"id": 1', "not JSON: "),
        (b'{"id": "\xff"}', "not UTF-8: byte 9 of the line is 0xff"),
        (b"[1]", "not a JSON object but a list"),
        (b"null", "not a JSON object but null"),
        (b"[" * 100_000, "not readable: nested too deep"),
        (b'{"id": ' + b"1" * 5000 + b"}", "not readable: Exceeds the limit"),
    ],
)
def test_a_line_that_is_no_row_is_told(line, told):
    answer = read_row(line, "dafny")
    assert answer.id is None and answer.reason.startswith(told)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=5), below, max_size=3),
    max_leaves=8,
)
KEYS = sorted({key for row in ROWS.values() for key in row} | {"limits", "atol", "rtol", "files", "tests"})


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.sampled_from(KEYS), JSON), st.sampled_from(sorted(FORMATS)))
def test_no_row_raises(row, kind):
    assert isinstance(read(row, kind), CandidateRow | Malformed)


@given(st.binary(max_size=60), st.sampled_from(sorted(FORMATS)))
def test_no_bytes_raise(line, kind):
    assert isinstance(read_row(line, kind), CandidateRow | Malformed)


def zstandard(content: bytes) -> bytes:
    packed = pyarrow.BufferOutputStream()
    with pyarrow.CompressedOutputStream(packed, "zstd") as stream:
        stream.write(content)
    return packed.getvalue().to_pybytes()


PACK = {"plain": bytes, "gzip": gzip.compress, "zstandard": zstandard}


@pytest.fixture(params=PACK)
def made(request, tmp_path):
    """Writes bytes to a file, packed or not."""

    def write(content: bytes):
        path = tmp_path / "rows"
        path.write_bytes(PACK[request.param](content))
        return path

    return write


def test_lines_come_with_their_numbers_and_blank_ones_are_none(made):
    path = made(b"\xef\xbb\xbfone\r\n\n  \ntwo")
    assert list(lines(path, 100)) == [RowLine(1, b"one"), RowLine(4, b"two")] and fingerprint(path).rows == 2


def test_a_line_above_the_bound_is_skipped(made):
    path = made(b"a" * 11 + b"\n" + b"b" * 10 + b"\n" + b"c" * 3_000_000 + b"\nd")
    assert [line.text for line in lines(path, 10)] == [None, b"b" * 10, None, b"d"] and fingerprint(path).rows == 4


@given(st.lists(st.sampled_from([b"", b" ", b"row", b"x" * 2_000_000]), max_size=5), st.booleans())
def test_rows_are_counted_as_they_are_read(tmp_path_factory, rows, ended):
    path = tmp_path_factory.mktemp("rows") / "rows"
    path.write_bytes(b"\n".join(rows) + b"\n" * ended)
    assert fingerprint(path).rows == len(list(lines(path, 5_000_000)))


def test_the_fingerprint_is_of_the_content(tmp_path):
    (tmp_path / "plain").write_bytes(b"a\nb\n")
    (tmp_path / "packed").write_bytes(gzip.compress(b"a\nb\n"))
    (tmp_path / "other").write_bytes(b"a\nc\n")
    plain, packed, other = (fingerprint(tmp_path / name) for name in ("plain", "packed", "other"))
    assert plain == packed and plain.hash != other.hash


@pytest.mark.parametrize("pack", [gzip.compress, zstandard])
def test_a_packed_file_that_is_cut_short_is_told(pack, tmp_path):
    (tmp_path / "cut").write_bytes(pack(os.urandom(10_000))[:-20])
    with pytest.raises(InputError, match="cannot be read"):
        fingerprint(tmp_path / "cut")


def test_a_long_first_line_behind_a_byte_order_mark_is_skipped_whole(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + b"a" * 109 + b"\nbb\n")
    assert list(lines(path, 20)) == [RowLine(1, None), RowLine(2, b"bb")]
    path.write_bytes(b"\xef\xbb\xbfaa\nbb\n")
    assert list(lines(path, 20)) == [RowLine(1, b"aa"), RowLine(2, b"bb")]


EDIT = AstGrepProblem("python", "print(a)\n", "log(a)\n")
PROOF = DafnyProblem("method M() { }")
MODULE = PytestProblem("def test_nothing(): pass")


@pytest.mark.parametrize(
    ("form", "answer", "program"),
    [
        ("dafny", "Here:\n```dafny\nmethod M() { }\n```\nDone.", "method M() { }\n"),
        ("dafny", "method M() { }", "method M() { }\n"),
        ("dafny", "```\nfirst\n```\nbetter:\n```dafny\r\nmethod M() { }\r\n```", "method M() { }\n"),
        ("ast_grep", '```json\n{"pattern": "a", "rewrite": "b"}\n```', '{"pattern": "a", "rewrite": "b"}\n'),
        ("python_io", "Sure!\n```python\ndef f(x):\n    return x\n```", "def f(x):\n    return x\n"),
        ("pytest", "def f(x):\n    return x\nThat is all.", "def f(x):\n    return x\n"),
        ("dafny", " \n", None),
        ("python_io", "I cannot.", None),
    ],
)
def test_fences_and_chatter_are_removed(form, answer, program):
    assert RowDomain(form).parse(answer, Task("row", form, 0.0, None, None)).text == program


@pytest.mark.parametrize(
    ("problem", "text"),
    [
        (EDIT, '{"pattern": "print($X)", "rewrite": "log($X)"}'),
        (PROOF, "method M() returns (x: int)\n  ensures x > 0\n{ x := 1; }"),
        (MODULE, "x = 1\n"),
        ("a user's own", "anything"),
    ],
)
def test_a_sound_program_has_no_fault(problem, text):
    assert fault_of(problem, Candidate(text)) == ""


@pytest.mark.parametrize(
    ("problem", "text", "told"),
    [
        (EDIT, '{"patern": "a"}', "pattern"),
        (EDIT, "{", "not"),
        (PROOF, "method M() { ", "{"),
        (MODULE, "x = (1\n", "line 1"),
    ],
)
def test_a_fault_is_told(problem, text, told):
    assert told in fault_of(problem, Candidate(text))


def test_an_answer_without_a_program_says_why():
    assert fault_of(MODULE, Candidate(None, "line 3: invalid syntax")) == "line 3: invalid syntax"
