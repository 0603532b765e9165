"""Suites of many kinds on the bridge: honest solutions pass, attacks do not, and none stays without a verdict."""

import pytest
from bridge_attacks import ATTACKS as EVERY_ATTACK
from bridge_attacks import MISPLACED
from bridge_honest import HONEST as EVERY_HONEST
from suite_arena import judge_all, make
from thinning import thinned

HONEST, ATTACKS = thinned(EVERY_HONEST), thinned(EVERY_ATTACK)
UNBRIDGEABLE = {
    "abstract": "a mirror is no subclass of `abc.ABC`",
    "metaclass singleton": "a mirror's class is not an instance of the solution's metaclass",
}
"""Suites that use attributes that a mirror lacks."""


@pytest.fixture(scope="module")
def verifier():
    with make(workers=2, memory_mb=1024, cpu_s=12.0, wall_s=30.0) as verifier:
        yield verifier


@pytest.fixture(scope="module")
def honest(verifier):
    return judge_all(verifier, [row[1:] for row in HONEST])


@pytest.fixture(scope="module")
def attacks():
    with make(workers=5, memory_mb=1024, cpu_s=1.0, wall_s=3.0) as verifier:  # some of them do nothing but wait
        return judge_all(verifier, [(code, suite, {}) for _, code, suite in ATTACKS])


@pytest.mark.parametrize("at", [pytest.param(at, id=row[0]) for at, row in enumerate(HONEST)])
def test_honest_solution_passes(honest, at):
    expected = "failed" if HONEST[at][0] in UNBRIDGEABLE else "passed"
    assert honest[at].outcome == expected, honest[at]


@pytest.mark.parametrize("at", [pytest.param(at, id=row[0]) for at, row in enumerate(ATTACKS)])
def test_attack_never_passes(attacks, at):
    assert attacks[at].outcome == "failed", attacks[at]
    assert "'Peer' object has no attribute" not in attacks[at].log, "it attacks nothing"


@pytest.mark.slow
@pytest.mark.parametrize("row", [pytest.param(row, id=row[0]) for row in thinned(MISPLACED)])
def test_object_in_the_wrong_place_never_passes(verifier, row):
    _, code, suite, reference = row
    verdicts = [judge_all(verifier, [(code, suite, {})], known)[0].outcome for known in ("", reference)]
    assert verdicts == ["failed", "failed"]
    assert judge_all(verifier, [(reference, suite, {})], reference)[0].outcome == "passed"


def test_swallowed_assertion_fails_its_own_test_only(verifier):
    suite = (
        "from solution import run\ndef test_a():\n    def check(): assert 1 == 2\n    run(check)\ndef test_b(): pass"
    )
    code = "def run(f):\n    try: f()\n    except AssertionError: pass"
    verdict = judge_all(verifier, [(code, suite, {})])[0]
    assert (verdict.passed, verdict.total) == (1, 2)
    suite = suite.replace("run(check)", "run(check)\n    assert run(check) == 5")
    verdict = judge_all(verifier, [(code, suite, {})])[0]
    assert (verdict.passed, verdict.total) == (1, 2)


SMALL = "class TooSmall(Exception): pass\ndef take(n):\n    if n < 0: raise TooSmall(n)\n    return n\n"
TRIES = (
    "from solution import take, TooSmall\n"
    "def test_a():\n    try:\n        take(-1)\n        assert False, 'it should refuse'\n    except TooSmall:\n        pass\n"
)
RAISES = "import pytest\nfrom solution import take, TooSmall\ndef test_a():\n    with pytest.raises(TooSmall): assert take(-1) == 5\n"
UNIT = (
    "import unittest, solution\nclass T(unittest.TestCase):\n    def test_a(self):\n        try:\n            solution.take(-1)\n"
    "            self.fail()\n        except solution.TooSmall:\n            pass\n"
)


@pytest.mark.parametrize("suite", [TRIES, RAISES, UNIT], ids=["try", "raises", "unittest"])
@pytest.mark.parametrize(
    "named",
    [
        "AssertionError",
        "Exception",
        "BaseException",
        "(ValueError, AssertionError)",
        "__import__('pytest').fail.Exception",
    ],
)
def test_an_exception_that_is_a_name_for_failures_swallows_none(verifier, suite, named):
    code = f"TooSmall = {named}\ndef take(n): return n\n"
    assert [judge_all(verifier, [(code, suite, {})], known)[0].outcome for known in ("", SMALL)] == ["failed"] * 2


@pytest.mark.parametrize("suite", [TRIES, RAISES, UNIT], ids=["try", "raises", "unittest"])
def test_exceptions_of_ones_own_and_those_of_the_library_cross(verifier, suite):
    library = SMALL.replace("class TooSmall(Exception): pass", "TooSmall = ValueError")
    for code, known in ((SMALL, ""), (SMALL, SMALL), (library, ""), (library, SMALL)):
        assert judge_all(verifier, [(code, suite, {})], known)[0].outcome == "passed", (code, known)
    wide = SMALL.replace("class TooSmall(Exception): pass", "TooSmall = Exception")
    assert judge_all(verifier, [(wide, suite, {})], wide)[0].outcome == "passed", "as the reference has it"


SORT = "def my_sort(xs): return sorted(xs)\n"
DRAWN = "import random\nfrom solution import my_sort\ndef test_a():\n    for _ in range(20):\n        xs = [random.randint(0, 1000) for _ in range(5)]\n        assert my_sort(list(xs)) == sorted(xs)\n"
ASKED = "import os\nfrom solution import my_sort\ndef test_a(monkeypatch):\n    monkeypatch.setenv('LIMIT', '7')\n    assert my_sort([]) == [] and os.environ['LIMIT'] == '7'\n"


def test_a_solution_writes_no_random_state_or_environment_that_the_reference_leaves_alone(verifier):
    fixed = "import random\ndef my_sort(xs):\n    random.setstate((3, (0,) * 624 + (624,), None))\n    return xs\n"
    swapped = "import os\ndef my_sort(xs):\n    os.environ['LIMIT'] = '0'\n    return sorted(xs)\n"
    shuffled = "import random\ndef my_sort(xs):\n    random.random()\n    return sorted(xs)\n"
    assert judge_all(verifier, [(fixed, DRAWN, {})], SORT)[0].outcome == "failed"
    assert judge_all(verifier, [(shuffled, DRAWN, {})], SORT)[0].outcome == "passed"
    assert judge_all(verifier, [(swapped, ASKED, {})], SORT)[0].bucket == "side_effect"
    seeded = "import random\nfrom solution import my_sort\ndef test_a():\n    random.seed(3)\n    a = my_sort([2, 1])\n    random.seed(3)\n    random.random()\n    b = random.random()\n    random.seed(3)\n    my_sort([1])\n    assert random.random() == b\n"
    assert judge_all(verifier, [(shuffled, seeded, {})], shuffled)[0].outcome == "passed", (
        "where the reference draws, too"
    )
