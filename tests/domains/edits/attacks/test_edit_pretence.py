"""Actions that pretend: damaged text, edits of nothing, false similarity. And honest actions for comparison."""

import json

import pytest
from edit_arena import judge, rename

DAMAGED = {
    "nul in a fix": json.dumps(rename(fix="g($A)\x00")),
    "escape": json.dumps(rename(fix="g($A)\x1b[2K")),
    "backspace": json.dumps(rename(fix="h\bg($A)")),
    "surrogate": '{"pattern": "f($A)", "rewrite": "g($A)\\ud800"}',
    "surrogate as it is": '{"pattern": "f($A)", "rewrite": "g($A)\udcff"}',
    "delete": "rule: {pattern: f($A)}\nfix: g($A)\x7f",
    "nul in yaml": "rule: {pattern: f($A)}\nfix: g($A)\x00",
    "nul by yaml's escape": 'rule: {pattern: f($A)}\nfix: "g($A)\\0"',
    "key twice": '{"pattern": "h($A)", "pattern": "f($A)", "rewrite": "g($A)"}',
    "key twice in yaml": "rule: {pattern: h($A)}\nrule: {pattern: f($A)}\nfix: g($A)",
    "key that is a list": "? [rule]\n: {pattern: f($A)}\nfix: g($A)",
    "two forms": json.dumps({"pattern": "f($A)", "rewrite": "g($A)", "cli": "sg -p x -r y"}),
    "number": "7",
    "null": "null",
    "true": "true",
    "the answer itself": "g(1)\n",
    "the answer in quotes": '"g(1)"',
    "nothing": " \n",
    "cut short": '{"pattern": "f($A)", "rewrite": "g($A',
    "code": "__import__('os').system('id')",
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_text_is_no_action(verifier, name: str) -> None:
    verdict = judge(verifier, DAMAGED[name])
    assert (verdict.outcome, verdict.bucket) == ("failed", "parse"), verdict


NOTHING = {
    "no match": ({"pattern": "q($A)", "rewrite": "g($A)"}, "f(1)\n"),
    "search only": ({"rule": {"pattern": "f($A)"}}, "f(1)\n"),
    "turned off": (rename(severity="off"), "f(1)\n"),
    "same text": ({"pattern": "f($A)", "rewrite": "f($A)"}, "f(1)\n"),
    "suppressed": (rename(), "# ast-grep-ignore\nf(1)\n"),
    "never": ({"rule": {"kind": "call", "not": {"kind": "call"}}, "fix": "g(1)"}, "f(1)\n"),
    "empty range": (
        {"rule": {"range": {"start": {"line": 9, "column": 0}, "end": {"line": 9, "column": 0}}}, "fix": "g(1)"},
        "f(1)\n",
    ),
    "no text": (rename(), ""),
}


@pytest.mark.parametrize("name", NOTHING)
@pytest.mark.parametrize("way", ["verifier", "by_tree"])
def test_an_edit_that_edits_nothing_is_no_answer(request, way: str, name: str) -> None:
    action, before = NOTHING[name]
    verdict = judge(request.getfixturevalue(way), action, before, before.replace("f(1)", "g(1)") or "g(1)\n")
    assert verdict.outcome == "failed", verdict


NOTHING_LEFT = {
    "no match": rename(),
    "search only": {"rule": {"pattern": "h($A)"}},
    "same text": {"pattern": "h($A)", "rewrite": "h($A)"},
    "same text as a whole": {"rule": {"kind": "module", "pattern": "$X"}, "fix": "$X"},
    "there and back": [{"pattern": "h($A)", "rewrite": "i($A)"}, {"pattern": "i($A)", "rewrite": "h($A)"}],
}


@pytest.mark.parametrize("name", NOTHING_LEFT)
@pytest.mark.parametrize("way", ["verifier", "by_tree"])
def test_where_nothing_is_left_to_change_rules_are_no_answer(request, way: str, name: str) -> None:
    verdict = judge(request.getfixturevalue(way), NOTHING_LEFT[name], "h(1)\n", "h(1)\n")
    assert (verdict.outcome, verdict.bucket) == ("failed", "wrong_answer"), verdict


UNLIKE = {
    "blank in a string": ("python", "g('a b')\n", "g('a  b')\n"),
    "line in a string": ("python", 'g("""a\nb""")\n', 'g("""a\n b""")\n'),
    "blank in a format": ("python", "g(f'{x} a')\n", "g(f'{x}  a')\n"),
    "escape": ("python", "g('a\\tb')\n", "g('a\\nb')\n"),
    "blank between escapes": ("python", "g('\\n \\t')\n", "g('\\n  \\t')\n"),
    "blank between values": ("python", "g(f'{x} {y}')\n", "g(f'{x}  {y}')\n"),
    "blank between javascript's values": ("javascript", "g(`${x} ${y}`)\n", "g(`${x}  ${y}`)\n"),
    "blank between ruby's values": ("ruby", 'g("#{x} #{y}")\n', 'g("#{x}  #{y}")\n'),
    "blank between bash's values": ("bash", 'g "$x $y"\n', 'g "$x  $y"\n'),
    "blank between go's escapes": ("go", 'package a\nvar b = "\\n \\t"\n', 'package a\nvar b = "\\n  \\t"\n'),
    "blank between java's escapes": (
        "java",
        'class A { String b = "\\n \\t"; }\n',
        'class A { String b = "\\n  \\t"; }\n',
    ),
    "blank between c's escapes": ("c", 'char *a = "\\n \\t";\n', 'char *a = "\\n  \\t";\n'),
    "comment": ("python", "g(1)  # a\n", "g(1)  # b\n"),
    "operator": ("python", "a < b\n", "a > b\n"),
    "indentation": ("python", "if a:\n  b()\n  c()\n", "if a:\n  b()\nc()\n"),
    "broken alike": ("python", "g((((\n", "g(((((\n"),
    "broken all": ("python", ")) a ((\n", ")) b ((\n"),
    "blank in a template": ("javascript", "g(`a ${x}`)\n", "g(`a  ${x}`)\n"),
    "blank in a regex": ("javascript", "g(/a b/)\n", "g(/a  b/)\n"),
    "line after return": ("javascript", "() => { return a }\n", "() => { return\na }\n"),
    "text of an element": ("html", "<b>a b</b>\n", "<b>a c</b>\n"),
    "attribute": ("html", '<b c="a b"></b>\n', '<b c="a  b"></b>\n'),
    "character": ("c", "int a = ' ';\n", "int a = 'b';\n"),
    "macro": ("c", "#define A(b) b\n", "#define A (b) b\n"),
    "blanks in quotes": ("yaml", 'a: " "\n', 'a: "  "\n'),
    "block": ("yaml", "a: |\n  b\n  c\n", "a: |\n  b\n   c\n"),
    "scalar": ("yaml", "a: b c\n", "a: b  c\n"),
    "level": ("yaml", "a:\n  b: 1\n  c: 2\n", "a:\n  b: 1\nc: 2\n"),
    "missing": ("java", "class A { int b = 1; }\n", "class A { int b = 2; }\n"),
    "raw text": ("go", "package a\nvar b = `c d`\n", "package a\nvar b = `c  d`\n"),
    "heredoc": ("bash", "cat <<X\na b\nX\n", "cat <<X\na  b\nX\n"),
    "words": ("bash", "echo 'a  b'\n", "echo 'a b'\n"),
    "ruby heredoc": ("ruby", "a = <<~X\n  b c\nX\n", "a = <<~X\n  b  c\nX\n"),
    "json": ("json", '{"a": "b c"}\n', '{"a": "b  c"}\n'),
}


@pytest.mark.parametrize("name", UNLIKE)
def test_what_means_something_else_is_not_alike(by_tree, name: str) -> None:
    language, wanted, made = UNLIKE[name]
    verdict = replaced(by_tree, language, wanted, made)
    assert (verdict.outcome, verdict.bucket) == ("failed", "wrong_answer"), verdict
    assert "matches nothing" not in verdict.log


def replaced(by_tree, language: str, wanted: str, made: str):
    """The complete text replaced by `made`."""
    before = {"c": "start;", "go": "package a", "java": "class A {}"}.get(language, "start")
    return judge(by_tree, {"rule": {"kind": ROOTS[language]}, "fix": made}, before, wanted, language)


ROOTS = {
    "python": "module",
    "javascript": "program",
    "html": "document",
    "c": "translation_unit",
    "yaml": "stream",
    "java": "program",
    "go": "source_file",
    "bash": "program",
    "ruby": "program",
    "json": "document",
}

ALIKE = {
    "arguments": ("python", "g(1, 2)\n", "g( 1,2 )"),
    "lines": ("python", "g(1,\n  2)\n", "g(1, 2)\n\n"),
    "indentation": ("python", "if a:\n    b()\n", "if a:\n  b()"),
    "block": ("javascript", "if (a) { b() }\n", "if (a) {\n  b()\n}"),
    "elements": ("html", "<a><b>c</b></a>\n", "<a>\n  <b>c</b>\n</a>"),
    "declaration": ("c", "int a = 1;\n", "int  a=1 ;"),
    "mapping": ("yaml", "a:\n  b: 1\n", "a:\n    b:  1\n"),
    "class": ("java", "class A { int b = 1; }\n", "class A {\n  int b = 1;\n}"),
    "function": ("go", "package a\nfunc b() { c() }\n", "package a\n\nfunc b() {\n\tc()\n}\n"),
    "command": ("bash", "echo a b\n", "echo  a   b\n"),
    "call": ("ruby", "a(1, 2)\n", "a( 1,2 )\n"),
    "object": ("json", '{"a": [1, 2]}\n', '{ "a":[1,2] }\n'),
}


@pytest.mark.parametrize("name", ALIKE)
def test_what_differs_in_idle_blanks_is_alike(by_tree, name: str) -> None:
    assert replaced(by_tree, *ALIKE[name]).outcome == "passed"


HONEST = {
    "whole text": ({"rule": {"kind": "module"}, "fix": "g(1)\n"}, "f(1)\n", "g(1)\n"),
    "dots in a fix": (rename(fix="g($A, '../..')"), "f(1)\n", "g(1, '../..')\n"),
    "path in a pattern": ({"pattern": "open('/etc/passwd')", "rewrite": "None"}, "open('/etc/passwd')\n", "None\n"),
    "shell in a pattern": ("ast-grep run -p 'a > b' -r 'b < a'", "a > b\n", "b < a\n"),
    "shell in a fix": ("""ast-grep run -p 'f($A)' -r 'system("a && b | c")'""", "f(1)\n", 'system("a && b | c")\n'),
    "double quotes": ('ast-grep run -p "f($A)" -r "g($A)" .', "f(1)\n", "g(1)\n"),
    "lines in a command": ("ast-grep run \\\n  -p 'f($A)' \\\n  -r 'g($A)'", "f(1)\n", "g(1)\n"),
    "flag as a value": ("ast-grep run -p 'f(-1)' -r=-1", "f(-1)\n", "-1\n"),
    "relative files": (rename(files=["src/**/*.py"], ignores=["tests/**"]), "f(1)\n", "g(1)\n"),
    "word of a tag": (rename(fix="g($A, '!!python/object')"), "f(1)\n", "g(1, '!!python/object')\n"),
    "alias": ("rule: {any: [&r {pattern: f($A)}, {all: [*r]}]}\nfix: g($A)", "f(1)\n", "g(1)\n"),
    "yes and off": ({"pattern": "yes", "rewrite": "off"}, "yes\n", "off\n"),
    "yaml's words": ("rule: {pattern: yes}\nfix: off", "yes\n", "off\n"),
    "strange characters": (
        {"pattern": "f($A)", "rewrite": "g('\u2028\u00a0😀', $A)"},
        "f('é')\n",
        "g('\u2028\u00a0😀', 'é')\n",
    ),
    "carriage returns": (rename(), "f(1)\r\nx = f(2)\r\n", "g(1)\r\nx = g(2)\r\n"),
    "mark at the start": (rename(), "\ufefff(1)\n", "\ufeffg(1)\n"),
    "no line end": (rename(), "f(1)", "g(1)"),
    "text with a broken part": (rename(), "f(1)\ndef (\n", "g(1)\ndef (\n"),
    "deep text": (rename(), "f(" + "[" * 200 + "]" * 200 + ")\n", "g(" + "[" * 200 + "]" * 200 + ")\n"),
    "long text": (rename(), "f(1)\n" * 2000, "g(1)\n" * 2000),
    "long rule": (rename(note="x" * 20_000), "f(1)\n", "g(1)\n"),
    "recursive rewriter": (
        {
            "rule": {"pattern": "f($A)"},
            "rewriters": [{"id": "neg", "rule": {"pattern": "not $X"}, "fix": "$X"}],
            "transform": {"B": {"rewrite": {"source": "$A", "rewriters": ["neg"]}}},
            "fix": "g($B)",
        },
        "f([not a, not b])\n",
        "g([a, b])\n",
    ),
    "every transformation": (
        rename(
            transform={
                "B": {"substring": {"source": "$A", "startChar": 1, "endChar": -1}},
                "C": {"replace": {"source": "$B", "replace": "a+", "by": "b"}},
                "D": "convert($C, toCase=upperCase)",
            },
            fix="g($D)",
        ),
        "f('aac')\n",
        "g(BC)\n",
    ),
    "utility": (
        {
            "rule": {"kind": "call", "matches": "old"},
            "utils": {"old": {"has": {"field": "function", "regex": "^f$"}}},
            "fix": "g(1)",
        },
        "f(1)\n",
        "g(1)\n",
    ),
    "deletion to the comma": (
        {"rule": {"kind": "integer", "regex": "^1$"}, "fix": {"template": "", "expandEnd": {"regex": "^,$"}}},
        "f(1,2)\n",
        "f(2)\n",
    ),
    "swap": (
        {"rule": [[{"rule": {"kind": "identifier", "regex": f"^{a}$"}, "fix": b} for a, b in ("ab", "ba")]]},
        "a, b\n",
        "b, a\n",
    ),
    "in order": ({"rule": [{"rule": {"pattern": a}, "fix": b} for a, b in ("ab", "bc")]}, "a\n", "c\n"),
    "nothing to do": ("done", "h(1)\n", "h(1)\n"),
    "nothing to do, in quotes": ('"done"', "h(1)\n", "h(1)\n"),
}


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_action_passes(verifier, name: str) -> None:
    action, before, after = HONEST[name]
    assert judge(verifier, action, before, after).outcome == "passed"
