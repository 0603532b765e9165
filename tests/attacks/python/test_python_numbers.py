"""Rows with integers of more digits than Python reads, and rows with tolerances, from the command line."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

LONG, LONGER = "7" * 5000, "7" * 60_000
SEVENS = "7 * (10 ** 5000 - 1) // 9"
UNLIMITED = "import sys\nsys.set_int_max_str_digits(0)\n"


def call(code: str, args: str, expected: str, **more: object) -> str:
    """A row whose arguments and value are JSON."""
    rest = json.dumps({"code": f"def f(*x):\n    return {code}\n", "entry_point": "f", **more})
    return f'{rest[:-1]}, "cases": [{{"args": {args}, "expected": {expected}}}]}}'


def literal(code: str, args: str, expected: str) -> str:
    case = {"args_py": args, "expected_py": expected}
    return json.dumps({"code": f"def f(*x):\n    return {code}\n", "entry_point": "f", "cases": [case]})


def program(code: str, expected: str, stdin: str = "", **more: object) -> str:
    return json.dumps({"code": UNLIMITED + code, "cases": [{"stdin": stdin, "expected_stdout": expected}], **more})


ROWS = {
    "digits": (
        [
            call("x[0] + 1", f"[{LONG}]", f"{LONG}8"),
            call("x[0]", f"[{LONG}]", f"-{LONG}"),
            call("1", "[1]", LONG),
            call(SEVENS, "[1]", "1"),
            call("float('inf')", "[1]", LONG, atol=1.0),
            call("[x[0]]", f"[{LONG}]", f"[[{LONG}]]"),
            literal("x[0]", f"({LONG},)", f"{LONG[1:]}8"),
            literal("[x[0], 1]", f"[{LONG}, 1]", f"[{LONG}, 2]"),
            program(f"print({SEVENS})", LONG[1:]),
            program(f"print(-{SEVENS})", LONG, atol=0.1),
            program("print('0' * 5000 + '1')", "2", atol=0.1),
        ],
        [
            call("x[0] + 1", f"[{LONG}]", f"{LONG[1:]}8"),
            call("x[0]", f"[{LONGER}]", LONGER),
            call(SEVENS, "[1]", LONG),
            call("-x[0]", f"[{LONG}]", f"-{LONG}"),
            call("{'a': [x[0], None]}", f"[{LONG}]", f'{{"a": [{LONG}, null]}}'),
            call("x[0]", "[1]", "1", note=[1]).replace("[1]", f"[{LONG}]", 1),
            literal("x[0]", f"({LONG},)", LONG),
            literal("(x[0], '7')", f"[{LONG}]", f"({LONG}, '7')"),
            literal("x[0]", f"({hex(10**5000)},)", hex(10**5000)),
            program(f"print({SEVENS})", f"{LONG}\n"),
            program(f"print({SEVENS})", f"+00{LONG}", atol=0.1),
            program("print(int(input()) + 1)", f"{LONG[1:]}8", LONG),
            program("print('-' + '0' * 5000)", "0", atol=0.1),
        ],
    ),
    "tolerance": (
        [
            call("4188.78", "[10]", "4188.790204786391", atol=0.0001),
            call("4.1887902e18", "[1]", "4.18879020478639e18", atol=0.0001, rtol=0),
            call("4.1887e18", "[1]", "4.18879020478639e18", atol=0.0001),
            call("[1.0, 2.1]", "[1]", "[1.0, 2.0]", atol=0.0001),
            call("101", "[1]", "100", atol=1.5),
            call("1e30", "[1]", "1.00001e30", atol=0.0001),
            call("float('nan')", "[1]", "1.0", atol=0.0001),
            call("float('inf')", "[1]", "1e308", atol=0.0001),
            call("'1.0'", "[1]", "1.0", atol=0.0001),
            call("True", "[1]", "1.0", atol=0.0001),
            call("[1.0]", "[1]", "1.0", atol=0.0001),
            program("print(1.1)", "1.0", atol=0.0001),
        ],
        [
            call("4 * 3.141592653589793 * 10 ** 3 / 3", "[10]", "4188.790204786391", atol=0.0001),
            call("4.188790204786391e30", "[1]", "4.188790204786392e30", atol=0.0001),
            call("4.18879020478639e18 * (1 + 9e-8)", "[1]", "4.18879020478639e18", atol=0.0001),
            call("[1.00001, [2.0]]", "[1]", "[1.0, [2.00001]]", atol=0.0001),
            call("(1.0000001, 2)", "[1]", "[1.0, 2]", atol=0.0001),
            call("{'a': 1.00001}", "[1]", '{"a": 1.0}', atol=0.0001),
            call("3.99999999", "[1]", "4", atol=0.0001),
            call("4", "[1]", "3.99999999", atol=0.0001),
            call("100.9", "[1]", "100", rtol=0.01),
            call("float('inf')", "[1]", "1e999", atol=0.0001),
            program("print('a', 1.00001)", "a 1.0", atol=0.0001),
        ],
    ),
}
CASES = [(group, kind, row) for group, pair in ROWS.items() for kind, rows in zip(("wrong", "honest"), pair, strict=True) for row in rows]  # fmt: skip


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory) -> list[dict]:
    folder: Path = tmp_path_factory.mktemp("numbers")
    given, written = folder / "in.jsonl", folder / "out.jsonl"
    given.write_text("".join(f'{{"id": {at}, {row[1:]}\n' for at, (_, _, row) in enumerate(CASES)))
    words = ["+stage=verify", "verifier=python_io", f"verify.input={given}", f"verify.output={written}"]
    words += ["cache.enabled=false", f"run.dir={folder / 'run'}", "sandbox.workers=1"]
    subprocess.run([sys.executable, "-m", "rlvr_exp", *words], check=True, capture_output=True, timeout=300)
    return [json.loads(line) for line in written.read_text().splitlines()]


@pytest.mark.parametrize(
    "at", [pytest.param(at, id=f"{group}-{kind}-{at}") for at, (group, kind, _) in enumerate(CASES)]
)
def test_a_number_is_compared_whatever_its_size(verdicts, at: int) -> None:
    assert verdicts[at]["id"] == at
    assert verdicts[at]["outcome"] == ("passed" if CASES[at][1] == "honest" else "failed"), verdicts[at]["log"]


def test_a_task_with_long_numbers_is_prompted_and_validated(tmp_path: Path) -> None:
    calls = f'[{{"args": [{LONG}], "expected": {LONG[1:]}8}}]'
    row = f'{{"text": "Add one.", "solution": "def inc(x):\\n    return x + 1\\n", "entry_point": "inc", "tests": {calls}, "shown": {calls}'
    splits = ("train", "dev", "test")
    text = "".join(f'{row.replace("one", split)}, "id": "{split}", "split": "{split}"}}\n' for split in splits)
    (tmp_path / "rows.jsonl").write_text(text.replace("x + 1", "1 + x", 1))
    words = ["+stage=validate", "data=problems", f"data.path={tmp_path / 'rows.jsonl'}", f"run.dir={tmp_path / 'run'}"]
    command = [sys.executable, "-m", "rlvr_exp", *words, "sandbox.workers=1", "cache.enabled=false"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


def test_every_class_has_eight_rows() -> None:
    assert all(len(rows) >= 8 for pair in ROWS.values() for rows in pair)
