"""The two engines that apply rules: where both can, they do the same; each takes its own rules; the meaning of a
pass."""

import json
from pathlib import Path

import pytest
from thinning import tries

pytest.importorskip("ast_grep_py")

from ast_grep_py import SgRoot
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rlvr_exp.domains.edits import harness as rewrites
from rlvr_exp.domains.edits.harness import digest
from rlvr_exp.domains.edits.schema import ENDINGS
from rlvr_exp.domains.edits.verifier import find_tools, pack
from rlvr_exp.sandbox import wire


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A candidate's current folder is private and writable."""
    monkeypatch.chdir(tmp_path)


def apply(
    text: str,
    *rules: dict,
    language: str = "python",
    engine: str = "auto",
    max_kb: int = 512,
    suppressible: bool = True,
) -> list:
    step = (language, ENDINGS[language], [json.dumps(rule) for rule in rules], suppressible)
    sent: list[bytes] = []
    rewrites.run(pack(text, [step], 1, "", find_tools().program, max_kb, engine), sent.append)
    return wire.decode(sent[0])


def both(text: str, rule: dict, language: str = "python") -> tuple[list, list]:
    inline, program = (apply(text, rule, language=language, engine=engine) for engine in ("inline", "program"))
    return inline, program


NESTED = "if a:\n    x = f(\n        1,\n        [2,\n         3])\n    f(f(0), f(9))\n"
AGREED = {
    "rename": ("python", NESTED, {"rule": {"pattern": "f($$$A)"}, "fix": "g($$$A)"}),
    "lines around": ("python", NESTED, {"rule": {"pattern": "f($$$A)"}, "fix": "g(\n  $$$A,\n    $$$A\n)"}),
    "by kind": ("python", NESTED, {"rule": {"kind": "list"}, "fix": "list()"}),
    "leaf": ("python", NESTED, {"rule": {"pattern": "f"}, "fix": "é𝒳"}),
    "deleted": ("python", NESTED, {"rule": {"kind": "integer", "regex": "[13]"}, "fix": ""}),
    "constrained": (
        "python",
        NESTED,
        {"rule": {"pattern": "f($A)"}, "constraints": {"A": {"regex": "0"}}, "fix": "$A"},
    ),
    "util": (
        "python",
        "x = f(1)\n",
        {"rule": {"kind": "call", "has": {"matches": "u"}}, "utils": {"u": {"kind": "argument_list"}}, "fix": "g"},
    ),
    "unicode": ("python", "é = '𝒳𝒳'; f(\n  é)\n", {"rule": {"pattern": "f($A)"}, "fix": "h($A,\n  $A)"}),
    "carriage returns": ("python", "f(\r\n  1,\r\n  2)\r\n", {"rule": {"pattern": "f($$$A)"}, "fix": "g($$$A)\n$$$A"}),
    "tabs": ("go", "func a() {\n\tb(1,\n\t\t2)\n}\n", {"rule": {"pattern": "b($$$A)"}, "fix": "c($$$A)"}),
    "long line": ("python", "x = [" + "1, " * 400 + "f(\n  1)]\n", {"rule": {"pattern": "f($A)"}, "fix": "g(\n $A)"}),
    "statement": (
        "javascript",
        "if (a) {\n  let b = {\n    c: 1 };\n}\n",
        {"rule": {"pattern": "let $A = $B;"}, "fix": "const $A = $B;"},
    ),
    "unmatched variable": (
        "python",
        "f(1)\n",
        {"rule": {"any": [{"pattern": "f($A)"}, {"pattern": "g($B)"}]}, "fix": "[$A, $B]"},
    ),
    "element": ("html", "<a>\n  <b>x</b>\n</a>\n", {"rule": {"pattern": "<b>$A</b>"}, "fix": "<c>$A</c>"}),
}


@pytest.mark.parametrize("name", AGREED)
def test_both_engines_make_the_same_text(name: str) -> None:
    language, text, rule = AGREED[name]
    inline, program = both(text, rule, language)
    assert inline[0] == "text"
    assert inline == program
    assert inline[1] != text


CALLS = st.recursive(
    st.sampled_from(["1", "x", "'é'", "f()", "f(\n      2)", "lambda: 0"]),
    lambda inner: (
        st.builds("{}({}{})".format, st.sampled_from(["f", "g"]), st.sampled_from(["", "\n  ", "\n        "]), inner)
        | st.builds("[{},\n   {}]".format, inner, inner)
    ),
    max_leaves=6,
)
TEXTS = st.lists(
    st.tuples(st.sampled_from(["", "if a:\n    x = ", "if a:\n  if b:\n    ", "é = 1; "]), CALLS), max_size=3
)
FIXES = st.lists(
    st.sampled_from(["$A", "$$$A", "h(", ")", "\n", "  ", "\n    ", "\r\n", "é", ", ", "\t"]), max_size=8
).map("".join)


@settings(max_examples=tries(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(TEXTS, FIXES, st.sampled_from(["f($A)", "f($$$A)", "[$$$A]", "x = $A"]))
def test_what_the_in_process_engine_takes_the_program_does_alike(parts: list, fix: str, pattern: str) -> None:
    text = "".join(f"{start}{call}\n" for start, call in parts)
    rule = {"rule": {"pattern": pattern}, "fix": fix}
    inline, program = both(text, rule)
    assert inline == program or inline[1] == "engine"


@pytest.mark.parametrize(
    "rule",
    [
        {"rule": {"pattern": "f($A)"}, "transform": {"B": {"substring": {"source": "$A"}}}, "fix": "$B"},
        {"rule": {"pattern": "f($A)"}, "fix": {"template": "g", "expandEnd": {"regex": ","}}},
        {"rule": {"pattern": "f($A)"}, "fix": "$$A"},
        {"rule": {"pattern": "f($A)"}, "fix": "$A$A"},
        {"rule": {"pattern": "f($A)"}, "fix": "$Ab"},
        {"rule": {"pattern": "f($A)"}, "fix": "$B"},
        {"rule": {"pattern": {"context": "f($A)", "strictness": "relaxed"}}, "fix": "$A"},
        {"rule": {"pattern": "a b c"}, "fix": "g"},
    ],
    ids=range(8),
)
def test_what_the_in_process_engine_may_do_otherwise_is_left_to_the_program(rule: dict) -> None:
    assert apply("f(1, 2,)\nf(3)\n", rule, engine="inline")[:2] == ["fault", "engine"]


def test_a_match_that_the_program_shortens_is_left_to_it() -> None:
    text, rule = "let x = 1;\n", {"rule": {"pattern": "let $A = $B"}, "fix": "const $A = $B"}
    assert apply(text, rule, language="javascript", engine="inline")[:2] == ["fault", "engine"]
    assert apply(text, rule, language="javascript") == apply(text, rule, language="javascript", engine="program")


def test_suppression_comments_are_heeded_as_the_program_does() -> None:
    text = "# ast-grep-ignore\nf(1)\nf(2)\n"
    rule = {"rule": {"pattern": "f($A)"}, "fix": "g($A)"}
    assert apply(text, rule)[1] == "# ast-grep-ignore\nf(1)\ng(2)\n"
    for engine in ("inline", "program"):
        assert apply(text, rule, engine=engine, suppressible=False)[1] == "# ast-grep-ignore\ng(1)\ng(2)\n"


def test_rules_of_one_step_see_the_same_text_and_the_outer_match_wins() -> None:
    rules = [{"rule": {"pattern": f"{name}($A)"}, "fix": f"{name.upper()}($A)"} for name in "fg"]
    assert apply("g(f(1))\nf(2)\n", *rules) == ["text", "G(f(1))\nF(2)\n", 2, ""]


@pytest.mark.parametrize("engine", ["inline", "program"])
def test_a_result_past_its_size_is_a_fault(engine: str) -> None:
    rule = {"rule": {"pattern": "f($A)"}, "fix": "$A, " * 40}
    assert apply(f"f({'x' * 100})\n", rule, engine=engine, max_kb=1)[:2] == ["fault", "output"]


def test_text_that_no_node_covers_counts() -> None:
    one, other = (digest(f"val a = 1{end}\nval b = 2\n", "kotlin") for end in (";", ""))
    assert one != other


@pytest.mark.parametrize("language", ENDINGS)
def test_the_program_takes_a_file_of_each_ending_for_its_language(language: str) -> None:
    text = "{}" if language == "json" else "x"
    root = SgRoot(text, language).root().kind()
    assert apply(text, {"rule": {"kind": root}, "fix": "y"}, language=language, engine="program")[1:3] == ["y", 1]


def test_characters_that_end_a_line_for_yaml_reach_the_program_as_they_are() -> None:
    rule = {"rule": {"pattern": "f($A)"}, "fix": "g('\x85\u2028\u2029\ufeff\U0001f600')"}
    assert apply("f(1)\n", rule, engine="program")[1] == "g('\x85\u2028\u2029\ufeff\U0001f600')\n"
