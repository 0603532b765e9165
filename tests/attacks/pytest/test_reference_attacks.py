"""Attacks beside a reference: none passes, and each suite can judge, since its reference passes it."""

import pytest
from suite_arena import judge_all, make, of_row, table
from thinning import thinned

ROWS = thinned(table("reference_attacks")["attacks"], 2)


@pytest.fixture(scope="module")
def verifier():
    with make(workers=2, memory_mb=2048, cpu_s=12.0, wall_s=30.0) as verifier:
        yield verifier


@pytest.mark.property(18)
@pytest.mark.parametrize("row", [pytest.param(row, id=row["name"]) for row in ROWS])
def test_attack_never_passes(verifier, row):
    _, code, suite, files = of_row(row)
    reference = row.get("reference", "")
    (verdict,) = judge_all(verifier, [(code, suite, files)], reference)
    assert verdict.outcome == "failed", verdict
    if reference:
        assert judge_all(verifier, [(reference, suite, files)], reference)[0].outcome == "passed"


CLASSES = [(group, row) for group, rows in table("reference_classes").items() for row in rows]
OPEN_WITHOUT = {
    "changed objects",
    "mixed places",
    "doctests",
    "own equality",
    "an object that is called",
    "other arguments",
}
OPEN_WITHOUT |= {"only the first coroutine", "parts of containers", "a list of a module of the suite"}
"""Classes and rows that only a reference closes."""
BESIDE = {"doctests", "an object that compares with numbers, or a number", "to every tuple", "to every text"}
BESIDE |= {"to a neighbour of a number that it was compared with"}
"""Classes and rows whose right solution is known as such only beside a reference."""


@pytest.mark.property(18)
@pytest.mark.parametrize(
    ("group", "row"), [pytest.param(*one, id=f"{one[0]}: {one[1]['name']}") for one in thinned(CLASSES, 3)]
)
def test_a_wrong_solution_of_each_class_fails_and_a_right_one_passes(verifier, group, row):
    files = row.get("files", {})
    solutions = [(row[kind] + "\n# another text\n", row["suite"], files) for kind in ("wrong", "right", "reference")]
    wrong, *honest = judge_all(verifier, solutions, row["reference"])
    assert wrong.outcome == "failed" and [verdict.outcome for verdict in honest] == ["passed"] * 2, (wrong, honest)
    if group == "changed objects":
        assert wrong.bucket == "side_effect", wrong
    wrong, *honest = judge_all(verifier, solutions)
    assert {group, row["name"]} & OPEN_WITHOUT or wrong.outcome == "failed", wrong
    if not {group, row["name"]} & BESIDE:
        assert [verdict.outcome for verdict in honest] == ["passed"] * 2, honest


UNREFERENCED = [(group, row) for group, rows in table("unreferenced").items() for row in rows]


@pytest.mark.property(18)
@pytest.mark.parametrize(
    ("group", "row"), [pytest.param(*one, id=f"{one[0]}: {one[1]['name']}") for one in thinned(UNREFERENCED, 2)]
)
def test_without_a_reference_no_object_sees_the_expected_value_in_the_place_of_plain_data(verifier, group, row):
    wrong, right = judge_all(verifier, [(row[kind], row["suite"], {}) for kind in ("wrong", "right")])
    assert (wrong.outcome, right.outcome) == ("failed", "passed"), (wrong, right)


NET = "import torch\n\ndef net(): return torch.randn(3)\n"
AGAIN = "import torch\nfrom solution import net\ndef test_a():\n    torch.manual_seed(3); a = net(); torch.manual_seed(3); b = net()\n    assert torch.equal(a, b) and not torch.equal(net(), a)\n"
SEEDS = "import random\ndef set_seed(n): random.seed(n)\n"
SEEDED = "import random\nfrom solution import set_seed\ndef test_a():\n    set_seed(4); a = random.randint(0, 10**9); set_seed(4); b = random.randint(0, 10**9)\n    assert a == b\n"
MANY = "import random\ndef mean(n): return sum(random.random() for _ in range(n)) / n\n"
MANY_AGAIN = "import random\nfrom solution import mean\ndef test_a():\n    random.seed(0); a = mean(900_000); random.seed(0); b = mean(900_000)\n    assert a == b and 0 < random.uniform(0, 1) < 1\n"
NESTED = "import pickle\nfrom solution import dump\nclass Outer:\n    class Inner:\n        x = 1\ndef test_a(): assert type(pickle.loads(dump(Outer.Inner()))) is Outer.Inner\n"
DUMPS = (
    "import pickle\ndef dump(x):\n    return b'\\x80\\x04\\x8c\\x0dtest_solution\\x8c\\x0bOuter.Inner\\x93)\\x81.'\n"
)
MONEY = "from decimal import Decimal\nclass Money(Decimal): pass\ndef f(): return Money(3)\n"
OWN = "class Money:\n    def __init__(s, n): s.n = n\n    def __eq__(s, o): return s.n == o\n    def __mul__(s, o): return s.n * o\ndef f(): return Money(3)\n"
MONEYED = "from solution import f\ndef test_a(): assert f() == 3 and f() * 2 == 6\n"
ORDER = "def order(xs): xs.sort()\n"
ORDERED = "import random\nfrom solution import order\ndef test_a():\n    random.seed()\n    for _ in range(30):\n        xs = [random.randint(0, 2) for _ in range(3)]\n        ys = sorted(xs)\n        order(xs)\n        assert xs == ys\n"
HONEST = {
    "lists in another order than in the reference's run": ("def order(xs): xs[:] = sorted(xs)", ORDERED, ORDER),
    "torch seeded again": (NET, AGAIN, NET),
    "a solution that seeds": (SEEDS + "#", SEEDED, SEEDS),
    "more numbers than are looked through": (MANY + "#", MANY_AGAIN, MANY),
    "a nested class unpickled": (DUMPS, NESTED, ""),
    "own methods where the reference's content has them": (OWN, MONEYED, MONEY),
}


@pytest.mark.parametrize("name", HONEST)
def test_honest_solution_passes(verifier, name):
    code, suite, reference = HONEST[name]
    (verdict,) = judge_all(verifier, [(code, suite, {})], reference)
    assert verdict.outcome == "passed", verdict
