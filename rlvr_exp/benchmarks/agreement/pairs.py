"""`benchmark=agreement`: how many programs the configured verifier judges as plain Python does; they have to be all.

Pairs in a verifier's form, and the comparison of its verdicts with those of plain Python.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from rlvr_exp.benchmarks.agreement import naive
from rlvr_exp.benchmarks.agreement.programs import HEAD, function, value, written
from rlvr_exp.config.load import build
from rlvr_exp.config.schema import Config
from rlvr_exp.core.errors import GuardStop, InputError, InputProblem
from rlvr_exp.records.context import RunContext
from rlvr_exp.tasks.base import Candidate
from rlvr_exp.tasks.formats.pytest_suite import PytestProblem
from rlvr_exp.tasks.formats.python_io import Case, PythonProblem
from rlvr_exp.tasks.mutants import chosen
from rlvr_exp.verifiers.base import Request, Verifier


@dataclass(frozen=True)
class ComparedProgram:
    """One program with both verdicts."""

    number: int
    kind: str
    """`honest` or `wrong`."""
    request: Request
    plain: bool
    """Whether it passes under plain Python."""
    outcome: str = ""
    log: str = ""

    @property
    def agrees(self) -> bool:
        return self.plain == (self.outcome == "passed")


@dataclass(frozen=True)
class _Pair:
    honest: str
    wrong: str
    calls: tuple[tuple[Any, Any], ...]
    instead: Any
    """The expected value where the honest program gives none."""


def python_io_pairs(count: int, seed: int) -> list[ComparedProgram]:
    """Pairs of functions with cases."""
    found = []
    for number, pair, honest, wrong in _run(count, seed):
        wanted = [answer if isinstance(answer, list) else [naive.key(pair.instead), pair.instead] for answer in honest]
        cases = tuple(Case(args, expected) for args, (_, expected) in zip(pair.calls, wanted, strict=True))
        problem = PythonProblem("f", cases, strict=True)
        for kind, code, answers in (("honest", pair.honest, honest), ("wrong", pair.wrong, wrong)):
            same = [type(one) is list and one[0] == other[0] for one, other in zip(answers, wanted, strict=True)]
            found.append(ComparedProgram(number, kind, Request(problem, Candidate(code)), all(same)))
    return found


def pytest_pairs(count: int, seed: int) -> list[ComparedProgram]:
    """The same functions, with suites of several forms of assertion; pytest itself says which of them pass."""
    found, texts = [], []
    for number, pair, honest, _ in _run(count, seed):
        tests = _suite(random.Random(f"{seed} suite {number}"), pair, honest)
        for kind, code in (("honest", pair.honest), ("wrong", pair.wrong)):
            texts.append([code, tests])
            found.append((number, kind, Request(PytestProblem(tests), Candidate(code))))
    return [ComparedProgram(*one, plain) for one, plain in zip(found, naive.ask("suites", texts), strict=True)]


def with_verdicts(pairs: Sequence[ComparedProgram], verifier: Verifier) -> list[ComparedProgram]:
    """The pairs with the verifier's verdicts."""
    verdicts = verifier.verify([one.request for one in pairs])
    return [
        ComparedProgram(one.number, one.kind, one.request, one.plain, verdict.outcome, verdict.log)
        for one, verdict in zip(pairs, verdicts, strict=True)
    ]


def _run(count: int, seed: int) -> list[tuple[int, _Pair, Any, Any]]:
    pairs = [_pair(random.Random(f"{seed} {number}"), f"{seed} {number}") for number in range(count)]
    both = list(naive.ask("functions", chain.from_iterable(([p.honest, p.calls], [p.wrong, p.calls]) for p in pairs)))
    return list(zip(range(count), pairs, both[::2], both[1::2], strict=True))


def _pair(draw: random.Random, name: str) -> _Pair:
    text = function(draw)
    honest = HEAD + text
    wrong = HEAD + chosen(text, 1, name)[0].code
    calls = tuple((value(draw), value(draw)) for _ in range(draw.randint(1, 4)))
    return _Pair(honest, wrong, calls, value(draw))


def _suite(draw: random.Random, pair: _Pair, honest: Sequence[Any]) -> str:
    lines = ["import unittest", "import pytest", "from math import inf, nan", "from solution import f"]
    for number, (args, answer) in enumerate(zip(pair.calls, honest, strict=True)):
        call = f"f({', '.join(map(written, args))})"
        lines += ["", "", *_test(draw, number, call, answer)]
    return "\n".join(lines) + "\n"


def _test(draw: random.Random, number: int, call: str, answer: Any) -> list[str]:
    if isinstance(answer, str):
        return [f"def test_{number}():", f"    with pytest.raises({answer}):", f"        {call}"]
    wanted = written(answer[1])
    test = f"def test_{number}"
    mark = f"@pytest.mark.parametrize('wanted', [{wanted}])"
    unit = f"        self.assertEqual({call}, {wanted})"
    quiet = "    assert 'Error' not in capsys.readouterr().err"
    forms = (
        [f"{test}():", f"    assert {call} == {wanted}"],
        [f"{test}():", f"    assert not {call} != {wanted}"],
        [f"{test}():", f"    got = {call}", f"    assert repr(got) == repr({wanted}) or got == {wanted}"],
        [mark, f"{test}(wanted):", f"    assert {call} == wanted"],
        [f"class Test{number}(unittest.TestCase):", "    def test_it(self):", unit],
        [f"{test}():", f"    assert [{call}] in [[{wanted}], 'other']"],
        [f"{test}(capsys):", f"    assert {call} == {wanted}", quiet],
    )
    return list(draw.choice(forms))


SHOWN = 20


def measure(config: Config, context: RunContext) -> tuple[str, dict[str, int]]:
    """The counts. Raises InputError for another verifier, GuardStop where a verdict differs."""
    kinds = {"python_io": python_io_pairs, "pytest": pytest_pairs}
    with build(config.verifier, sandbox=config.sandbox, cache=config.cache) as verifier:
        if verifier.name not in kinds:
            raise InputError(InputProblem("verifier", "judges no Python", verifier.name, ", ".join(kinds)))
        found = with_verdicts(kinds[verifier.name](config.benchmark.pairs, config.seed), verifier)
    text, differing = "\n".join(_report(found, config.seed)), sum(not one.agrees for one in found)
    if differing:
        raise GuardStop(text)
    return text, {"programs": len(found), "disagreements": differing}


def _report(found: Sequence[ComparedProgram], seed: int) -> list[str]:
    lines = []
    for one in [one for one in found if not one.agrees][:SHOWN]:
        word, where = "passes" if one.plain else "fails", f"seed {seed}, pair {one.number}, {one.kind}"
        lines.append(f"{where}: {word} under plain Python, {one.outcome}: {one.log[:300]}")
    for kind in ("honest", "wrong"):
        of_kind = [one for one in found if one.kind == kind]
        passed, agreed = sum(one.plain for one in of_kind), sum(one.agrees for one in of_kind)
        lines.append(f"{kind}: {len(of_kind)} programs, {passed} pass under plain Python, {agreed} judged alike")
    return [*lines, f"{sum(not one.agrees for one in found)} disagreements"]
