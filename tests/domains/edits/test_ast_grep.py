"""Verdicts on edits: what passes, each bucket of failures, the ways of comparing, passes, and how tests decide."""

import json
from collections.abc import Iterator
from concurrent.futures import Future

import pytest

pytest.importorskip("ast_grep_py")

from rlvr_exp.config.verifier import LEVELS, Sandbox
from rlvr_exp.core.errors import RlvrError
from rlvr_exp.domains.edits.action import parse_action
from rlvr_exp.domains.edits.problem import AstGrepProblem
from rlvr_exp.domains.edits.schema import ActionFault
from rlvr_exp.domains.edits.verifier import MAX_KB, AstGrep
from rlvr_exp.sandbox.jobs import Job, JobResult
from rlvr_exp.tasks.base import Candidate
from rlvr_exp.tasks.formats.fields import Limits
from rlvr_exp.tasks.formats.python_io import PythonProblem
from rlvr_exp.verifiers.base import Request, Verdict
from rlvr_exp.verifiers.suite.verifier import PytestSuite, suite_tool

RENAME = {"pattern": "f($A)", "rewrite": "g($A)"}
UPPER = {
    "rule": {"pattern": "f($A)"},
    "transform": {"B": {"convert": {"source": "$A", "toCase": "upperCase"}}},
    "fix": "g($B)",
}


def request(before: str, after: str, action: object, language: str = "python", **more: object) -> Request:
    text = action if isinstance(action, str) or action is None else json.dumps(action)
    return Request(AstGrepProblem(language, before, after, **more), Candidate(text))


def judge(verifier: AstGrep, *given: object, **more: object) -> Verdict:
    return verifier.submit(request(*given, **more)).result(timeout=120)


@pytest.fixture(scope="module")
def repeated() -> Iterator[AstGrep]:
    with AstGrep(Sandbox(workers=1), max_passes=5) as verifier:
        yield verifier


@pytest.mark.parametrize(
    ("before", "after", "action", "language"),
    [
        ("f(1)\n", "g(1)\n", RENAME, "python"),
        ("f(f(1))\nf(2)\n", "g(f(1))\ng(2)\n", RENAME, "py"),
        ("f(x)\n", "g(X)\n", UPPER, "python"),
        ("f(1)\r\nf(\r\n  2)\r\n", "g(1)\r\ng(2)\r\n", RENAME, "python"),
        ("é = f('𝒳')\n", "é = g('𝒳')\n", RENAME, "python"),
        ("var a = 1\n", "let a = 1\n", {"pattern": "var $A = $B", "rewrite": "let $A = $B"}, "JavaScript"),
        ("f(1)\n", "\n", {"pattern": "f($A)", "rewrite": ""}, "python"),
        ("f(1)\n", "f(1)\n", "done", "python"),
        ("f(1)\n", "g(1)\n", {"rule": {"kind": "module"}, "fix": "g(1)"}, "python"),
        ("f(1)", "g(1)", {"rule": {"kind": "module"}, "fix": "g(1)\n\n"}, "python"),
        ("f(1)\r\n\r\n", "g(1)\r\n\r\n", {"rule": {"kind": "module"}, "fix": "g(1)\n"}, "python"),
        ("x\r\nf(1)\r\n", "x\r\ng()\r\nh()\r\n", {"pattern": "f(1)", "rewrite": "g()\nh()"}, "python"),
        ("x\r\nf(1)\r\n", "x\r\ng()\r\nh()\r\n", {"pattern": "f(1)", "rewrite": "g()\r\nh()"}, "python"),
        (
            "f(1)\n",
            "h(1)\n",
            {"rule": [{"rule": {"pattern": f"{a}($A)"}, "fix": f"{b}($A)"} for a, b in ("fg", "gh")]},
            "python",
        ),
        (
            "f(1); g(2)\n",
            "g(1); h(2)\n",
            {"rule": [[{"rule": {"pattern": f"{a}($A)"}, "fix": f"{b}($A)"} for a, b in ("fg", "gh")]]},
            "python",
        ),
        (
            "a = [1, 2]\n",
            "a = [ 2]\n",
            {"rule": {"kind": "integer", "regex": "1"}, "fix": {"template": "", "expandEnd": {"regex": ","}}},
            "python",
        ),
        ("f(1)\r\n", 'f("""a\r\nb""")\r\n', {"pattern": "f(1)", "rewrite": 'f("""a\nb""")'}, "python"),
    ],
    ids=range(17),
)
def test_the_wanted_text_passes_whatever_is_compared(
    exact: AstGrep, by_tree: AstGrep, before: str, after: str, action: object, language: str
) -> None:
    for one in (exact, by_tree):
        verdict = judge(one, before, after, action, language)
        assert (verdict.outcome, verdict.passed, verdict.total) == ("passed", 1, 1), verdict.log


@pytest.mark.parametrize(
    ("before", "after", "action", "bucket", "said"),
    [
        ("f(1)\n", "h(1)\n", RENAME, "wrong_answer", "- h(1)\n+ g(1)"),
        ("f(1)\r\nf(2)\n", "g(1)\r\nx\r\n", {"pattern": "f(2)", "rewrite": "x"}, "wrong_answer", "line 1"),
        ("f(1)\n", "g(1)", RENAME, "wrong_answer", "at the end of the text: wanted 0, got 1"),
        ("f(1)\n", "g(1)\n", {"pattern": "q($A)", "rewrite": "g($A)"}, "wrong_answer", "matches nothing"),
        ("f(1)\n", "g(1)\n", {"rule": {"pattern": "f($A)"}}, "wrong_answer", "no rule has a `fix`"),
        ("f(1)\n", "f(1)\n", RENAME | {"pattern": "h($A)"}, "wrong_answer", "matches nothing"),
        ("f(1)\n", "f(1)\n", {"rule": {"pattern": "f($A)"}}, "wrong_answer", "no rule has a `fix`"),
        ("f(1)\n", "f(1)\n", RENAME | {"rewrite": "f($A)"}, "wrong_answer", "nothing is left to change"),
        ("f(1)\n", "g(1)\n", "done", "wrong_answer", "+ f(1)"),
        ("f(1)\n", "g(1)\n", "", "parse", "the action is empty"),
        ("f(1)\n", "g(1)\n", None, "parse", "no action in the answer"),
        ("f(1)\n", "g(1)\n", {"rule": {"kind": "cal"}, "fix": "x"}, "resolve", "Kind `cal` is invalid"),
        ("f(1)\n", "g(1)\n", {"pattern": "f(1)", "rewrite": "$A"}, "resolve", "Undefined meta var `A`"),
        ("f(1)\n", "g(1)\n", {"pattern": "a b c", "rewrite": ""}, "resolve", "Multiple AST nodes"),
        ("f(1)\n", "g(1)\n", {"rule": {"kind": "call", "regex": "("}, "fix": ""}, "resolve", "unclosed group"),
        ("f(1)\n", "g(1)\n", {"rule": {"matches": "nobody"}, "fix": ""}, "resolve", "nobody"),
    ],
    ids=range(16),
)
def test_a_failure_has_its_bucket_and_a_reason(
    exact: AstGrep, before: str, after: str, action: object, bucket: str, said: str
) -> None:
    verdict = judge(exact, before, after, action)
    assert (verdict.outcome, verdict.bucket, verdict.score) == ("failed", bucket, 0)
    assert said in verdict.log


@pytest.mark.parametrize("mark", ["a", "é", "€", "😀", "\x01"])
def test_a_text_of_the_largest_size_is_judged_whatever_its_characters(
    exact: AstGrep, by_tree: AstGrep, mark: str
) -> None:
    rest = f"x = '{mark * (MAX_KB * 1000 // len(mark.encode()))}'\n"
    for verifier in (exact, by_tree):
        verdict = judge(verifier, f"f(1)\n{rest}", f"g(1)\n{rest}", RENAME)
        assert verdict.outcome == "passed", verdict.log


def test_text_that_differs_in_blanks_passes_only_where_that_is_chosen(exact: AstGrep, loose: AstGrep) -> None:
    given = ("f(1)\nx = 1\n", "g(1)  \n\n\nx = 1\r\n", RENAME)
    assert judge(exact, *given).bucket == "wrong_answer"
    assert judge(loose, *given).outcome == "passed"
    assert judge(loose, "f(1)\n", "  g(1)\n", RENAME).bucket == "wrong_answer"


@pytest.mark.parametrize(
    ("wanted", "got", "same"),
    [
        ('x = """a\n\nb"""\n', 'x = """a\nb"""\n', False),
        ('x = """a \nb"""\n', 'x = """a\nb"""\n', False),
        ('x = """a\nb"""\n', 'x = """a\nb"""\n\n\n', True),
        ("x = 1\n\ny = 2\n", "x = 1  \ny = 2\n", True),
        ("x = 1\\\n + 2\n", "x = 1\\ \n + 2\n", False),
        ("x = (\n\n", "x = (\n", True),
    ],
)
def test_lines_and_blanks_inside_a_string_count_wherever_python_can_tell(
    loose: AstGrep, wanted: str, got: str, same: bool
) -> None:
    problem = AstGrepProblem("python", "pass\n", wanted, answer="text")
    verdict = loose.submit(Request(problem, Candidate(got))).result(timeout=120)
    assert verdict.outcome == ("passed" if same else "failed")


@pytest.mark.parametrize(
    ("wanted", "fix", "same"),
    [
        ("g(1, 2)\n", "g( 1,2 )", True),
        ("if x:\n    g(1)\n", "if x:\n  g(1)", True),
        ("g(1)\n", "g(2)", False),
        ("g('a  b')\n", "g('a b')", False),
        ("g(f'{x}  {y}')\n", "g(f'{x} {y}')", False),
        ('g("""\n  a""")\n', 'g("""\na""")', False),
        ("g(1)  # why\n", "g(1)", False),
        ("g(-1)\n", "g(+1)", False),
        ("if x:\n    a()\n    b()\n", "if x:\n    a()\nb()", False),
        ("g((\n", "g((( ", False),
    ],
)
def test_trees_are_equal_but_for_blanks_that_mean_nothing(by_tree: AstGrep, wanted: str, fix: str, same: bool) -> None:
    verdict = judge(by_tree, "pass\n", wanted, {"rule": {"kind": "pass_statement"}, "fix": fix})
    assert verdict.outcome == ("passed" if same else "failed"), verdict.log


def test_an_action_cannot_choose_the_grammar_of_the_comparison(by_tree: AstGrep) -> None:
    action = {"rule": {"regex": "^f", "kind": "inline"}, "fix": "g('a b')", "language": "markdown"}
    assert judge(by_tree, "f\n", "g('a  b')\n", action).bucket == "wrong_answer"


def test_more_passes_go_on_until_nothing_changes(exact: AstGrep, repeated: AstGrep) -> None:
    given = ("f(f(f(1)))\n", "g(g(g(1)))\n", RENAME)
    assert judge(exact, *given).bucket == "wrong_answer"
    assert judge(repeated, *given).outcome == "passed"


@pytest.mark.parametrize(
    ("action", "said"),
    [
        ({"rule": {"any": [{"pattern": "f($A)"}]}, "fix": "f(f($A))"}, "still changes after 5 passes"),
        ({"rule": [{"rule": {"pattern": f"{a}($A)"}, "fix": f"{b}($A)"} for a, b in ("fx", "xy")]}, ""),
        (
            {"rule": [[{"rule": {"pattern": f"{a}($A)"}, "fix": f"{b}($A)"} for a, b in ("fg", "gf")]]},
            "undo one another",
        ),
    ],
    ids=["growth", "settles", "oscillation"],
)
def test_rules_that_never_settle_are_stopped(repeated: AstGrep, action: dict, said: str) -> None:
    verdict = judge(repeated, "f(1)\n", "y(1)\n", action)
    assert verdict.bucket == ("runtime_error" if said else None), verdict.log
    assert said in verdict.log


def test_the_wanted_text_and_the_tests_never_enter_the_process_of_the_rule(exact: AstGrep, by_tree: AstGrep) -> None:
    sent: list[Job] = []

    def keep(job: Job) -> Future:
        sent.append(job)
        return Future()

    for verifier in (exact, by_tree):
        problem = AstGrepProblem("python", "f(1)\n", "SECRET(1)\n", "def test_SECRET(): pass")
        work = verifier.prepare(Request(problem, Candidate(json.dumps(RENAME))))
        original, verifier._pool.submit = verifier._pool.submit, keep
        try:
            verifier.start(work)
        finally:
            verifier._pool.submit = original
    assert len(sent) == 2
    assert not any(b"SECRET" in job.payload for job in sent)


@pytest.mark.parametrize(
    ("problem", "said"),
    [
        (PythonProblem("f", ()), "not PythonProblem"),
        (AstGrepProblem("klingon", "a", "b"), "unknown 'klingon'"),
        (AstGrepProblem("python", "\ud800", "b"), "lone surrogate"),
        (AstGrepProblem("python", "x" * 600_000, "b"), "allowed 524288"),
        (AstGrepProblem("go", "a", "b", "def test(): pass"), "tests judge Python"),
    ],
    ids=["type", "language", "surrogate", "size", "tests"],
)
def test_a_problem_that_cannot_be_judged_is_no_verdict(exact: AstGrep, problem: object, said: str) -> None:
    verdict = exact.submit(Request(problem, Candidate(json.dumps(RENAME)))).result()
    assert verdict.outcome == "no_verdict"
    assert said in verdict.log


def test_one_edit_in_two_forms_is_judged_once(exact: AstGrep) -> None:
    judged = exact.metrics()["judged"]
    verdicts = [judge(exact, "f(99)\n", "g(99)\n", form) for form in (RENAME, {"cli": "sg -p 'f($A)' -r 'g($A)'"})]
    assert [verdict.cached for verdict in verdicts] == [False, True]
    assert exact.metrics()["judged"] == judged + 1


def test_the_problems_own_limits_hold(exact: AstGrep) -> None:
    nested = "x = " + "(" * 3000 + "1" + ")" * 3000
    chain: dict = {"pattern": "y"}
    for _ in range(3):
        chain = {"inside": {"kind": "parenthesized_expression", "stopBy": "end", **chain}}
    action = {"rule": {"kind": "parenthesized_expression", **chain}, "fix": "2"}
    verdict = judge(exact, nested, "y", action, limits=Limits(cpu_s=0.1, wall_s=60))
    assert verdict.bucket == "timeout"


def test_tools_are_named_with_their_versions(exact: AstGrep) -> None:
    assert set(exact.tool()) == {"ast-grep", "ast-grep-py", *suite_tool()}, "tests decide for some problems"
    assert all(exact.tool()[name][0].isdigit() for name in ("ast-grep", "ast-grep-py"))
    assert PytestSuite.version in exact.version


TESTS = "from solution import f\n\ndef test_one():\n    assert f(1) == 2\n\ndef test_two():\n    assert f(2) == 4\n"
BEFORE = "def f(x):\n    return x + 1\n"


@pytest.mark.parametrize(
    ("fix", "outcome", "bucket", "passed"),
    [("2 * x", "passed", None, 2), ("x + 0", "failed", "wrong_answer", 0), ("x +", "failed", "parse", 0)],
)
def test_with_tests_they_decide(exact: AstGrep, fix: str, outcome: str, bucket: str | None, passed: int) -> None:
    verdict = judge(exact, BEFORE, "", {"pattern": "x + 1", "rewrite": fix}, tests=TESTS)
    assert (verdict.outcome, verdict.passed) == (outcome, passed), verdict
    assert verdict.bucket == bucket, verdict


def test_a_hostile_edit_of_a_tested_text_is_the_pytest_verifiers_to_reject(exact: AstGrep) -> None:
    verdict = judge(exact, BEFORE, "", {"pattern": "x + 1", "rewrite": "__import__('os')._exit(0)"}, tests=TESTS)
    assert verdict.outcome in ("failed", "rejected")


def test_no_edit_is_no_answer_even_where_tests_pass(exact: AstGrep) -> None:
    action = {"pattern": "nothing_here", "rewrite": "x"}
    assert judge(exact, BEFORE.replace("x + 1", "2 * x"), "", action, tests=TESTS).bucket == "wrong_answer"


@pytest.mark.parametrize("level", LEVELS)
def test_both_engines_work_on_every_level_time_after_time(level: str) -> None:
    with AstGrep(Sandbox(workers=1, level=level)) as verifier:
        if verifier.isolation()["level"] != level:
            pytest.skip(f"level {level} cannot be had here")
        for number in range(2):
            for action, after in ((RENAME, f"g(a{number})\n"), (UPPER, f"g(A{number})\n")):
                assert judge(verifier, f"f(a{number})\n", after, action).outcome == "passed"


@pytest.mark.parametrize(
    ("way", "text", "verdict"),
    [
        ("exact", "g(1)\n", "passed"),
        ("exact", "g(1)", "wrong_answer"),
        ("exact", "f(1)\n", "wrong_answer"),
        ("exact", None, "parse"),
        ("exact", "g(1)\n" + "#" * (513 << 10), "output_limit"),
        ("loose", "g(1)  \n\n", "passed"),
        ("by_tree", "g( 1 )\n", "passed"),
        ("by_tree", "g(2)\n", "wrong_answer"),
        ("by_tree", "g(1\n", "wrong_answer"),
    ],
)
def test_an_edited_text_is_compared_as_an_actions_result_is(way, text, verdict, request):
    problem = AstGrepProblem("python", "f(1)\n", "g(1)\n", answer="text")
    got = request.getfixturevalue(way).submit(Request(problem, Candidate(text))).result(timeout=120)
    assert (got.bucket or got.outcome) == verdict


def test_an_edited_text_is_tested(exact):
    tests = "from solution import f\n\ndef test_it():\n    assert f(2) == 4\n"
    problem = AstGrepProblem("python", "def f(x):\n    return x\n", "", tests, answer="text")
    texts = ("def f(x):\n    return x + x\n", "def f(x):\n    return x\n")
    got = [exact.submit(Request(problem, Candidate(text))).result(timeout=120) for text in texts]
    assert [verdict.outcome for verdict in got] == ["passed", "failed"]


def test_a_result_equal_to_a_proved_text_is_not_tested_again(exact):
    """The tests below hold of nothing: only a run of them would tell."""
    tests = "def test_it():\n    assert False\n"
    given = {"before": "f(1)\n", "after": "g(1)\n", "tests": tests, "answer": "text"}

    def outcome(text: str, proved: bool) -> str:
        problem = AstGrepProblem("python", **given, proved=proved)
        return exact.submit(Request(problem, Candidate(text))).result(timeout=120).outcome

    assert outcome("g(1)\n", True) == "passed"
    assert outcome("g( 1)\n", True) != "passed" and outcome("g(1)\n", False) != "passed"


def test_the_text_that_an_action_makes_is_given(exact: AstGrep) -> None:
    assert exact.edited_text("f(a)\n", parse_action(json.dumps(UPPER), "python")) == "g(A)\n"
    assert exact.edited_text("h(a)\n", parse_action(json.dumps(RENAME), "python")) == "h(a)\n"
    with pytest.raises(ActionFault, match="no_kind"):
        exact.edited_text("f(a)\n", parse_action('{"rule": {"kind": "no_kind"}, "fix": ""}', "python"))


def test_the_text_that_is_shown_next_has_the_line_ends_of_the_text_before(exact: AstGrep) -> None:
    given = request("x\r\nf(1)\r\n", "x\r\nh()\r\n", {"rule": {"kind": "module"}, "fix": "x\nf(2)"})
    assert exact.execute(given).result(timeout=120).outputs == ("x\r\nf(2)\r\n",)


def test_a_text_that_no_worker_edits_is_no_fault_of_the_action(exact: AstGrep, monkeypatch: pytest.MonkeyPatch) -> None:
    lost: Future[JobResult] = Future()
    lost.set_result(JobResult("unavailable", log=b"no worker"))
    monkeypatch.setattr(exact._pool, "submit", lambda job: lost)
    with pytest.raises(RlvrError, match="no worker"):
        exact.edited_text("f(a)\n", parse_action(json.dumps(RENAME), "python"))


ROOT = {"php": "program", "swift": "source_file", "javascript": "program", "typescript": "program", "python": "module"}
ROOT |= {"kotlin": "source_file", "hcl": "config_file"}
STARTS = {"php": "<?php before();", "hcl": "before = 1"}
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


def replaced(verifier: AstGrep, language: str, wanted: str, got: str) -> Verdict:
    """An action that writes `got` in place of `wanted`."""
    problem = AstGrepProblem(language, STARTS.get(language, "before()"), wanted)
    action = {"rule": {"kind": ROOT[language]}, "fix": got}
    return verifier.submit(Request(problem, Candidate(json.dumps(action)))).result(timeout=120)


@pytest.mark.parametrize(("language", "one", "other"), EQUAL)
def test_blanks_do_not_count(by_tree: AstGrep, language: str, one: str, other: str) -> None:
    for wanted, got in ((one, other), (other, one), (one, one)):
        assert replaced(by_tree, language, wanted, got).outcome == "passed"


@pytest.mark.parametrize(("language", "wanted", "got"), BROKEN)
def test_a_wanted_text_that_does_not_parse_is_compared_as_text(
    by_tree: AstGrep, language: str, wanted: str, got: str
) -> None:
    assert replaced(by_tree, language, wanted, wanted).outcome == "passed"
    assert replaced(by_tree, language, wanted, got).bucket == "wrong_answer"


@pytest.mark.parametrize(("language", "wanted", "got"), DIFFERENT)
def test_what_is_no_program_or_another_one_is_not_equal(by_tree: AstGrep, language: str, wanted: str, got: str) -> None:
    assert replaced(by_tree, language, wanted, wanted).outcome == "passed"
    assert replaced(by_tree, language, wanted, got).bucket == "wrong_answer"


def test_the_log_says_that_the_edited_text_does_not_parse(by_tree: AstGrep) -> None:
    verdict = replaced(by_tree, "php", "<?php f($a, $b);", "<?php f($a $b);")
    assert verdict.log == "the edited text does not parse as php"
