"""Honest candidates pass: as functions, and, with a line that reads and prints, as complete programs."""

from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from python_arena import LIMITS, PROBLEM, PROGRAM, double, judge
from thinning import thinned

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
TABLE = yaml.load(Path(__file__).with_name("controls.yaml").read_bytes(), LOADER)
CONTROLS = {
    f"{group}-{row['name']}": row.get("program") or double(row["body"], row.get("first", ""))
    for group, rows in TABLE.items()
    for row in rows
}
ROOMY = replace(LIMITS, cpu_s=4.0, wall_s=20.0)
MAIN = "\nif __name__ == '__main__':\n    print(double(int(input())))\n"
NOISY = (
    "noise",
    "print",
    "tests_printed",
    "finalizer",
    "many_threads",
    "exit_handler",
    "builtins_changed",
    "timer",
    "standard_output",
)
"""Controls that print besides their answer, or cannot print, are no programs."""
PROGRAMS = {name: code for name, code in CONTROLS.items() if not any(word in name for word in NOISY)}


@pytest.mark.parametrize("code", thinned(CONTROLS.values()), ids=thinned(CONTROLS))
def test_an_honest_function_passes(verifier, code):
    verdict = judge(verifier, code, replace(PROBLEM, limits=ROOMY))
    assert verdict.outcome == "passed", verdict


@pytest.mark.parametrize("code", thinned(PROGRAMS.values()), ids=thinned(PROGRAMS))
def test_an_honest_program_passes(verifier, code):
    verdict = judge(verifier, code + MAIN, replace(PROGRAM, limits=ROOMY))
    assert verdict.outcome == "passed", verdict
