"""Small files in each set's own format, written for the tests."""

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

DOUBLE = "def double(x: int) -> int:\n    return 2 * x\n"
HEADER = 'def double(x: int) -> int:\n    """Twice x."""\n'

HUMAN_EVAL = {
    "task_id": "HumanEval/900",
    "prompt": "def half(x):\n    return x // 2\n\n\n" + HEADER,
    "entry_point": "double",
    "canonical_solution": "    return 2 * x\n",
    "test": "METADATA = {'author': 'us'}\n\n\ndef check(candidate):\n    assert candidate(3) == 6\n"
    "    assert half(candidate(5)) == 5\n",
}
HUMAN_EVAL_PLUS = {name: value for name, value in HUMAN_EVAL.items() if name != "test"} | {
    "prompt": HEADER,
    "contract": "\n    assert isinstance(x, int)\n",
    "base_input": [[3], [0]],
    "plus_input": [[-7]],
    "atol": 0,
}
MBPP = {
    "task_id": 700,
    "text": "Write a function to double a number.",
    "code": "def double(x): \r\n\treturn 2 * x",
    "test_setup_code": "",
    "test_list": ["assert double(3) == 6", "assert double(0) == 0", "assert double(-1) == -2"],
    "challenge_test_list": [],
}
SANITIZED = {
    "source_file": "x.ipynb",
    "task_id": 12,
    "prompt": "Write a function to double a number.",
    "code": "def double(x):\n  return 2 * x",
    "test_imports": ["import math"],
    "test_list": ["assert math.isclose(double(3), 6)"],
}
MBPP_PLUS_TEST = """import numpy as np

def assertion(out, exp, atol):
    if out != exp and atol != 0:
        assert np.allclose(out, exp, rtol=1e-07, atol=atol)
    else:
        assert out == exp, f"out: {out}, exp: {exp}"


inputs = [[3], [0], [(1, 2)]]
results = [6, 0, (1, 2, 1, 2)]
for i, (inp, exp) in enumerate(zip(inputs, results)):
    assertion(double(*inp), exp, 0)
"""
MBPP_PLUS = {
    "task_id": 14,
    "code": "\ndef double(x):\n  return 2 * x\n",
    "prompt": "Double a number.",
    "source_file": "x.ipynb",
    "test_imports": [],
    "test_list": ["assert double(3) == 6"],
    "test": MBPP_PLUS_TEST,
}
MBPP_PLUS_FLOATS = MBPP_PLUS | {
    "test": MBPP_PLUS_TEST.replace("[[3], [0], [(1, 2)]]", "[[1e30], [-0.1], [3]]")
    .replace("[6, 0, (1, 2, 1, 2)]", "[2e30, -0.2, 6]")
    .replace("    if out", "    if atol == 0 and isinstance(exp, float):\n        atol = 1e-6\n    if out")
}
"""Floats beside an int, as EvalPlus's tolerances are for."""
CANITEDIT = {
    "id": 7,
    "name": "counter",
    "full_name": "7_counter",
    "before": "class Counter:\n    def __init__(self):\n        self.count = 0",
    "after": "import math\n\n\nclass Counter:\n    def __init__(self):\n        self.count = 0\n\n    def up(self):\n"
    "        self.count += 1\n\n\ndef _hidden(x):\n    return math.floor(x)",
    "tests": "### START TESTS ###\nif True:  # pragma: no cover\n    counter = Counter()\n    counter.up()\n"
    "    assert counter.count == 1\n    assert _hidden(1.5) == math.floor(1.5)\n",
    "instruction_descriptive": "Add a method `up`.",
    "instruction_lazy": "Count up.",
    "taxonomy": {"change_kind": "adaptive", "libraries": [], "topic": "Language"},
}
HUMANEVALPACK = {
    "task_id": "Python/900",
    "prompt": HEADER,
    "declaration": "def double(x: int) -> int:\n",
    "canonical_solution": "    return 2 * x\n",
    "buggy_solution": "    return 3 * x\n",
    "bug_type": "value misuse",
    "failure_symptoms": "incorrect output",
    "test": "def check(double):\n    assert double(3) == 6\n    assert double(4) == 8\n\ncheck(double)\n",
    "example_test": "def check(double):\n    assert double(1) == 2\ncheck(double)\n",
    "entry_point": "double",
    "signature": "double(x: int) -> int",
    "docstring": "Twice x.",
    "instruction": "Write double.",
    "text": "    Twice x.",
}
EDIT_EVAL = {
    "task_id": "EditEval/900",
    "instruction": "Remember the sum.",
    "context": "total = 0\n\n\ndef reset():\n    global total\n    total = 0\n\n\n{{Code}}\n",
    "input": "def add(x):\n    return x",
    "output": "def add(x):\n    global total\n    total += x\n    return total",
    "test": "def check():\n    reset()\n    add(2)\n    add(3)\n    assert total == 5\n",
    "META": {"author": "us"},
}
ROWS: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "human_eval": ("data/HumanEval.jsonl.gz", [HUMAN_EVAL]),
    "human_eval_plus": ("HumanEvalPlus-Mini.jsonl.gz", [HUMAN_EVAL_PLUS]),
    "mbpp": ("mbpp.jsonl", [MBPP]),
    "mbpp_plus": ("MbppPlus-OriginFmt.jsonl.gz", [MBPP_PLUS]),
    "canitedit": ("canitedit.jsonl", [CANITEDIT]),
    "humanevalpack": ("python/humanevalpack.jsonl", [HUMANEVALPACK]),
    "edit_eval": ("edit_eval.jsonl", [EDIT_EVAL]),
}


def write(file: Path, rows: Sequence[dict[str, Any]]) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(rows) if file.suffix == ".json" else "\n".join(map(json.dumps, rows)) + "\n"
    file.write_bytes(gzip.compress(text.encode()) if file.suffix == ".gz" else text.encode())
    return file


def write_set(root: Path, name: str) -> Path:
    """A set of one task, in its own layout; QuixBugs has one program with cases and one with a driver."""
    if name == "quixbugs":
        return write_quixbugs(root)
    file, rows = ROWS[name]
    write(root / file, rows)
    return root


def write_quixbugs(root: Path) -> Path:
    head = "import pytest\nfrom load_testdata import load_json_testcases\n\nif pytest.use_correct:\n"
    head += "    from correct_python_programs.{0} import {0}\nelse:\n    from python_programs.{0} import {0}\n\n"
    files = {
        "python_programs/double.py": "def double(x):\n    return 3 * x\n",
        "correct_python_programs/double.py": DOUBLE,
        "correct_python_programs/node.py": "class Node:\n    pass\n",
        "correct_python_programs/last_test.py": "raise SystemExit\n",
        "json_testcases/double.json": "[[1], 2]\n[5, 10]\n",
        "python_testcases/test_double.py": head.format("double")
        + "testdata = load_json_testcases(double.__name__)\n\n\n"
        + "@pytest.mark.parametrize('input_data,expected', testdata)\n"
        + "def test_double(input_data, expected):\n    assert double(*input_data) == expected\n",
        "python_programs/last.py": "def last(node):\n    return node\n",
        "correct_python_programs/last.py": "def last(node):\n    while node.next:\n        node = node.next\n"
        "    return node\n",
        "python_testcases/node.py": "class Node:\n    def __init__(self, next=None):\n        self.next = next\n",
        "python_testcases/test_last.py": "import pytest\nfrom node import Node\n\nif pytest.use_correct:\n"
        "    from correct_python_programs.last import last\nelse:\n    from python_programs.last import last\n\n\n"
        "def test1():\n    end = Node()\n    assert last(Node(end)) is end\n",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root
