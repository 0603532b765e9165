"""Comments that suppress matches: `ast-grep run` does not read them, rules do."""

import pytest
from edit_arena import judge

RULE, RUN = {"rule": {"pattern": "f($A)"}, "fix": "g($A)"}, {"cli": "ast-grep run -p 'f($A)' -r 'g($A)' -l python"}
YAML = "language: python\nrule: {pattern: f($A)}\nfix: g($A)"
SCAN = {"cli": f"ast-grep scan --inline-rules '{YAML}'"}
NEXT, BEHIND = "# ast-grep-ignore\nf(1)\n", "f(1)  # ast-grep-ignore\nf(2)\n"
ONE, FILE = "# ast-grep-ignore: rule-1\nf(1)\n", "# ast-grep-ignore\n\nf(1)\nf(2)\n"
HONEST = [
    (RUN, NEXT, "# ast-grep-ignore\ng(1)\n", "python"),
    (RUN, BEHIND, "g(1)  # ast-grep-ignore\ng(2)\n", "python"),
    (RUN, ONE, "# ast-grep-ignore: rule-1\ng(1)\n", "python"),
    (RUN, FILE, "# ast-grep-ignore\n\ng(1)\ng(2)\n", "python"),
    ("sg -p 'f($A)' -r 'g($A)'", NEXT, "# ast-grep-ignore\ng(1)\n", "python"),
    ("ast-grep -k integer -r 2 -l py", NEXT, "# ast-grep-ignore\nf(2)\n", "python"),
    ({"cli": ["sg -p 'h($A)' -r 'f($A)'", "sg -p 'f($A)' -r 'g($A)'"]}, NEXT, "# ast-grep-ignore\ng(1)\n", "python"),
    ("sg -p 'f($A)' -r 'g($A, \"ast-grep-ignore\")'", NEXT, '# ast-grep-ignore\ng(1, "ast-grep-ignore")\n', "python"),
    ("sg -p 'let $A = $B' -r 'const $A = $B'", "// ast-grep-ignore\nlet a = 1;\n", "// ast-grep-ignore\nconst a = 1\n", "js"),
    (RULE, BEHIND, "f(1)  # ast-grep-ignore\ng(2)\n", "python"),
    (SCAN, BEHIND, "f(1)  # ast-grep-ignore\ng(2)\n", "python"),
]  # fmt: skip
WRONG = [
    (RUN, BEHIND, "f(1)  # ast-grep-ignore\ng(2)\n"),
    (RUN, FILE, "# ast-grep-ignore\n\nf(1)\ng(2)\n"),
    ({"cli": [RUN["cli"], "sg -p x -r y"]}, BEHIND, "f(1)  # ast-grep-ignore\ng(2)\n"),
    (RULE, NEXT, "# ast-grep-ignore\ng(1)\n"),
    (RULE, BEHIND, "g(1)  # ast-grep-ignore\ng(2)\n"),
    (SCAN, NEXT, "# ast-grep-ignore\ng(1)\n"),
    ({"rule_yaml": YAML}, NEXT, "# ast-grep-ignore\ng(1)\n"),
    ({"pattern": "f($A)", "rewrite": "g($A)"}, NEXT, "# ast-grep-ignore\ng(1)\n"),
    ([RUN, RULE], NEXT.replace("f", "h"), "# ast-grep-ignore\ng(1)\n"),
]


@pytest.mark.parametrize(("action", "before", "after", "language"), HONEST, ids=range(len(HONEST)))
@pytest.mark.parametrize("way", ["verifier", "by_tree"])
def test_matches_are_suppressed_as_by_the_program(request, way, action, before, after, language) -> None:
    assert judge(request.getfixturevalue(way), action, before, after, language).outcome == "passed"


@pytest.mark.parametrize(("action", "before", "after"), WRONG, ids=range(len(WRONG)))
def test_another_suppression_is_a_wrong_answer(verifier, action, before, after) -> None:
    verdict = judge(verifier, action, before, after)
    assert (verdict.outcome, verdict.bucket) == ("failed", "wrong_answer")


def test_equal_rules_of_both_runners_have_their_own_verdicts(verifier) -> None:
    wanted = "# ast-grep-ignore\ng(3)\n"
    found = [judge(verifier, action, NEXT.replace("1", "3"), wanted).outcome for action in (RULE, RUN, RULE)]
    assert found == ["failed", "passed", "failed"]
