"""Edits that tests judge: what they do beside the edit, which no test sees. And honest edits of other forms."""

import json
from collections.abc import Iterator

import pytest
from edit_arena import PATIENCE_S, make

from rlvr_exp.domains.edits.problem import AstGrepProblem
from rlvr_exp.domains.edits.verifier import AstGrep
from rlvr_exp.tasks.base import Candidate
from rlvr_exp.verifiers.base import Request, Verdict

BEFORE = """\
def compare_event(goal, low):
    return goal - low

def get_items(row, step):
    col = step - row
    return col

class Box:
    def size(self):
        return 1
"""
AFTER = BEFORE.replace("return goal - low", "return abs(goal - low)")
TESTS = "from solution import *\n\n\ndef test_edit():\n    assert compare_event(1, 3) == 2\n"
HEAD, _, REST = AFTER.partition("\n\n")


@pytest.fixture(scope="module")
def of_wanted() -> Iterator[AstGrep]:
    with make(untouched="wanted") as verifier:
        yield verifier


@pytest.fixture(scope="module")
def of_none() -> Iterator[AstGrep]:
    with make(untouched="never") as verifier:
        yield verifier


def judged(verifier: AstGrep, answer: object, proved: bool = True, after: str = AFTER) -> Verdict:
    """`answer`: an edited text, or an action as a value."""
    form, text = ("text", answer) if isinstance(answer, str) else ("action", json.dumps(answer))
    problem = AstGrepProblem("python", BEFORE, after, TESTS, answer=form, proved=proved)
    return verifier.submit(Request(problem, Candidate(text))).result(timeout=PATIENCE_S)


def replaced_by(text: str) -> dict:
    return {"rule": {"kind": "module"}, "fix": text}


BESIDE = {
    "every return": {"pattern": "return $X", "rewrite": "return abs($X)"},
    "all else is gone": replaced_by(HEAD),
    "all else is gone, as a text": f"{HEAD}\n",
    "one function is gone": AFTER.replace(AFTER[AFTER.index("def get_items") : AFTER.index("class")], ""),
    "a class is gone": AFTER[: AFTER.index("class")],
    "another body": AFTER.replace("step - row", "row - step"),
    "no body": AFTER.replace("    col = step - row\n    return col", "    pass"),
    "another name": AFTER.replace("get_items", "take_items"),
    "another default": AFTER.replace("row, step", "row, step=1"),
    "a decorator": AFTER.replace("def get_items", "@staticmethod\ndef get_items"),
    "another method": AFTER.replace("return 1", "return 2"),
    "defined again": f"{AFTER}\ndef get_items(row, step):\n    return 0\n",
    "defined again in a branch": f"{AFTER}\nif True:\n    def get_items(row, step):\n        return 0\n",
    "bound again": f"{AFTER}\nget_items = compare_event\n",
    "bound again in a loop": f"{AFTER}\nfor get_items in ():\n    pass\n",
    "imported over": f"{AFTER}\nfrom math import fabs as get_items\n",
    "bound by an exception": f"{AFTER}\ntry:\n    1 / 0\nexcept ZeroDivisionError as get_items:\n    pass\n",
    "bound by a case": f"{AFTER}\nmatch 1:\n    case get_items:\n        pass\n",
    "bound by the rest of a case": f"{AFTER}\nmatch [1]:\n    case [*get_items]:\n        pass\n",
    "deleted": f"{AFTER}\ndel get_items\n",
    "defined in a branch that is not taken": f"{HEAD}\n\nif False:\n"
    + REST.replace("\n", "\n    ").join(("    ", "\n")),
    "inside another function": f"{HEAD}\n\ndef f():\n    " + REST.replace("\n", "\n    ") + "\n",
}


@pytest.mark.parametrize("name", BESIDE)
def test_what_the_edit_leaves_as_it_is_has_to_stay_unless_tests_alone_decide(
    verifier: AstGrep, of_wanted: AstGrep, of_none: AstGrep, name: str
) -> None:
    for one, proved in ((verifier, True), (of_wanted, False)):
        verdict = judged(one, BESIDE[name], proved)
        assert (verdict.outcome, verdict.bucket, verdict.score) == ("failed", "wrong_answer", 0.0), verdict
        assert "the tests hold" in verdict.log and 0 <= verdict.measures["untouched"] < 1
    assert judged(verifier, BESIDE[name], proved=False).outcome == "passed", "tests alone are asked for"
    assert judged(of_none, BESIDE[name], proved=True).outcome == "passed"


def test_without_a_wanted_text_tests_decide(of_wanted: AstGrep) -> None:
    assert judged(of_wanted, BESIDE["another body"], proved=False, after="").outcome == "passed"


HONEST = {
    "one function": {"rule": {"pattern": "goal - low"}, "fix": "abs(goal - low)"},
    "as a whole": replaced_by(AFTER),
    "in other words": AFTER.replace("    return abs(goal - low)", "    d = goal - low\n    return d if d >= 0 else -d"),
    "layout and comments beside": AFTER.replace("col = step - row", "col = (step  -\n           row)  # how far"),
    "in another order": f"{REST}\n\n{HEAD}\n",
    "a helper more": f"def far(a):\n    return abs(a)\n\n{AFTER}".replace("abs(goal", "far(goal"),
    "an import more": f"import math\n\n{AFTER}".replace("abs(goal", "math.fabs(goal"),
    "a constant more": f"SIGN = -1\n\n{AFTER}".replace("abs(goal - low)", "max(goal - low, SIGN * (goal - low))"),
    "an alias more": f"{AFTER}\nitems = get_items\n",
    "the name in a comprehension": f"{AFTER}\nx = [get_items for get_items in (1, 2)]\n",
    "the name inside a lambda": f"{AFTER}\nx = lambda get_items: get_items\n",
    "the name as a local": f"{AFTER}\nif True:\n    def far(a):\n        get_items = a\n        return get_items\n",
}


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_edit_of_another_form_passes(verifier: AstGrep, of_wanted: AstGrep, name: str) -> None:
    for one, proved in ((verifier, True), (of_wanted, False)):
        verdict = judged(one, HONEST[name], proved)
        assert verdict.outcome == "passed", verdict
