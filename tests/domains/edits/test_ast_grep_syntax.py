"""`compare=syntax`: blanks alone do not count, and errors that a grammar recovers from, or ignores, are not equal."""

import json
from collections.abc import Iterator

import pytest

pytest.importorskip("ast_grep_py")

from rlvr_exp.config.verifier import Sandbox
from rlvr_exp.domains.edits.problem import AstGrepProblem
from rlvr_exp.domains.edits.verifier import AstGrep
from rlvr_exp.tasks.base import Candidate
from rlvr_exp.verifiers.base import Request, Verdict

ROOT = {"php": "program", "swift": "source_file", "javascript": "program", "typescript": "program", "python": "module"}
ROOT |= {"kotlin": "source_file", "hcl": "config_file"}
BEFORE = {"php": "<?php before();", "hcl": "before = 1"}
EQUAL = [
    ("php", "<?php\nf($a,  $b);\n", "<?php f($a, $b);\n"),
    ("swift", "let x = f(a,\n  b)\n", "let x = f(a, b)"),
    ("javascript", "f(a,\n  b)\n\nconst c = `x ${y}`", "f(a, b)\nconst c = `x ${y}`"),
    ("javascript", "x = (a) =>\n  f(a)\nasync function g()\n{}", "x = (a) => f(a)\nasync function g() {}"),
    ("typescript", "interface A\n{}", "interface A {}"),
    ("python", "if a:\n    f(b,\n      c)\n", "if a:\n  f(b, c)\n"),
    ("kotlin", "val a = f(b,\n  c)\n", "val a = f(b, c)\n"),
    ("hcl", "a   = 1\nb = 2\n", "a = 1\nb = 2\n"),
]
BROKEN = [
    ("php", "<?php f($a $b);", "<?php f($a  $b);"),
    ("php", "<?php f($a, $b)", "<?php f($a,  $b)"),
    ("php", "<?php if ($a { }", "<?php if ($a {  }"),
    ("php", "<?php echo 1; ?> hi", "<?php echo 1; ?>hi"),
    ("swift", "foo(a b)", "foo(a  b)"),
    ("swift", "func f( {", "func f(  {"),
    ("javascript", "foo(a b)", "foo(a  b)"),
    ("javascript", "if (a) {", "if (a)  {"),
    ("javascript", "x = ;", "x =  ;"),
    ("python", "x = (1", "x = ( 1"),
    ("python", "print 1", "print  1"),
]
"""Neither parses, and the two differ in blanks."""
DIFFERENT = [
    ("php", "<?php f($a, $b);", "<?php f($a $b);"),
    ("php", "<?php f($a);", "<?php f($a;"),
    ("php", "<?php f($a);", "<?php f($a)"),
    ("php", "<?php f($a);", "\n<?php f($a);"),
    ("swift", "a - b", "a -b"),
    ("swift", "foo()\nbar()", "foo() bar()"),
    ("swift", "func f() { a() }", "func f() { a( }"),
    ("javascript", "if (a) { }", "if (a) {"),
    ("javascript", "throw x", "throw\nx"),
    ("javascript", "f(a, b)", "f(a, b"),
    ("typescript", "abstract class A {}", "abstract\nclass A {}"),
    ("javascript", "x = (a) => a", "x = (a)\n=> a"),
    ("javascript", "x = async (a) => a", "x = async\n(a) => a"),
    ("javascript", "x = async a => a", "x = async\na => a"),
    ("javascript", "async function f() {}", "async\nfunction f() {}"),
    ("javascript", "a = { async f() {} }", "a = { async\nf() {} }"),
    ("typescript", "x = (a) => a", "x = (a)\n=> a"),
    ("typescript", "type A = 1", "type\nA = 1"),
    ("typescript", "interface A {}", "interface\nA {}"),
    ("typescript", "class A { abstract a: number }", "class A { abstract\na: number }"),
    ("typescript", "function f(a): asserts a {}", "function f(a): asserts\na {}"),
    ("python", "a\nb", "a\n  b"),
    ("python", "if a:\n  b\n  c", "if a:\n  b\n    c"),
    ("kotlin", "val a = b (c)", "val a = b\n(c)"),
    ("hcl", "a = 1\nb = 2", "a = 1 b = 2"),
]
"""The second is no program, or a different program."""


@pytest.fixture(scope="module")
def by_tree() -> Iterator[AstGrep]:
    with AstGrep(Sandbox(workers=1), compare="syntax") as verifier:
        yield verifier


def judge(verifier: AstGrep, language: str, wanted: str, got: str) -> Verdict:
    """An action that writes `got` in place of `wanted`."""
    problem = AstGrepProblem(language, BEFORE.get(language, "before()"), wanted)
    action = {"rule": {"kind": ROOT[language]}, "fix": got}
    return verifier.submit(Request(problem, Candidate(json.dumps(action)))).result(timeout=120)


@pytest.mark.parametrize(("language", "one", "other"), EQUAL)
def test_blanks_do_not_count(by_tree: AstGrep, language: str, one: str, other: str) -> None:
    for wanted, got in ((one, other), (other, one), (one, one)):
        assert judge(by_tree, language, wanted, got).outcome == "passed"


@pytest.mark.parametrize(("language", "wanted", "got"), BROKEN)
def test_a_wanted_text_that_does_not_parse_is_compared_as_text(
    by_tree: AstGrep, language: str, wanted: str, got: str
) -> None:
    assert judge(by_tree, language, wanted, wanted).outcome == "passed"
    assert judge(by_tree, language, wanted, got).bucket == "wrong_answer"


@pytest.mark.parametrize(("language", "wanted", "got"), DIFFERENT)
def test_what_is_no_program_or_another_one_is_not_equal(by_tree: AstGrep, language: str, wanted: str, got: str) -> None:
    assert judge(by_tree, language, wanted, wanted).outcome == "passed"
    assert judge(by_tree, language, wanted, got).bucket == "wrong_answer"


def test_the_log_says_that_the_edited_text_does_not_parse(by_tree: AstGrep) -> None:
    verdict = judge(by_tree, "php", "<?php f($a, $b);", "<?php f($a $b);")
    assert verdict.log == "the edited text does not parse as php"
