"""The action schema: every form has a normal form, and a faulty action's fault is named."""

import json

import pytest

from rlvr_exp.domains.edits.action import MAX_RULES, Action, EditRule, parse_action
from rlvr_exp.domains.edits.schema import ENDINGS, LANGUAGES, ActionFault

RENAME = Action(((EditRule("python", '{"fix":"g($A)","rule":{"pattern":"f($A)"}}'),),))
YAML = "id: rename\nlanguage: Python\nmessage: use g\nseverity: warning\nrule:\n  pattern: f($A)\nfix: g($A)\n"
SAME = [
    {"pattern": "f($A)", "rewrite": "g($A)"},
    {"pattern": "f($A)", "fix": "g($A)", "language": "py"},
    {"pattern": "f($A)", "rewrite": "g($A)", "strictness": "smart", "selector": None},
    {"rule_yaml": YAML},
    {"rule_yaml": {"rule": {"pattern": "f($A)"}, "fix": "g($A)"}},
    {"rule": {"pattern": "f($A)"}, "fix": "g($A)"},
    {"rule": {"pattern": "f($A)"}, "fix": {"template": "g($A)"}, "constraints": {}, "files": ["src/**/*.py"]},
    {"rule": {"rule": {"pattern": {"context": "f($A)", "strictness": "smart"}}, "fix": "g($A)", "utils": None}},
    {"rule": [{"rule": {"pattern": "f($A)"}, "fix": [{"template": "g($A)", "title": "use g"}]}]},
    {"cli": "ast-grep run -p 'f($A)' -r 'g($A)' -l python"},
    {"cli": "ast-grep run --pattern='f($A)' --rewrite='g($A)' --lang=Py -U ."},
    {"cli": "sg -pf\\(\\$A\\) -r 'g($A)' --update-all", "language": "PYTHON"},
    {"cli": "ast-grep \\\n  --pattern 'f($A)' \\\n  --rewrite 'g($A)'"},
    {"cli": "ast-grep scan -U --inline-rules '{language: py, rule: {pattern: f($A)}, fix: g($A)}'"},
]


@pytest.mark.parametrize("given", SAME, ids=range(len(SAME)))
def test_one_edit_written_in_any_form_is_one_action(given: dict) -> None:
    assert parse_action(json.dumps(given), "python") == RENAME


@pytest.mark.parametrize(
    "text",
    [
        YAML,
        "\ufeff" + YAML,
        "---\n" + YAML + "---\n",
        "pattern: f($A)\nrewrite: g($A)",
        "{rule: {pattern: f($A)}, fix: g($A)}",
        "ast-grep run -p 'f($A)' -r 'g($A)'",
        '[{"pattern": "f($A)", "rewrite": "g($A)"}]',
        RENAME.canonical,
    ],
)
def test_text_that_is_not_json_is_taken_for_what_it_is(text: str) -> None:
    assert parse_action(text, "python") == RENAME


def test_documents_of_one_text_are_one_step_and_items_of_a_list_are_several() -> None:
    second = YAML.replace("f(", "h(")
    together = parse_action(json.dumps({"rule_yaml": f"{YAML}---\n{second}"}), "python")
    in_order = parse_action(json.dumps({"rule_yaml": [YAML, second]}), "python")
    assert [len(step) for step in together.steps] == [2]
    assert [len(step) for step in in_order.steps] == [1, 1]
    assert together.rules == in_order.rules


def test_the_canonical_form_reads_back_to_the_same_action() -> None:
    rule = {
        "language": "ts",
        "rule": {
            "any": [{"pattern": "a"}, {"kind": "call_expression", "inside": {"kind": "program", "stopBy": "end"}}]
        },
        "constraints": {"A": {"regex": "^x"}},
        "utils": {"u": {"nthChild": {"position": "2n+1", "reverse": True}}},
        "transform": {"B": {"substring": {"source": "$A", "startChar": 1}}, "C": "replace($A, replace=a, by=b)"},
        "rewriters": [{"id": "r", "rule": {"kind": "number"}, "fix": "0"}],
        "fix": {"template": "$B", "expandEnd": {"regex": ","}},
    }
    action = parse_action(json.dumps({"rule": [[rule, rule], rule]}), "python")
    assert parse_action(action.canonical, "ruby") == action
    assert action.rules[0].parts()["rewriters"] == [{"id": "r", "rule": {"kind": "number"}, "fix": "0"}]


def test_order_of_alternatives_is_kept_and_order_of_keys_is_not() -> None:
    one, other = ({"rule": {"any": [{"pattern": a}, {"pattern": b}]}, "fix": ""} for a, b in ("ab", "ba"))
    turned = {"fix": "", "rule": one["rule"]}
    assert parse_action(json.dumps(one), "c") == parse_action(json.dumps(turned), "c")
    assert parse_action(json.dumps(one), "c") != parse_action(json.dumps(other), "c")


def test_keys_that_ast_grep_ignores_inside_relations_are_dropped() -> None:
    has = {"kind": "string"}
    known, more = ({"rule": {"kind": "call", "has": given}, "fix": ""} for given in (has, has | {"x": 1}))
    assert parse_action(json.dumps(known), "py") == parse_action(json.dumps(more), "py")


@pytest.mark.parametrize(
    ("given", "kind", "said"),
    [
        ({"patern": "x", "rewrite": "y"}, "parse", "one of rule_yaml, rule, pattern, cli is needed"),
        ({"pattern": "x", "rewrit": "y"}, "parse", "did you mean 'rewrite'"),
        ({"pattern": "x"}, "parse", "it needs one `rewrite`"),
        ({"pattern": "x", "rewrite": "y", "cli": "sg"}, "parse", "got pattern and cli"),
        ({"pattern": "x", "rewrite": "y", "language": "pyton"}, "resolve", "did you mean 'python'"),
        ({"pattern": 7, "rewrite": "y"}, "parse", "a string or a mapping with `context`"),
        ({"rule": {"patern": "x"}, "fix": "y"}, "parse", "did you mean 'pattern'"),
        ({"rule": {}, "fix": "y"}, "parse", "a mapping is needed"),
        ({"rule": {"kind": ["a"]}, "fix": "y"}, "parse", "rule.rule.kind: a string is needed"),
        ({"rule": {"kind": "a"}, "fix": 1}, "parse", "rule.fix: a mapping is needed"),
        ({"rule": {"kind": "a"}, "fix": "", "notes": "x"}, "parse", "did you mean 'note'"),
        ({"rule": {"kind": "a"}, "fix": "", "severity": "off"}, "resolve", "turns the rule off"),
        ({"rule": {"kind": "a"}, "fix": "", "transform": {"B": {"repalce": {}}}}, "parse", "did you mean 'replace'"),
        (
            {"rule": {"kind": "a"}, "fix": "", "transform": {"B": {"replace": {"source": "$A"}}}},
            "parse",
            "no `replace`",
        ),
        ({"rule": {"kind": "a"}, "fix": "", "rewriters": {"r": 1}}, "parse", "a list is needed"),
        ({"rule": {"pattern": {"context": "a", "strictness": "hard"}}, "fix": ""}, "parse", "known: ast, cst"),
        ({"rule_yaml": ""}, "parse", "0 rules"),
        ({"rule_yaml": "hello"}, "parse", "a mapping is needed, got 'hello'"),
        ({"rule_yaml": "fix: x"}, "parse", "no `rule`"),
        ({"rule_yaml": "rule: [a"}, "parse", "not YAML"),
        ({"rule": [{"rule": {"kind": "a"}, "fix": ""}] * (MAX_RULES + 1)}, "parse", "an action has 1 to"),
        (
            {"rule": [[{"rule": {"kind": "a"}, "fix": "", "language": name} for name in ("c", "go")]]},
            "resolve",
            "c, go",
        ),
        ({"cli": "ast-grep run -p x"}, "parse", "no -r/--rewrite"),
        ({"cli": "ast-grep run -p x -r"}, "parse", "-r without its value"),
        ({"cli": "ast-grep run -p x -p y -r z"}, "parse", "-p given twice"),
        ({"cli": "ast-grep run -p 'x -r y"}, "parse", "No closing quotation"),
        ({"cli": "ast-grep run -p x -r y --patern z"}, "parse", "did you mean '--pattern'"),
        ({"cli": "ast-grep lsp"}, "parse", "known: run, scan"),
        ({"cli": "ast-grep run -p x -r y src/a.py"}, "parse", "leave it out"),
        ({"cli": "grep x"}, "parse", "allowed ast-grep or sg"),
        (["x"], "parse", "an action is a mapping"),
    ],
    ids=str,
)
def test_what_is_wrong_is_said(given: object, kind: str, said: str) -> None:
    with pytest.raises(ActionFault) as caught:
        parse_action(json.dumps(given), "python")
    assert caught.value.kind == kind
    assert said in str(caught.value)


@pytest.mark.parametrize("text", ["rule:\n  pattern: !ready\nfix: x", "rule:\n  pattern: *p\nfix: x"])
def test_a_pattern_that_yaml_takes_for_its_own_is_a_mistake_and_not_a_cheat(text: str) -> None:
    with pytest.raises(ActionFault, match="quote text that begins with") as caught:
        parse_action(text, "python")
    assert caught.value.kind == "parse"


def test_scalars_are_those_of_yaml_1_2() -> None:
    action = parse_action("rule: {regex: yes, kind: '12'}\nfix: off", "python")
    assert action.rules[0].parts() == {"rule": {"regex": "yes", "kind": "12"}, "fix": "off"}


def test_aliases_stand_for_what_they_name() -> None:
    text = "rule: {any: [&one {kind: call}, {inside: *one}]}\nfix: x"
    assert parse_action(text, "python").rules[0].parts()["rule"]["any"][1] == {"inside": {"kind": "call"}}


def test_every_spelling_of_a_language_is_one_ast_grep_knows() -> None:
    ast_grep_py = pytest.importorskip("ast_grep_py")
    for spelling, name in LANGUAGES.items():
        assert ast_grep_py.SgRoot("x", spelling).root() is not None
        assert name in ENDINGS


@pytest.mark.parametrize("text", ["done", " Done.\n", '"done"', "`done`"])
def test_done_is_the_action_without_rules(text):
    action = parse_action(text, "python")
    assert action.steps == () and not action.edits and parse_action(action.canonical, "python") == action


def test_what_only_speaks_of_done_is_no_action():
    with pytest.raises(ActionFault):
        parse_action("it is done", "python")
