"""What is measured of an edit besides its verdict: how far its action came, and how near its text is."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thinning import tries

pytest.importorskip("ast_grep_py")

from rlvr_exp.config.verifier import Cache, Sandbox
from rlvr_exp.domains.edits import measures as measures_module
from rlvr_exp.domains.edits.measures import MOST_MORE, of_text
from rlvr_exp.domains.edits.problem import AstGrepProblem
from rlvr_exp.domains.edits.verifier import AstGrep
from rlvr_exp.tasks.base import Candidate
from rlvr_exp.verifiers.base import Request

BEFORE = "def f(x):\n    return x\n\ndef g(x):\n    return x\n"
AFTER = "def f(x):\n    return 1\n\ndef g(x):\n    return x\n"
INSIDE = {"kind": "function_definition", "has": {"field": "name", "regex": "^f$"}, "stopBy": "end"}
RIGHT = {"rule": {"pattern": "return x", "inside": INSIDE}, "fix": "return 1"}


def measures(verifier: AstGrep, given: object, **more: str) -> dict[str, float]:
    text = given if isinstance(given, str) else json.dumps(given)
    problem = AstGrepProblem("python", BEFORE, more.pop("after", AFTER), **more)
    return dict(verifier.submit(Request(problem, Candidate(text))).result(timeout=60).measures)


@pytest.mark.parametrize(
    ("answer", "steps"),
    [
        ("no action", (0, 0, 0)),
        ({"rule": {"pattern": "return x"}}, (1, 0, 0)),
        ({"rule": {"kind": "no_such_kind"}, "fix": "x"}, (1, 0, 0)),
        ({"pattern": "return y", "rewrite": "return 1"}, (1, 1, 0)),
        ({"pattern": "return x", "rewrite": "return 1"}, (1, 1, 1)),
        (RIGHT, (1, 1, 1)),
    ],
)
def test_how_far_an_action_comes(exact, answer, steps):
    found = measures(exact, answer)
    assert (found["parses"], found["valid"], found["applies"]) == steps
    assert found["exact"] == (answer == RIGHT)
    if steps != (1, 1, 1):
        assert found["similarity"] == 0.0 and "untouched" not in found


ENDLESS = {
    "rule": {"pattern": "f($A)"},
    "rewriters": [
        {
            "id": "r",
            "rule": {"pattern": "$X", "kind": "call"},
            "transform": {"Y": {"rewrite": {"source": "$X", "rewriters": ["r"]}}},
            "fix": "$Y",
        }
    ],
    "transform": {"B": {"rewrite": {"source": "$A", "rewriters": ["r"]}}},
    "fix": "$B",
}
GROWING = {"pattern": "return $X", "rewrite": "$X " * 20_000}


@pytest.mark.parametrize(
    ("action", "before", "reason"),
    [(ENDLESS, "f(f(1))\n", "runtime_error"), (GROWING, f"return {'x' * 100}\n", "output_limit")],
)
def test_an_action_with_which_ast_grep_comes_to_no_end_is_not_taken(exact, action, before, reason):
    problem = AstGrepProblem("python", before, "never\n", teacher=json.dumps({"pattern": "f", "rewrite": "g"}))
    verdict = exact.submit(Request(problem, Candidate(json.dumps(action)))).result(timeout=60)
    found = verdict.measures
    assert (verdict.reason, found["parses"], found["valid"], found["applies"]) == (reason, 1.0, 0.0, 0.0)
    assert found["string_similarity"] > 0


def test_a_definition_that_should_have_stayed_is_seen(exact):
    everywhere = measures(exact, {"pattern": "return x", "rewrite": "return 1"})
    assert everywhere["untouched"] == 0.0 and everywhere["same_syntax"] == 0.0 and 0.8 < everywhere["similarity"] < 1
    right = measures(exact, RIGHT)
    assert right["untouched"] == right["same_syntax"] == right["similarity"] == right["exact"] == 1.0


DEEP = "+".join(["1"] * 1024)
"""Python parses it, and whatever walks its tree by recursion ends in an error."""
LONG_NUMBER = "0x" + "f" * 8000


@pytest.mark.parametrize("value", [DEEP, LONG_NUMBER, "-" * 800 + "1"], ids=["sum", "number", "signs"])
def test_deep_trees_and_long_numbers_are_measured_as_others_are(exact, value):
    wanted = AFTER.replace("return 1", f"return {value}")
    spaced = wanted.replace("return ", "return  ")
    found = measures(exact, spaced, after=wanted, answer="text")
    assert (found["same_syntax"], found["untouched"], found["exact"]) == (1.0, 1.0, 0.0)
    assert measures(exact, wanted, answer="text")["same_syntax"] == 0.0


def test_rules_that_double_a_sum_end_no_run(exact):
    doubled = {"pattern": "return $X", "rewrite": f"return {'+'.join(['$X'] * 11)}"}
    found = measures(exact, [doubled] * 3)
    assert (found["applies"], found["same_syntax"], found["untouched"]) == (1.0, 0.0, 0.0)


def test_an_answer_far_longer_than_its_texts_is_not_parsed():
    longer, too_long = (AFTER + "#" * (MOST_MORE + more) for more in (0, len(BEFORE) + len(AFTER)))
    found = of_text(BEFORE, AFTER, longer, "python")
    assert (found["same_syntax"], found["untouched"]) == (1.0, 1.0)
    found = of_text(BEFORE, AFTER, too_long, "python")
    assert (found["same_syntax"], found["untouched"]) == (0.0, 0.0)


def test_likeness_of_long_texts_is_exact_but_for_long_differences_and_never_too_much(monkeypatch):
    after = "".join(f"f({number})\n" for number in range(300))
    texts = {
        "equal": after,
        "longer": after + "g()\n",
        "other end": after[:-3] + "x)\n",
        "other start": "g" + after[1:],
        "other": "h" * 2000,
        "": "",
    }
    whole = {name: of_text("", after, text, "go")["similarity"] for name, text in texts.items()}
    monkeypatch.setattr(measures_module, "MOST_PAIRS", 1000)
    monkeypatch.setattr(measures_module, "MOST_APART", 100)
    bounded = {name: of_text("", after, text, "go")["similarity"] for name, text in texts.items()}
    for name in texts:
        assert 0 <= bounded[name] <= whole[name] + 1e-9, name
    for name in ("equal", "longer", "other end", "other start", ""):
        assert bounded[name] == pytest.approx(whole[name]), name


def test_of_a_text_there_are_no_steps(exact):
    found = measures(exact, AFTER.replace("return 1", "return  1"), answer="text")
    assert found["same_syntax"] == 1.0 and found["exact"] == 0.0 and "parses" not in found


def test_where_the_wanted_text_is_unknown_only_steps_are_measured(exact):
    tests = "from solution import f\n\ndef test_f():\n    assert f(2) == 1\n"
    assert measures(exact, RIGHT, after="", tests=tests) == {
        "parses": 1.0,
        "valid": 1.0,
        "applies": 1.0,
        "rules": 1.0,
    }


@pytest.mark.parametrize(
    ("answer", "rules"),
    [
        ([RIGHT, {"pattern": "nothing_here", "rewrite": "x"}], 2),
        ({"rule": {"pattern": "return x"}}, 1),
        ({"pattern": "return y", "rewrite": "return 1"}, 1),
        ("no action", None),
    ],
)
def test_the_rules_of_an_action_are_counted_whatever_comes_of_them(exact, answer, rules):
    assert measures(exact, answer).get("rules") == rules


def test_measures_come_back_from_the_cache(tmp_path):
    problem = AstGrepProblem("python", BEFORE, AFTER)
    found = []
    for _ in range(2):
        with AstGrep(Sandbox(workers=1), Cache(enabled=True, path=str(tmp_path))) as one:
            found.append(one.submit(Request(problem, Candidate(json.dumps(RIGHT)))).result(timeout=60))
    assert found[0].measures == found[1].measures != {} and found[1].cached


@settings(max_examples=tries(60))
@given(text=st.text(max_size=40), language=st.sampled_from(["python", "go"]))
def test_measures_of_any_text_are_shares(text, language):
    found = of_text(BEFORE, AFTER, text, language)
    assert all(0 <= value <= 1 for value in found.values())
    assert of_text(BEFORE, AFTER, AFTER, language)["exact"] == 1.0
    assert ("untouched" in found) == (language == "python")
