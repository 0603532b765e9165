"""`benchmark=agreement`: verdicts of the configured verifier on random programs against plain Python; all of them have to agree.

A pair is a random function `f(a, b)` and one mutant of it, with random inputs: nested data with values that are easily compared wrongly.
The expected values of both programs come from plain Python, so a mutant with the same meaning passes on both sides. A
disagreement is a fault of the verifier or of its documentation. The programs come from this package and do no harm: plain
Python runs them without a sandbox.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from rlvr_exp.config.load import build
from rlvr_exp.config.schema import Config
from rlvr_exp.core.errors import GuardStop, InputError, InputProblem
from rlvr_exp.domains.code import naive
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
    """The expected value if the honest program gives none."""


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
    """The same functions, with suites of several forms of assertion. Pytest itself judges them."""
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
    return [replace(one, outcome=each.outcome, log=each.log) for one, each in zip(pairs, verdicts, strict=True)]


def _run(count: int, seed: int) -> list[tuple[int, _Pair, Any, Any]]:
    """Number, pair, and the results of the honest and of the wrong program under plain Python."""
    pairs = []
    for number in range(count):
        name = f"{seed} {number}"
        draw = random.Random(name)
        text = function(draw)
        wrong = chosen(text, 1, name)[0].code
        calls = tuple((value(draw), value(draw)) for _ in range(draw.randint(1, 4)))
        pairs.append(_Pair(HEAD + text, HEAD + wrong, calls, value(draw)))
    both = list(naive.ask("functions", chain.from_iterable(([p.honest, p.calls], [p.wrong, p.calls]) for p in pairs)))
    return list(zip(range(count), pairs, both[::2], both[1::2], strict=True))


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
    """The counts. Raises InputError for another verifier, GuardStop if a verdict differs."""
    kinds = {"python_io": python_io_pairs, "pytest": pytest_pairs}
    with build(config.verifier, sandbox=config.sandbox, cache=config.cache) as verifier:
        if verifier.name not in kinds:
            raise InputError(InputProblem("verifier", "judges no Python", verifier.name, ", ".join(kinds)))
        found = with_verdicts(kinds[verifier.name](config.benchmark.pairs, config.seed), verifier)
    differing = [one for one in found if not one.agrees]
    lines = [
        f"seed {config.seed}, pair {one.number}, {one.kind}: {'passes' if one.plain else 'fails'} under plain Python, "
        f"{one.outcome}: {one.log[:300]}"
        for one in differing[:SHOWN]
    ]
    for kind in ("honest", "wrong"):
        of_kind = [one for one in found if one.kind == kind]
        passed, agreed = sum(one.plain for one in of_kind), sum(one.agrees for one in of_kind)
        lines.append(f"{kind}: {len(of_kind)} programs, {passed} pass under plain Python, {agreed} judged alike")
    text = "\n".join([*lines, f"{len(differing)} disagreements"])
    if differing:
        raise GuardStop(text)
    return text, {"programs": len(found), "disagreements": len(differing)}


_ATOMS: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2**31, 2**64 + 1, -(10**40)),
    *(0.0, -0.0, 0.1 + 0.2, 1e308, 5e-324, float("inf"), float("nan"), 3.0, 1j, complex(0.0, float("nan"))),
    *("", "a", "A b\n", "é", "\U0001f600", "\ud83d\ude00", "\udc80", "0", "None", b"", b"a", b"\xff\x00"),
)
_HASHABLE = tuple(atom for atom in _ATOMS if atom == atom)
_DEPTH = 3


def value(draw: random.Random, depth: int = 0) -> Any:
    kind = draw.random()
    if depth >= _DEPTH or kind < 0.4:
        return draw.choice(_ATOMS)
    if kind < 0.5:
        return draw.randint(-20, 20)
    if kind < 0.55:
        return round(draw.uniform(-9, 9), draw.randint(0, 3))
    items = [value(draw, depth + 1) for _ in range(draw.randint(0, 3))]
    if kind < 0.75:
        return items
    if kind < 0.85:
        return tuple(items)
    keys = [draw.choice(_HASHABLE) for _ in items]
    return dict(zip(keys, items, strict=True)) if kind < 0.93 else (set(keys) if kind < 0.97 else frozenset(keys))


def written(of: Any) -> str:
    """An expression that gives the value; `inf` and `nan` are names there."""
    match of:
        case list() | tuple():
            inside = ", ".join(map(written, of))
            return f"[{inside}]" if isinstance(of, list) else f"({inside}{',' * (len(of) == 1)})"
        case dict():
            return "{" + ", ".join(f"{written(key)}: {written(part)}" for key, part in of.items()) + "}"
        case set() | frozenset():
            return f"{type(of).__name__}([{', '.join(sorted(map(written, of)))}])"
        case complex():
            return f"complex({of.real!r}, {of.imag!r})"
        case str():
            return ascii(of)
    return repr(of)


HEAD = """
import collections, contextlib, dataclasses, functools, itertools, math
from math import inf, nan

SEEN = []

class Box:
    count = 0
    def __init__(self, held, more=2):
        Box.count += 1
        self.held, self.more = held, more
    def __len__(self): return self.more
    def __iter__(self): return iter([self.held] * self.more)
    @property
    def both(self): return (self.held, self.more)

@dataclasses.dataclass
class Point:
    x: object
    y: int = 3

Pair = collections.namedtuple('Pair', 'one other')

@functools.lru_cache(maxsize=None)
def steps(n):
    return 1 if n < 2 else steps(n - 1) + steps(n - 2)

def parts(of):
    if isinstance(of, (list, tuple)):
        for one in of:
            yield from parts(one)
    else:
        yield of

@contextlib.contextmanager
def noted(of):
    SEEN.append(1)
    try:
        yield of
    finally:
        SEEN.append(2)
"""
Step = Callable[[random.Random], str]


def _literal(draw: random.Random) -> str:
    return written(value(draw, 1))


def _small(draw: random.Random) -> str:
    return str(draw.randint(0, 5))


STEPS: tuple[Step, ...] = (
    lambda draw: f"v = [v, {_literal(draw)}]",
    lambda draw: f"v = (v,) * {_small(draw)}",
    lambda draw: f"v = {{'k': v, {draw.randint(0, 9)}: {_literal(draw)}}}",
    lambda draw: f"v = list(parts([v, {_literal(draw)}]))",
    lambda draw: f"v = Box(v, {_small(draw)}).both",
    lambda draw: f"v = list(Box(v, {_small(draw)}))",
    lambda draw: f"v = (len(Box(v, {_small(draw)})), Box.count)",
    lambda draw: f"v = Pair(v, {_literal(draw)})",
    lambda draw: f"v = dataclasses.astuple(Point(v, {_small(draw)}))",
    lambda draw: f"v = [v, steps({draw.randint(1, 20)})]",
    lambda draw: f"v = [v, {draw.randint(2, 9)} ** {draw.randint(0, 90)}]",
    lambda draw: f"if isinstance(v, (int, float)): v = v + {_small(draw)}",
    lambda draw: f"if isinstance(v, (int, float)) and v > {_small(draw)}: v = v * 2 - 1",
    lambda draw: f"if isinstance(a, list): a.append({_literal(draw)}); v = [a, v]",
    lambda draw: "if isinstance(b, dict): b.clear(); v = [b, v]",
    lambda draw: (
        f"try:\n    v = v[{_small(draw)}]\nexcept (TypeError, KeyError, IndexError):\n    v = [v, {_literal(draw)}]"
    ),
    lambda draw: f"with noted(v) as held: v = [held, len(SEEN)]\nif len(SEEN) > {_small(draw)}: SEEN.clear()",
    lambda draw: f"for n in range({_small(draw)}): v = [n, v] if n % 2 else (v, n)",
    lambda draw: f"v = sum(1 for part in parts(v) if isinstance(part, (int, str))) + {_small(draw)}",
    lambda draw: "v = collections.Counter(type(part).__name__ for part in parts(v))",
    lambda draw: "v = ''.join(part for part in parts([v, a, b]) if isinstance(part, str))",
    lambda draw: f"v = v[{_small(draw)}:] if isinstance(v, (str, bytes, list, tuple)) else v",
    lambda draw: "v = v.encode('utf-8', 'surrogatepass') if isinstance(v, str) else v",
    lambda draw: f"v = {{part for part in parts(v) if isinstance(part, int)}} | {{{_small(draw)}}}",
    lambda draw: "v = len(v) if hasattr(v, '__len__') else v",
    lambda draw: f"print('step', {_small(draw)}, type(v))",
    lambda draw: f"assert v != {_literal(draw)}",
    lambda draw: f"if v == {_literal(draw)}: raise ValueError(v)",
    lambda draw: "v = (one for one in [v])" if draw.random() < 0.1 else "v = next(one for one in [v])",
    lambda draw: "v = Box(v)" if draw.random() < 0.1 else "v = Box(v).held",
    lambda draw: f"v = functools.reduce(lambda one, other: [one, other], [v] * {draw.randint(1, 4)})",
    lambda draw: "v = [*itertools.chain([v], [a])]",
    lambda draw: f"v = math.floor(v) if isinstance(v, float) and math.isfinite(v) else [v, {_literal(draw)}]",
    lambda draw: "globals()['LAST'] = v\nv = [LAST]",
    lambda draw: (
        f"match v:\n    case [one, *_]: v = one\n    case {{'k': one}}: v = (one, {_small(draw)})\n    case int(): v = 1"
    ),
)


def function(draw: random.Random) -> str:
    """The text of a function `f` of two arguments, to be put below HEAD."""
    steps = [draw.choice(STEPS)(draw) for _ in range(draw.randint(1, 5))]
    body = "\n".join([f"v = {draw.choice(['a', 'b', '[a, b]', '(a, b)'])}", *steps, "return v"])
    inside = "".join(f"    {line}\n" for line in body.split("\n"))
    return f"def f(a, b):\n{inside}"
