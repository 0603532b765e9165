"""Mutants: different programs that compile, spread over the kinds, reproducible."""

import ast
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thinning import tries

from rlvr_exp.tasks.mutants import KINDS, STUBS, chosen, mutants, stub_programs

PROGRAM = '''"""A module."""
import math

LIMIT: int = 10


def clamp(values: list[int], low: int = 0) -> list[int]:
    """Cut values to a range."""
    kept = []
    for value in values:
        if value < low and value != 3:
            continue
        kept.append(min(value, LIMIT) + 1)
    return kept or [x for x in values if x]
'''
ONE_OF_EACH = {
    "swapped_comparison": ("def f(a, b):\n    return a < b\n", "a <= b"),
    "changed_operator": ("def f(a, b):\n    return a + b\n", "a - b"),
    "off_by_one": ("def f(a):\n    return a[1]\n", "a[2]"),
    "changed_constant": ("def f():\n    return 'yes'\n", "return ''"),
    "negated_condition": ("def f(a):\n    if a:\n        return a\n    return 0\n", "if not a"),
    "dropped_statement": ("def f(a):\n    a.append(a)\n", "pass"),
    "early_return": ("def f(a):\n    for x in a:\n        x()\n", "    return\n"),
    "changed_return": ("def f(a):\n    return a\n", "return\n"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_changes_what_it_says(kind: str) -> None:
    program, shown = ONE_OF_EACH[kind]
    assert any(shown in mutant.code for mutant in mutants(program) if mutant.kind == kind)


@pytest.mark.parametrize("make", [lambda text: list(mutants(text)), stub_programs, lambda text: chosen(text, 9, "key")])
def test_each_is_another_program_that_compiles(make) -> None:
    found = make(PROGRAM)
    dumps = [ast.dump(ast.parse(mutant.code)) for mutant in found]
    assert len(found) >= 7 and ast.dump(ast.parse(PROGRAM)) not in dumps
    for mutant in found:
        compile(mutant.code, "mutant", "exec")


def test_mutants_differ_among_themselves_and_in_code_alone() -> None:
    found = list(mutants(PROGRAM))
    assert len({mutant.code for mutant in found}) == len(found)
    for mutant in found:
        assert '"""A module."""' in mutant.code and '"""Cut values to a range."""' in mutant.code
        assert "values: list[int], low: int" in mutant.code and mutant.line > 0


@settings(deadline=None, max_examples=tries(30))
@given(st.integers(0, 40), st.text(max_size=5))
def test_a_choice_follows_its_key_and_grows(count: int, key: str) -> None:
    found = chosen(PROGRAM, count, key)
    assert found == chosen(PROGRAM, 41, key)[:count]


def test_a_choice_is_spread_over_the_kinds() -> None:
    everything = {mutant.kind for mutant in mutants(PROGRAM)}
    first = Counter(mutant.kind for mutant in chosen(PROGRAM, len(everything), "key"))
    assert set(first) == everything and set(first.values()) == {1}
    assert {tuple(m.code for m in chosen(PROGRAM, 3, key)) for key in "abcd"} != {
        tuple(m.code for m in chosen(PROGRAM, 3, "a"))
    }


def test_hollow_programs_do_nothing_of_the_work() -> None:
    found = {mutant.kind: mutant.code for mutant in stub_programs(PROGRAM)}
    assert set(found) == {"empty", *STUBS}
    results = {}
    for kind, code in found.items():
        space: dict = {}
        exec(code, space)
        try:
            results[kind] = space["clamp"]([1]) if "clamp" in space else "absent"
        except NotImplementedError:
            results[kind] = "raised"
    assert results == {
        "empty": "absent",
        "return_none": None,
        "raise": "raised",
        "identity": [1],
        "return_true": True,
        "return_zero": 0,
        "return_empty_list": [],
        "return_empty_text": "",
    }


def test_a_method_gives_back_its_argument_and_not_its_object() -> None:
    code = next(
        mutant.code
        for mutant in stub_programs("class A:\n    def f(self, x):\n        return x + 1\n")
        if mutant.kind == "identity"
    )
    assert "return x" in code


def test_a_program_that_is_hollow_already_is_not_its_own_mutant() -> None:
    assert "return_none" not in {mutant.kind for mutant in stub_programs("def f():\n    return None\n")}
    assert [mutant.kind for mutant in stub_programs("print('x')\n")] == ["empty"] and stub_programs("") == []
