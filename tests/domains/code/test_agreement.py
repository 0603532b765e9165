"""Verdicts agree with plain Python on random pairs, and a verifier that does not agree is detected."""

from dataclasses import replace
from pathlib import Path

import pytest
from functions import measured

from rlvr_exp.config.verifier import Sandbox
from rlvr_exp.core.errors import GuardStop, InputError
from rlvr_exp.domains.code import agreement, naive
from rlvr_exp.domains.code.agreement import pytest_pairs, python_io_pairs, value, with_verdicts, written
from rlvr_exp.tasks.base import Candidate
from rlvr_exp.verifiers.python_io import PythonIO
from rlvr_exp.verifiers.suite.verifier import PytestSuite


def test_python_io_agrees_on_pairs_that_pass_and_pairs_that_fail() -> None:
    pairs = python_io_pairs(60, seed=7)
    with PythonIO(Sandbox(workers=2, cpu_s=10.0, wall_s=60.0)) as verifier:
        found = with_verdicts(pairs, verifier)
    assert [one for one in found if not one.agrees] == []
    assert {(one.kind, one.plain) for one in found} >= {("honest", True), ("wrong", True), ("wrong", False)}


def test_pytest_agrees() -> None:
    with PytestSuite(Sandbox(workers=2), cpu_s=10.0, wall_s=60.0) as verifier:
        found = with_verdicts(pytest_pairs(6, seed=7), verifier)
    assert [one for one in found if not one.agrees] == []
    assert {one.plain for one in found} == {True, False}


def test_pairs_follow_from_the_seed() -> None:
    one, other, third = (python_io_pairs(3, seed) for seed in (1, 1, 2))
    assert [j.request.candidate for j in one] == [j.request.candidate for j in other]
    assert [j.request.candidate for j in one] != [j.request.candidate for j in third]
    assert len({j.request.candidate for j in one}) == 6


def test_a_disagreement_is_reported_and_stops_the_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pair = next(one for one in python_io_pairs(3, seed=1) if one.plain)
    broken = replace(
        pair, request=replace(pair.request, candidate=Candidate("def f(a, b): return 'nobody expects this'"))
    )
    monkeypatch.setattr(agreement, "python_io_pairs", lambda count, seed: [pair, broken])
    with pytest.raises(GuardStop, match="1 disagreements") as found:
        measured(tmp_path, "agreement", "sandbox.workers=1")
    assert "passes under plain Python, failed: case 0" in str(found.value)
    monkeypatch.setattr(agreement, "python_io_pairs", lambda count, seed: [pair])
    assert measured(tmp_path, "agreement", "sandbox.workers=1")[1] == {"programs": 1, "disagreements": 0}


def test_what_is_written_gives_the_value() -> None:
    import random

    for number in range(300):
        one = value(random.Random(number))
        assert naive.key(eval(written(one), {"inf": float("inf"), "nan": float("nan")})) == naive.key(one)


@pytest.mark.parametrize(("one", "other"), [(1, True), (1, 1.0), ((), []), ("", b""), ({1}, frozenset({1})), (0, None)])
def test_keys_tell_types_apart(one: object, other: object) -> None:
    assert naive.key(one) != naive.key(other)
    assert naive.key([{"a": one}]) != naive.key([{"a": other}])


def test_keys_are_equal_where_order_and_sign_do_not_count() -> None:
    assert naive.key({1: 2, 3: -0.0}) == naive.key({3: 0.0, 1: 2})


def test_agreement_is_of_verifiers_of_python(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="judges no Python"):
        measured(tmp_path, "agreement", "verifier=ast_grep", "sandbox.workers=1")
