"""benchmark=red_team: programs depend on the seed alone, every part of the tables is drawn, wrong programs are told from right ones by
their behaviour, and the report counts false passes."""

import json
import re
from itertools import chain
from pathlib import Path

import pytest
from functions import measured

from rlvr_exp.benchmarks import red_team
from rlvr_exp.benchmarks.red_team import Tried, composed, differing, figures, judged, page
from rlvr_exp.benchmarks.red_team_programs import ATTACKS, CHANNELS, COMBINED, FORMS, PLACES, TASKS, drawn
from rlvr_exp.config.verifier import Sandbox
from rlvr_exp.core.statistics import upper_bound
from rlvr_exp.verifiers.base import Verdict
from rlvr_exp.verifiers.python_io import PythonIO
from rlvr_exp.verifiers.suite.verifier import PytestSuite

DRAWN = [drawn(1, number) for number in range(900)]


def test_programs_depend_on_the_seed_and_the_number_alone() -> None:
    few = list(composed(1, 20))
    assert few == list(composed(1, 200))[: len(few)] and len(few) > 20
    assert [drawn(1, number) for number in reversed(range(20))] == DRAWN[:20][::-1]
    assert not {wrong.suite for wrong, _ in DRAWN[:20]} & {drawn(2, number)[0].suite for number in range(20)}


def test_every_attack_and_every_part_of_a_suite_is_drawn() -> None:
    shapes = [wrong.shape for wrong, _ in DRAWN]
    assert {wrong.attack for wrong, _ in DRAWN} == {*ATTACKS, COMBINED}
    assert {wrong.task for wrong, _ in DRAWN} == set(TASKS)
    assert {place for place, *_ in shapes} == set(PLACES) and {channel for *_, channel in shapes} == set(CHANNELS)
    assert {form for _, _, form, _ in shapes} == set(chain.from_iterable(FORMS.values()))
    assert {origin for _, origin, *_ in shapes} == {"literal", "before", "after"}


def test_right_programs_are_judged_on_suites_of_every_attack() -> None:
    turn = len(ATTACKS)
    controls = {one.number for one in composed(1, 4 * turn) if not one.attack}
    assert {number % turn for number in controls} == set(range(turn)) and len(controls) == turn


def test_a_suite_imports_only_names_that_its_programs_define() -> None:
    for wrong, right in DRAWN[:150]:
        taken = re.findall(r"^from solution import (.*)", wrong.suite, re.MULTILINE)[0].split(", ")
        for code in (wrong.code, right.code, wrong.reference):
            names: dict[str, object] = {"__name__": "solution"}
            exec(compile(code, "solution.py", "exec"), names)
            assert {name for name in taken if name != "*"} <= set(names)
        compile(wrong.suite, "test_solution.py", "exec")


@pytest.mark.heavy
def test_wrong_programs_differ_on_new_inputs_and_right_ones_do_not() -> None:
    wrong = [program for program, _ in DRAWN[: len(ATTACKS)]]
    right = [program for _, program in DRAWN[: len(ATTACKS)]]
    with PythonIO(Sandbox(workers=1)) as executor:
        assert differing(wrong, executor) == [True] * len(wrong)
        assert differing(right, executor) == [False] * len(right)


def tried(outcome: str, mode: str, wrong: bool = True, number: int = 0) -> Tried:
    program = DRAWN[number][not wrong]
    return Tried(program, mode, wrong, Verdict(outcome, "wrong_answer" if outcome == "failed" else None))  # type: ignore[arg-type]


def test_the_report_counts_false_passes_and_refused_programs() -> None:
    found = [tried("failed", "reference", number=number) for number in range(598)]
    found += [tried("passed", "no_reference"), tried("failed", "no_reference"), tried("no_verdict", "no_reference")]
    found += [tried("passed", "reference", wrong=False), tried("failed", "no_reference", wrong=False)]
    values = figures(found)
    counts = {"wrong": 598, "false_passes": 0, "right": 1, "refused": 0, "no_verdict": 0}
    assert {key: values[f"reference/{key}"] for key in counts} == counts
    counts = {"wrong": 3, "false_passes": 1, "right": 1, "refused": 1, "no_verdict": 1}
    assert {key: values[f"no_reference/{key}"] for key in counts} == counts
    assert values["no_reference/false_passes/changed arguments"] == 1
    assert 0.0049 < values["reference/upper_bound"] == upper_bound(0, 598) < 0.0051
    text = page(found)
    assert "| with a reference | 598 | 0: 0.00% (at most 0.50%) | 1 | 0 | 0 |" in text
    changed = sum(wrong.attack == "changed arguments" for wrong, _ in DRAWN[:598])
    assert f"| changed arguments | {changed} | 0 | 1 |" in text and text.count("refused: 0-") == 1


@pytest.mark.heavy
def test_attacks_succeed_in_one_process_and_each_false_pass_is_a_row(tmp_path: Path) -> None:
    words = (f"benchmark.programs={4 * len(ATTACKS)}", "verifier.process=shared", "sandbox.workers=1", "seed=1")
    _, values = measured(tmp_path, "red_team", *words)
    harmless = {"plain", "raised", "wrapped tests"}  # a test has to end, in one process as well
    for mode in red_team.MODES:
        prefix = f"{mode}/false_passes/"
        assert set(ATTACKS) - harmless <= {key.removeprefix(prefix) for key in values if key.startswith(prefix)}
        assert not any(f"{prefix}{name}" in values for name in harmless) and not values[f"{mode}/refused"]
        files = list((tmp_path / red_team.FALSE_PASSES).glob(f"*-{mode}.jsonl"))
        assert len(files) == values[f"{mode}/false_passes"] > 0
        for row in (json.loads(file.read_text(encoding="utf-8")) for file in files):
            assert row.keys() == {"id", "code", "tests", *({"reference"} if mode == "reference" else ())}


@pytest.mark.heavy
def test_right_programs_pass_and_plain_wrong_values_fail() -> None:
    at = list(ATTACKS).index("plain")
    pairs = [drawn(1, at + turn * len(ATTACKS)) for turn in range(4)]
    programs = [*chain.from_iterable(pairs)]
    with PytestSuite(Sandbox(workers=1), cpu_s=10, wall_s=60) as verifier:
        found = judged(programs, [True, False] * len(pairs), verifier, lambda done, total: None)
    assert [one.verdict.outcome for one in found] == ["failed", "failed", "passed", "passed"] * len(pairs)
