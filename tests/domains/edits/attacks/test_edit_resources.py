"""Expensive actions: texts that expand, rules that search for ever, results that explode, rules that never
terminate."""

import json
import time

import pytest
from edit_arena import judge, nested, rename

CONTAINED = {"timeout", "memory", "output_limit", "runtime_error", "resolve", "parse", "wrong_answer"}
LAUGHS = "\n".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9) if i else 'x'}]" for i in range(12))
BOMBS = {
    "aliases": "rule: {pattern: x}\nfix: y\nmetadata:\n  " + LAUGHS.replace("\n", "\n  "),
    "alias to itself": "rule: &a {not: *a}\nfix: y",
    "merge": "rule: &a {kind: x, <<: *a}\nfix: y",
    "deep sequences": "rule: " + "[" * 30_000,
    "deep mappings": "rule: " + "{a: " * 10_000,
    "deep blocks": "- " * 20_000,
    "deep keys": "? " * 20_000,
    "deep json": '{"rule": ' + "[" * 30_000,
    "closed deep json": '{"rule": ' + "[" * 20_000 + "]" * 20_000 + "}",
    "wide": json.dumps(rename(metadata={"x": [0] * 20_000})),
    "many documents": "---\nrule: {kind: call}\nfix: x\n" * 2_000,
    "long": "#" * 200_000,
    "long after decoding": json.dumps(rename(note="x" * 100_000)),
    "huge number": json.dumps(rename())[:-1] + ', "note": 1' + "0" * 20_000 + "}",
    "infinite number": json.dumps(rename())[:-1] + ', "note": 1e999}',
    "many anchors": "rule: {kind: call}\nfix: x\nmetadata: [" + ", ".join(f"&a{i} x" for i in range(6_000)) + "]",
    "one key twice among many": json.dumps({f"{i:x}": 1 for i in range(5500)}, separators=(",", ":"))[:-1]
    + ',"157b":1}',
    "quotes": "rule: '" + "'" * 60_000,
    "words": "ast-grep run " + "x " * 30_000,
    "nested yaml in yaml": json.dumps({"rule_yaml": ["[" * 200] * 200}),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_text_costs_little_before_it_is_refused(verifier, name: str) -> None:
    started = time.thread_time()
    verdict = judge(verifier, BOMBS[name])
    assert verdict.outcome in ("failed", "rejected"), verdict
    assert time.thread_time() - started < 1.0
    assert len(verdict.log) < 1000


@pytest.mark.parametrize("name", ["aliases", "alias to itself", "merge"])
def test_aliases_that_unfold_without_bound_are_a_cheat(verifier, name: str) -> None:
    assert judge(verifier, BOMBS[name]).rule == "yaml-bomb"


PARENTHESES = "x = " + "(" * 3000 + "1" + ")" * 3000 + "\n"
CHAIN = {"pattern": "y"}
for _ in range(4):
    CHAIN = {"inside": {"kind": "parenthesized_expression", "stopBy": "end", **CHAIN}}
CALLS = "f(1, 2, 3)\n" * 3000
COSTLY = {
    "ancestors of ancestors": ({"rule": {"kind": "parenthesized_expression", **CHAIN}, "fix": "1"}, PARENTHESES),
    "descendants of siblings": (
        {
            "rule": {
                "kind": "expression_statement",
                "follows": {"stopBy": "end", "kind": "expression_statement", "has": {"stopBy": "end", "regex": "z"}},
            },
            "fix": "1",
        },
        CALLS,
    ),
    "many alternatives": ({"rule": {"any": [{"pattern": f"f($A, $B, q{i})"} for i in range(1200)]}, "fix": "1"}, CALLS),
    "many constraints": (rename(constraints={f"A{i}": {"regex": "(x+x+)+y"} for i in range(800)}), CALLS),
    "ellipses": (
        {"pattern": "f(" + ", ".join(f"$$$A{i}, b" for i in range(40)) + ", z)", "rewrite": "1"},
        "f(" + "b, " * 4000 + ")\n",
    ),
    "regex of many sizes": ({"rule": {"kind": "call", "regex": "((a{900}){900}){900}"}, "fix": "1"}, CALLS),
    "regex that backtracks elsewhere": (
        {"rule": {"kind": "call", "regex": "(f|f.*)*(.*)*z$"}, "fix": "1"},
        "f('" + "f" * 90_000 + "')\n",
    ),
    "regex class of all": ({"rule": {"kind": "call", "regex": r"(\w{0,300}\d{0,300}){0,30}z"}, "fix": "1"}, CALLS),
    "sum of a thousand terms": ({"pattern": "f($A, $$$)", "rewrite": "+".join(["1"] * 1024)}, "f(1, 2)\n"),
    "number of sixty thousand digits": ({"pattern": "f($A, $$$)", "rewrite": "0x" + "f" * 60_000}, "f(1, 2)\n"),
    "deepest rule": ({"rule": nested("not", 42), "fix": "1"}, PARENTHESES),
    "nth of nth": (
        {
            "rule": {
                "kind": "call",
                "nthChild": {"position": "n", "ofRule": {"nthChild": {"position": "n", "ofRule": {"kind": "call"}}}},
            },
            "fix": "1",
        },
        CALLS,
    ),
    "far range": (
        {"rule": {"range": {"start": {"line": 0, "column": 0}, "end": {"line": 2**62, "column": 2**62}}}, "fix": "1"},
        CALLS,
    ),
    "template of many variables": ({"pattern": "f($A)", "rewrite": "$A " * 20_000}, "f('" + "x" * 50_000 + "')\n"),
    "template in many places": ({"pattern": "f($A, $$$)", "rewrite": "$A " * 15_000}, CALLS),
    "text that doubles": (
        rename(
            transform={
                f"B{i}": {
                    "replace": {"source": f"$B{i - 1}" if i else "$A", "replace": "(?<X>.+)", "by": "$X$X$X$X$X$X$X$X"}
                }
                for i in range(12)
            },
            fix="$B11",
        ),
        "f(xxxxxxxx)\n",
    ),
    "regex over a long text": (
        rename(transform={"B": {"replace": {"source": "$A", "replace": "x*", "by": "y" * 9_000}}}, fix="$B"),
        "f('" + "z" * 100_000 + "')\n",
    ),
    "rewriter of itself": (
        rename(
            rewriters=[
                {
                    "id": "r",
                    "rule": {"pattern": "f($X)"},
                    "transform": {"Y": {"rewrite": {"source": "$X", "rewriters": ["r"]}}},
                    "fix": "$Y $Y $Y $Y",
                }
            ],
            transform={"B": {"rewrite": {"source": "$A", "rewriters": ["r"]}}},
            fix="$B",
        ),
        "x = " + "f(" * 60 + "1" + ")" * 60 + "\n",
    ),
    "rewriter without an end": (
        rename(
            rewriters=[
                {
                    "id": "r",
                    "rule": {"pattern": "$X", "kind": "call"},
                    "transform": {"Y": {"rewrite": {"source": "$X", "rewriters": ["r"]}}},
                    "fix": "$Y",
                }
            ],
            transform={"B": {"rewrite": {"source": "$A", "rewriters": ["r"]}}},
            fix="$B",
        ),
        "f(f(1))\n",
    ),
    "utility of itself": (
        {"rule": {"matches": "a"}, "utils": {"a": {"matches": "b"}, "b": {"any": [{"matches": "a"}]}}, "fix": "1"},
        CALLS,
    ),
    "utility by relation": (
        {
            "rule": {"kind": "call", "matches": "a"},
            "utils": {"a": {"has": {"matches": "a", "stopBy": "end"}}},
            "fix": "1",
        },
        CALLS,
    ),
    "transformation of itself": (
        rename(transform={"B": {"substring": {"source": "$C"}}, "C": {"substring": {"source": "$B"}}}, fix="$B"),
        CALLS,
    ),
    "substring beyond all": (
        rename(
            transform={"B": {"substring": {"source": "$A", "startChar": -(2**31), "endChar": 2**31 - 1}}}, fix="$B$B"
        ),
        CALLS,
    ),
}


@pytest.mark.parametrize("name", COSTLY)
def test_a_costly_rule_is_contained(verifier, honest_after, name: str) -> None:
    action, before = COSTLY[name]
    verdict = judge(verifier, action, before, "never\n")
    assert verdict.outcome == "failed", verdict
    assert verdict.bucket in CONTAINED
    assert verdict.seconds < 5.0
    assert len(verdict.log) < 1000


LOOPS = {
    "growth": {"pattern": "f($A)", "rewrite": "f(f($A))"},
    "oscillation": {"rule": [[rename(), {"rule": {"pattern": "g($A)"}, "fix": "f($A)"}]]},
    "long oscillation": {
        "rule": [[{"rule": {"pattern": f"{a}($A)"}, "fix": f"{b}($A)"} for a, b in ("fg", "gh", "hi", "ij", "jf")]]
    },
    "explosion": {"pattern": "f($A)", "rewrite": "[" + "f($A), " * 64 + "]"},
    "endless counting": {"rule": {"kind": "integer"}, "fix": "11", "transform": {"B": {"substring": {"source": "$A"}}}},
    "other blanks": {"pattern": "f($$$A)", "rewrite": "f( $$$A )\n"},
}


@pytest.mark.parametrize("name", LOOPS)
def test_rules_that_never_settle_are_stopped(repeated, name: str) -> None:
    verdict = judge(repeated, LOOPS[name])
    assert verdict.outcome == "failed", verdict
    assert verdict.bucket in ("runtime_error", "output_limit", "timeout", "memory", "resolve", "wrong_answer")
