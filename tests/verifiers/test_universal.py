"""Fixed answers: what they are built from, that they run as intended, and that none passes an embedded task."""

import ast
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from rlvr_exp.config.verifier import Sandbox
from rlvr_exp.domains.arc.tasks import Arc
from rlvr_exp.domains.edits.action import parse_action
from rlvr_exp.domains.edits.problem import AstGrepProblem
from rlvr_exp.domains.edits.schema import ENDINGS
from rlvr_exp.tasks.base import Candidate
from rlvr_exp.tasks.formats.fields import Limits
from rlvr_exp.tasks.formats.pytest_suite import PytestProblem
from rlvr_exp.tasks.formats.python_io import Case, PythonProblem, StdinCase
from rlvr_exp.verifiers.base import Request
from rlvr_exp.verifiers.compare import equal
from rlvr_exp.verifiers.python_io import PythonIO
from rlvr_exp.verifiers.universal import KINDS, fixed_answers, wanted_names

DOUBLE = PythonProblem("double", (Case((2,), 4), Case((3,), 6)), limits=Limits(cpu_s=5.0))
METHOD = PythonProblem("Solution.double", DOUBLE.cases)
PROGRAM = PythonProblem("", (StdinCase("2\n", "4\n"), StdinCase("3\n", "6\n")))
SUITE = PytestProblem(
    "import solution\nfrom solution import f as g, C\n\ndef test():\n    assert g(1) == solution.h(2)\n"
)
EDIT = AstGrepProblem("python", "print(a)\n", "log(a)\n")


@pytest.fixture(scope="module")
def verifier() -> Iterator[PythonIO]:
    with PythonIO(Sandbox(workers=2, cpu_s=5.0, wall_s=30.0)) as verifier:
        yield verifier


@pytest.mark.parametrize("problem", [DOUBLE, METHOD, PROGRAM, SUITE], ids=["function", "method", "program", "suite"])
def test_every_answer_is_python_under_a_name_of_its_own(problem: object) -> None:
    answers = dict(fixed_answers(problem))
    assert len(answers) == len(list(fixed_answers(problem))) > 10
    for text in answers.values():
        ast.parse(text)


def test_plain_answers_are_a_part_of_all_and_none_is_none() -> None:
    plain, every = ({name for name, _ in fixed_answers(DOUBLE, kind)} for kind in KINDS[1:])
    assert plain < every and {"none", "first_argument"} <= plain and {"liar", "walks_frames"} <= every - plain
    assert not list(fixed_answers(DOUBLE, "none")) and not list(fixed_answers(object()))


def test_the_names_of_a_suite_are_those_that_it_takes_from_the_solution() -> None:
    assert set(wanted_names(SUITE)) == {"f", "C", "h"}
    assert wanted_names(PytestProblem("def test(: pass")) == ()
    assert "f = _answer" in dict(fixed_answers(SUITE))["none"] and "g = " not in dict(fixed_answers(SUITE))["none"]


def test_answers_do_what_their_names_say(verifier: PythonIO) -> None:
    """On a problem that each answer's own value solves: otherwise a broken answer would never pass, either."""
    answers = dict(fixed_answers(DOUBLE))
    right = {"none": None, "true": True, "zero": 0, "empty_list": [], "empty_text": "", "first_argument": 2}
    for entry_point in ("double", "Solution.double"):
        for name, value in right.items():
            problem = PythonProblem(entry_point, (Case((2,), value),))
            text = dict(fixed_answers(problem))[name]
            assert verifier.verify([Request(problem, Candidate(text))])[0].outcome == "passed", name
    constant = PythonProblem("double", (Case((2,), 4),))
    naive: dict[str, object] = {}
    exec(answers["liar"], naive)
    assert naive["double"](2) == 4 and not naive["double"](2) != 4  # type: ignore[operator]  # noqa: SIM202
    assert verifier.verify([Request(constant, Candidate(answers["liar"]))])[0].outcome == "failed"


def test_frames_are_walked_as_they_would_be_in_plain_python() -> None:
    for name in ("walks_frames", "walks_frames_by_traceback", "walks_frames_by_ctypes"):
        names: dict[str, object] = {}
        exec(dict(fixed_answers(DOUBLE))[name], names)
        test: dict[str, object] = {"double": names["double"]}
        exec("def test():\n    assert double(2) == 4321", test)
        test["test"]()  # type: ignore[operator]


@pytest.mark.slow
@pytest.mark.parametrize("problem", [DOUBLE, METHOD, PROGRAM], ids=["function", "method", "program"])
def test_no_fixed_answer_passes_and_the_next_honest_one_does(verifier: PythonIO, problem: PythonProblem) -> None:
    answers = list(fixed_answers(problem))
    verdicts = verifier.verify([Request(problem, Candidate(text)) for _, text in answers])
    assert [name for (name, _), verdict in zip(answers, verdicts, strict=True) if verdict.outcome == "passed"] == []
    assert all(verdict.outcome != "no_verdict" for verdict in verdicts)
    honest = "def double(x): return 2 * x\nclass Solution:\n    def double(self, x): return 2 * x\n"
    honest = honest if problem.entry_point else "print(2 * int(input()))"
    assert verifier.verify([Request(problem, Candidate(honest))])[0].outcome == "passed"


def test_no_task_of_the_embedded_corpus_expects_a_fixed_answer() -> None:
    """All tasks, by comparison alone; the next test runs some of them in the sandbox."""
    tasks = [task for tasks in Arc().splits().values() for task in tasks]
    assert len(tasks) > 10_000
    for value in (None, True, False, 0, 1, -1, "", [], [[]], {}):
        assert not [task.id for task in tasks if all(equal(value, case.expected) for case in task.problem.cases)]
    for place in (0, -1):
        same = [t.id for t in tasks if all(equal(case.args[place], case.expected) for case in t.problem.cases)]
        assert same == []


@pytest.mark.slow
def test_no_fixed_answer_passes_a_task_of_the_embedded_corpus(verifier: PythonIO) -> None:
    tasks = [tasks[0] for tasks in Arc(limit=1).splits().values()]
    requests = [Request(task.problem, Candidate(text)) for task in tasks for _, text in fixed_answers(task.problem)]
    outcomes = {verdict.outcome for verdict in verifier.verify(requests)}
    assert outcomes == {"failed"} and len(requests) > 80 * len(tasks)


def test_a_suite_that_imports_all_takes_what_it_does_not_bind() -> None:
    suite = PytestProblem(
        "import math\nfrom solution import *\n\ndef test(a=1):\n    b = f(a)\n    assert math.sqrt(b) == len(C(b))\n"
    )
    assert wanted_names(suite) == ("C", "f")


EDIT_STRICT = AstGrepProblem(
    "python",
    "def f(x):\n    return x\n",
    "",
    "from solution import *\n\ndef test():\n    assert f(3) == 6\n    assert f(5) == 10\n",
)
EDIT_TESTED = replace(
    EDIT, before="def f(x):\n    return 0\n", after="", tests="from solution import f\ndef test(): f(1)\n"
)


def test_an_edit_with_tests_has_the_programs_of_other_suites_too() -> None:
    programs = dict(fixed_answers(PytestProblem(EDIT_TESTED.tests), "plain"))
    actions = dict(fixed_answers(EDIT_TESTED, "plain"))
    texts = dict(fixed_answers(replace(EDIT_TESTED, answer="text"), "plain"))
    for name, program in programs.items():
        assert texts[f"program_{name}"] == program == json.loads(actions[f"program_{name}"])["fix"]
    assert actions.keys() == texts.keys() == {*dict(fixed_answers(EDIT)), *(f"program_{name}" for name in programs)}


@pytest.fixture(scope="module")
def edits() -> Iterator[Any]:
    pytest.importorskip("ast_grep_py")
    from rlvr_exp.domains.edits.verifier import AstGrep

    with AstGrep(Sandbox(workers=1)) as verifier:
        yield verifier


SOURCES = dict.fromkeys(ENDINGS, "a = 1\n") | {
    "c": "int a;\n",
    "cpp": "int a;\n",
    "csharp": "class A {}\n",
    "css": "a {}\n",
    "dart": "main() {}\n",
    "go": "package a\n",
    "java": "class A {}\n",
    "json": "1\n",
    "kotlin": "val a = 1\n",
    "nix": "1\n",
    "php": "<?php a();\n",
    "rust": "fn a() {}\n",
    "scala": "val a = 1\n",
    "solidity": "contract A {}\n",
    "zig": "const a = 1;\n",
}


@pytest.mark.parametrize("language", SOURCES)
def test_fixed_actions_do_what_their_names_say(edits: Any, language: str) -> None:
    """By what ast-grep makes of them: an action that it refuses would never pass, whatever it means to do."""
    before = SOURCES[language]
    answers = dict(fixed_answers(AstGrepProblem(language, before, before)))

    def edited(name: str) -> str:
        return edits.edited_text(before, parse_action(answers[name], language))

    for name in ("done", "changes_nothing", "matches_nothing", "without_a_fix"):
        assert edited(name) == before, name
    assert edited("deletes_everything") == "" and edited("opens_a_comment") == "/*"
    assert edited("leaves_what_no_parser_reads").startswith("<?php (((")


@pytest.mark.parametrize(
    ("name", "reason", "steps"),
    [
        ("no_text", "parse", (0, 0, 0)),
        ("no_rule", "parse", (0, 0, 0)),
        ("empty_object", "parse", (0, 0, 0)),
        ("null", "parse", (0, 0, 0)),
        ("done", "wrong_answer", (1, 1, 1)),
        ("changes_nothing", "wrong_answer", (1, 1, 1)),
        ("matches_nothing", "wrong_answer", (1, 1, 0)),
        ("without_a_fix", "wrong_answer", (1, 0, 0)),
        ("deletes_everything", "wrong_answer", (1, 1, 1)),
        ("leaves_what_no_parser_reads", "wrong_answer", (1, 1, 1)),
        ("opens_a_comment", "wrong_answer", (1, 1, 1)),
        ("reads_a_file", "file-access", (0, 0, 0)),
    ],
)
def test_fixed_actions_come_as_far_as_they_mean_to(edits: Any, name: str, reason: str, steps: tuple[int, ...]) -> None:
    verdict = edits.submit(Request(EDIT, Candidate(dict(fixed_answers(EDIT))[name]))).result(timeout=60)
    assert (verdict.reason, *(verdict.measures[step] for step in ("parses", "valid", "applies"))) == (reason, *steps)


@pytest.mark.slow
def test_no_fixed_answer_passes_an_edit_with_tests(edits: Any) -> None:
    for problem in (EDIT_STRICT, replace(EDIT_STRICT, answer="text")):
        requests = [Request(problem, Candidate(text)) for _, text in fixed_answers(problem)]
        assert {verdict.outcome for verdict in edits.verify(requests)} <= {"failed", "rejected"}


def test_no_fixed_action_passes_an_edit() -> None:
    pytest.importorskip("ast_grep_py")
    from rlvr_exp.domains.edits.verifier import AstGrep

    requests = [Request(EDIT, Candidate(text)) for _, text in fixed_answers(EDIT)]
    for compare in ("text", "text_loose", "syntax"):
        with AstGrep(Sandbox(workers=1), compare=compare) as verifier:
            outcomes = [verdict.outcome for verdict in verifier.verify(requests)]
        assert set(outcomes) <= {"failed", "rejected"} and len(outcomes) > 5
