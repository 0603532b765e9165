"""Rules derived from the trees before and after: what they are on typical edits, and that ast-grep makes the text after by them."""

import json
import re
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shipped import Shipped
from thinning import thinned, tries

pytest.importorskip("ast_grep_py")

from rlvr_exp.domains.edits.normalize import TOO_LONG, Dropped
from rlvr_exp.domains.edits.problem import AstGrepProblem
from rlvr_exp.domains.edits.rules import AMBIGUOUS, LARGE, MANY_CHANGES, MANY_RULES, Search
from rlvr_exp.domains.edits.tasks import EMBEDDED
from rlvr_exp.domains.edits.trees import applied, hunks_of, is_part, parse
from rlvr_exp.tasks.base import Candidate
from rlvr_exp.verifiers.base import Request

ROWS = Shipped(EMBEDDED).rows
LIMITS = (1000, 0.5)
"""Characters of a rule, and the share of the text that the rules may repeat."""
OTHER = """

def largest_of(records, default):
    best = default
    for record in records:
        best = max(best, record.size)
    return best
"""
CALLS = (
    "def load(path, mode):\n    data = read(path, mode)\n    check(data)\n    print(data)\n    return parse(data)\n"
    + OTHER
)
IMPORTS = "import os\nimport json\nimport sys\n\nprint(os.getcwd(), json, sys)\n" + OTHER


def derived(verifier, before, after, language="python", limits=LIMITS):
    return Search(*limits, verifier.edited_text).rules(before, after, language)


def outcome(verifier, before, after, rules, language="python"):
    problem = AstGrepProblem(language, before, after)
    return verifier.submit(Request(problem, Candidate(json.dumps(rules)))).result(timeout=120).outcome


def replaced(text, old, new):
    assert text.count(old) == 1
    return text.replace(old, new)


EDITS = {
    "a comparison": (CALLS + "x = a == None\n", "a == None", "a is None", [{"pattern": "$A == None", "rewrite": "$A is None"}]),
    "an argument more": (CALLS, "read(path, mode)", "read(path, mode, 'utf-8')", [{"pattern": "read($$$A)", "rewrite": "read($$$A, 'utf-8')"}]),
    "arguments swapped": (CALLS, "read(path, mode)", "read(mode, path)", [{"pattern": "read($A, $B)", "rewrite": "read($B, $A)"}]),
    "a wrapped call": (CALLS, "read(path, mode)", "str(read(path, mode))", [{"pattern": "read($$$A)", "rewrite": "str(read($$$A))"}]),
    "another text": (CALLS + "say('hello')\n", "'hello'", "'good day'", [{"pattern": "'hello'", "rewrite": "'good day'"}]),
    "a statement before": (CALLS, "    check(data)\n", "    log(data)\n    check(data)\n", [{"pattern": "check($$$A)", "rewrite": "log($$$A)\ncheck($$$A)"}]),
    "a decorator": (CALLS, "def load(path", "@cache\ndef load(path", [{"pattern": "def load($$$A):\n    $$$B", "rewrite": "@cache\ndef load($$$A):\n    $$$B"}]),
    "an import more": (IMPORTS, "import json\n", "import json\nimport re\n", [{"pattern": "import sys", "rewrite": "import re\nimport sys"}]),
    "an import less": (IMPORTS, "import json\n", "", [{"rule": {"pattern": "import os"}, "fix": {"template": "import os", "expandEnd": {"pattern": "import json"}}}]),
    "a body in a block": (
        CALLS,
        "    for record in records:\n        best = max(best, record.size)\n    return best\n",
        "    with lock:\n        for record in records:\n            best = max(best, record.size)\n        return best\n",
        None,
    ),
    "a method more": (
        "class Store:\n    def get(self, key):\n        return self.items[key]\n\n    def drop(self, key):\n        self.items.pop(key)\n" + OTHER,
        "        return self.items[key]\n",
        "        return self.items[key]\n\n    def size(self):\n        return len(self.items)\n",
        None,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", thinned(EDITS))
def test_a_typical_edit_has_small_rules_that_make_it(exact, name):
    before, old, new, wanted = EDITS[name]
    after = replaced(before, old, new)
    rules = derived(exact, before, after)
    assert outcome(exact, before, after, rules) == "passed"
    assert wanted is None or rules == wanted
    assert len(rules) == 1 and len(json.dumps(rules)) < 400


def test_a_name_that_changes_everywhere_is_one_rule(exact):
    after = CALLS.replace("data", "content")
    assert derived(exact, CALLS, after) == [{"pattern": "data", "rewrite": "content"}]


def test_a_name_that_changes_in_one_function_is_named_inside_it(exact):
    before = CALLS + "\n\ndef store(data):\n    send(data)\n    check(data)\n    return data\n"
    head, tail = before.split("def store")
    after = head + "def store" + tail.replace("data", "content")
    rules = derived(exact, before, after)
    assert len(rules) == 1 and "store" in json.dumps(rules[0]["rule"]["inside"])
    assert outcome(exact, before, after, rules) == "passed"


def test_edits_in_three_places_are_three_rules_in_order(exact):
    after = CALLS.replace("check(data)", "validate(data)").replace("parse(data)", "decode(data)")
    after = after.replace("record.size", "record.length")
    rules = derived(exact, CALLS, after)
    assert len(rules) == 3 and outcome(exact, CALLS, after, rules) == "passed"
    assert outcome(exact, CALLS, after, rules[:2]) == "failed"


@pytest.mark.parametrize(
    ("language", "before", "after"),
    [
        ("javascript", "function f(a) {\n  var b = a;\n  return g(b);\n}\nf(1);\n", "function f(a) {\n  const b = a;\n  return g(b);\n}\nf(1);\n"),
        ("tsx", 'const A = () => <p class="x">{foo(1)}</p>;\nexport default A;\n', 'const A = () => <p className="x">{foo(1)}</p>;\nexport default A;\n'),
        ("rust", "fn f(x: &Vec<u8>) -> usize {\n    log(x);\n    x.len()\n}\n", "fn f(x: &[u8]) -> usize {\n    log(x);\n    x.len()\n}\n"),
        ("go", "package a\n\nfunc f(x int) int {\n\tlog(x)\n\treturn x + 1\n}\n", "package a\n\nfunc f(x int) int {\n\tprint(x)\n\treturn x + 1\n}\n"),
        ("java", "class A {\n    int f(int x) {\n        log(x);\n        return x;\n    }\n}\n", "class A {\n    int f(int x) {\n        log(x, 1);\n        return x;\n    }\n}\n"),
        ("ruby", "def f(a)\n  puts a\n  a.size\nend\n\nputs f([1])\n", "def f(a)\n  puts a\n  a.length\nend\n\nputs f([1])\n"),
        ("php", "<?php\nfunction f($a, $b) {\n    return $a + $b;\n}\necho f(1, 2);\n", "<?php\nfunction f($a, $b) {\n    return $a - $b;\n}\necho f(1, 2);\n"),
        ("bash", 'set -e\nfoo=$(ls)\necho "$foo"\nexit 0\n', 'set -e\nfoo=$(ls -a)\necho "$foo"\nexit 0\n'),
        ("css", "a { color: red; }\nb { margin: 0; }\n", "a { color: green; }\nb { margin: 0; }\n"),
        ("json", '{"a": 1, "b": [2, 3], "name": "some"}\n', '{"a": 5, "b": [2, 3], "name": "some"}\n'),
        ("haskell", "f x = x + 1\n\ng y = f y\n\nmain = print (g 2)\n", "f x = x + 1\n\ng y = f (f y)\n\nmain = print (g 2)\n"),
    ],
)  # fmt: skip
def test_other_languages(exact, language, before, after):
    assert outcome(exact, before, after, derived(exact, before, after, language), language) == "passed"


STEPS = "".join(
    f'    value_{at} = compute("a text that is rather long, number {at}", {at}{at})\n' for at in range(1, 5)
)
STEPS = f"def steps():\n    begin()\n{STEPS}    return end()\n{OTHER}"


def test_many_small_edits_in_one_place_are_one_larger_rule(exact):
    after = STEPS
    for at in range(1, 5):
        after = replaced(after, f", {at}{at})", f", {at + 1}{at})")
    rules = derived(exact, STEPS, after)
    assert len(rules) <= 3 and outcome(exact, STEPS, after, rules) == "passed"


def test_no_rule_splices_text_across_the_syntax(exact):
    before = CALLS + "check(unique)\n"
    rules = derived(exact, before, before.replace("check(unique)", "check(unique, 5)"))
    assert rules == [{"pattern": "check(unique)", "rewrite": "check(unique, 5)"}]


@pytest.mark.parametrize(
    ("text", "part", "expected"),
    [
        ("f(a, b)\nx = 1\ny = 2\n", "a, b", False),
        ("f(a, b)\nx = 1\ny = 2\n", "(a, b)", True),
        ("f(a, b)\nx = 1\ny = 2\n", "a", True),
        ("f(a, b)\nx = 1\ny = 2\n", "x = 1\ny = 2", True),
        ("f(a, b)\nx = 1\ny = 2\n", "1\ny", False),
        ("if a:\n    b()\n    c()\n", "b()\n    c()", True),
        ("f(long)\n", "lo", False),
    ],
)
def test_a_part_of_a_tree_is_a_node_or_statements_in_a_row(text, part, expected):
    start = text.index(part)
    assert is_part(parse(text, "python"), (start, start + len(part))) == expected


def test_a_statement_between_others_is_placed_by_the_next_one(exact):
    methods = [f"    def method_{at}(self):\n        self.count += {at}\n        return {at}" for at in range(6)]
    new = "    def added(self):\n        self.count = 0\n\n        return 'added'"
    before, after = (
        "class Store:\n    count = 0\n\n" + "\n\n".join(lines) + "\n" + OTHER
        for lines in (methods, [*methods[:3], new, *methods[3:]])
    )
    [rule] = derived(exact, before, after)
    assert "def method_3" in rule["pattern"] and rule["pattern"].count("def ") == 1
    assert outcome(exact, before, after, [rule]) == "passed"


def test_a_variable_of_a_pattern_is_used_in_the_rewrite(exact):
    before = CALLS + "call(item, size(item))\n"
    [rule] = derived(exact, before, before.replace("call(item, size(item))", "call(size(item))"))
    assert set(re.findall(r"\$[A-Z]", rule["pattern"])) <= set(re.findall(r"\$[A-Z]", rule["rewrite"]))


FAR = "\n".join(f"name_{at} = call_{at}(other_{at})" for at in range(80)) + "\n"


@pytest.mark.parametrize(
    ("before", "after", "limits", "reason"),
    [
        (FAR, FAR.replace("other_1", "another_1").replace("name_2 ", "n_2 ").replace("call_3(", "c_3(").replace("other_77", "x"), LIMITS, MANY_RULES),
        (FAR, FAR.replace(" = ", "="), LIMITS, MANY_CHANGES),
        (FAR, FAR.replace("name_7 ", "n_7 "), (5, 0.5), LARGE),
        (FAR, FAR.replace("name_7 ", "n_7 "), (1000, 0.001), LARGE),
        (FAR, FAR + "\n", LIMITS, AMBIGUOUS),
        (FAR * 60, FAR * 60 + "x = 1\n", LIMITS, TOO_LONG),
    ],
)  # fmt: skip
def test_an_edit_without_rules_has_a_reason(exact, before, after, limits, reason):
    with pytest.raises(Dropped) as fault:
        derived(exact, before, after, limits=limits)
    assert fault.value.reason == reason


def test_no_rule_repeats_the_text_that_it_edits(exact):
    before = "x = f(1)\n"
    with pytest.raises(Dropped, match=LARGE):
        derived(exact, before, "y = g(2, 3)\n")


def edited(draw, text):
    """The text with up to three lines or names changed at random."""
    lines = text.split("\n")
    for _ in range(draw.randint(1, 3)):
        at = draw.randrange(len(lines))
        change = draw.choice(("delete", "copy", "name", "swap", "blank"))
        if change == "delete":
            del lines[at]
        elif change == "copy":
            lines.insert(at, lines[at])
        elif change == "swap" and at:
            lines[at - 1], lines[at] = lines[at], lines[at - 1]
        elif change == "blank":
            lines.insert(at, "")
        elif words := [word for word in lines[at].split(" ") if word.isidentifier()]:
            lines[at] = lines[at].replace(draw.choice(words), "other_name")
        if not lines:
            return text
    return "\n".join(lines)


PROGRAMS = st.tuples(st.deferred(lambda: st.sampled_from(ROWS("dev"))), st.randoms(use_true_random=False))


@settings(max_examples=tries(80), deadline=None)
@given(PROGRAMS)
def test_hunks_make_the_text_after(drawn):
    row, draw = drawn
    before = row["before"]
    after = edited(draw, before)
    hunks = hunks_of(before, after, (parse(before, "python"), parse(after, "python")))
    assert applied(before, hunks) == after
    assert all(one.end <= other.start for one, other in pairwise(hunks))
    for hunk in hunks:
        for start, end in hunk.places(before):
            moved = before[:start] + applied(before, [hunk])[start : start + len(hunk.text)] + before[end:]
            assert moved == applied(before, [hunk])


@settings(max_examples=tries(60), deadline=None)
@given(PROGRAMS)
def test_ast_grep_makes_the_text_after_by_what_is_derived(exact, drawn):
    row, draw = drawn
    before, after = row["before"], draw.choice((row["after"], edited(draw, row["before"])))
    if after in (before, ""):
        return
    try:
        rules = derived(exact, before, after)
    except Dropped:
        return
    assert 1 <= len(rules) <= 3 and outcome(exact, before, after, rules) == "passed"


def test_most_edits_of_the_embedded_families_have_rules(exact):
    single = [row for row in ROWS("test_unseen") if row["family"] not in ("two_edits", "three_edits")][:42]
    found = 0
    for row in single:
        try:
            found += bool(derived(exact, row["before"], row["after"]))
        except Dropped:
            continue
    assert found >= 0.9 * len(single)


def test_equal_code_derives_equal_rules(exact):
    row = next(row for row in ROWS("dev") if row["family"] == "add_parameter")
    one, two = (derived(exact, row["before"], row["after"]) for _ in range(2))
    assert one == two
