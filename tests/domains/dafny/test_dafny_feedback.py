"""Feedback for a retry: the lines of the answer, the lines that errors point to, and no line of a hidden proof."""

from dataclasses import replace

import pytest
from fake_cascade import LOOP, PROVED, WRONG, domain, tasks_of

from rlvr_exp.domains.dafny.feedback import of_body
from rlvr_exp.domains.dafny.problem import Dafny, DafnyProblem
from rlvr_exp.domains.dafny.tasks import DafnyDomain
from rlvr_exp.tasks.formats.rows import RowDomain

BAD = LOOP.replace("i + 1", "i + 2")
ENSURES = "in the given program: a\n    ensures r == 2 * n"


@pytest.fixture
def two(tmp_path):
    return domain(tmp_path)


def line_of(program: str, words: str) -> int:
    return program[: program.index(words)].count("\n") + 1


def told(two, role: str, body: str, words: str) -> str:
    """Feedback on the error `a` at the first line with those words of the judged program."""
    own, task = (two.writer if role == "writer" else two.annotator), tasks_of(two)[0]
    task = task if role == "writer" else two.annotation(task, LOOP, task.problem)
    judged = own.parse(body, task).text
    example = task.inputs.example
    inside = judged[len(example.program("")) - len(example.after) : len(judged) - len(example.after)]
    return of_body(f"line {line_of(judged, words)}: a", example, body, inside)


def test_lines_of_a_body_count_from_its_brace(two) -> None:
    assert told(two, "annotator", PROVED, "invariant") == ("line 5 of the body: a\n    invariant i <= n && r == 2 * i")
    assert told(two, "annotator", PROVED, "ensures") == told(two, "writer", BAD, "ensures") == ENSURES


@pytest.mark.parametrize("words", ["r := r + 2", "i := i + 2"])
def test_lines_after_a_grafted_annotation_are_those_that_the_writer_wrote(two, words) -> None:
    assert told(two, "writer", BAD, words) == f"line {line_of(BAD, words)} of the body: a\n    {words};"


def test_an_error_in_a_grafted_annotation_tells_nothing_of_it(two) -> None:
    found = told(two, "writer", BAD, "invariant")
    assert found == "line 4 of the body: the reference proof fails after this line\n    while i < n"


def test_a_writers_own_annotation_is_quoted(two) -> None:
    own = BAD.replace("i < n\n", "i < n\n    invariant r >= 0\n")
    assert told(two, "writer", own, "invariant r >= 0") == "line 5 of the body: a\n    invariant r >= 0"
    assert "== 2 * i" not in told(two, "writer", own, "invariant i <= n")


def test_a_body_with_the_golds_code_is_judged_as_the_gold_and_quoted_as_written(two) -> None:
    flat = LOOP.replace("\n  {", " {").replace("  r := 0;\n", "  r := 0; // a note\n\n")
    assert told(two, "writer", flat, "r := r + 2") == f"line {line_of(flat, 'r := r')} of the body: a\n    r := r + 2;"
    assert told(two, "writer", flat, "invariant").startswith("line 5 of the body: the reference proof fails")


def test_words_around_a_place_stay_and_equal_errors_are_named_once(two) -> None:
    example = tasks_of(two)[0].inputs.example
    log = "verify: with --manual-triggers, line 4: a\n  line 2: b\nline 4: a\nline 4: a\nor no place"
    assert of_body(log, example, WRONG, WRONG).splitlines() == [
        "verify: with --manual-triggers, line 2 of the body: a",
        "    r := n;",
        "  in the given program: b",
        "    ensures r == 2 * n",
        "line 2 of the body: a",
        "    r := n;",
        "or no place",
    ]


@pytest.mark.parametrize("style", ["bare", "instruct"])
def test_the_retry_shows_the_body_that_its_lines_count(tmp_path, style) -> None:
    two = domain(tmp_path)
    two.writer.prompt.style = style
    task = tasks_of(two)[0]
    chat = f"It doubles.\n```dafny\n// mine\nmethod Twice(n: nat) returns (r: nat)\n{WRONG}\n```\nDone."
    prompt = two.writer.retry_prompt(task, chat, "verify: line 4: no proof")
    assert prompt.count(WRONG) == 1 and "Done." not in prompt and "line 2 of the body: no proof" in prompt
    assert ("```dafny\n{\n  r := n;" in prompt) == (style == "instruct")


def test_a_completion_without_a_body_is_shown_as_it_is(two) -> None:
    prompt = two.writer.retry_prompt(tasks_of(two)[0], "{ r :=", "truncated: at its limit")
    assert "{ r :=\n// truncated: at its limit" in prompt


def test_feedback_on_a_program_quotes_its_lines() -> None:
    rows = RowDomain("dafny")
    task = rows.task({"id": "x", "program": "method M()\n"})
    prompt = rows.retry_prompt(
        task, "Here:\n```dafny\n\nmethod M()\n{ assert false; }\n```", "verify: line 2: no proof\nline 9: x"
    )
    assert "verify: line 2: no proof\n    { assert false; }\nline 9: x" in prompt
    assert Dafny().explained("timeout: at its limit", "method M()\n") == "timeout: at its limit"
    assert isinstance(task.problem, DafnyProblem)


def test_every_example_of_the_corpus_maps_to_its_own_lines() -> None:
    for task in DafnyDomain(role="writer", limit=20).splits()["dev"]:
        one = task.inputs.example
        body = task.gold.strip()
        judged = DafnyDomain(role="writer").parse(body, task).text
        for number, line in enumerate(judged.split("\n"), 1):
            found = of_body(
                f"line {number}: a",
                one,
                body,
                judged[len(one.before + one.header + one.spec) :][: len(judged) - len(one.program(""))],
            )
            quoted = found.partition("\n    ")[2]
            assert quoted in map(str.strip, (*body.split("\n"), *one.program("").split("\n"))), found
            if "of the body: a" in found:
                assert quoted.replace(" ", "") in line.replace(" ", "") or not quoted


@pytest.mark.parametrize("style", ["bare", "instruct"])
def test_a_teacher_sees_the_lines_of_the_attempt_never_those_of_the_solution(tmp_path, style) -> None:
    both = domain(tmp_path)
    own, task = both.writer, tasks_of(both)[0]
    own.prompt = replace(own.prompt, style=style)
    judged = own.parse(BAD, task).text
    feedback = f"line {line_of(judged, 'r := r + 2')}: a"
    alone = own.teacher_prompt(task, "", BAD, feedback)
    assert f"line {line_of(BAD, 'r := r')} of the body: a" in alone and "r := r + 2" in alone
    with_solution = own.teacher_prompt(task, LOOP, BAD, feedback)
    assert "r := r + 2" in with_solution and LOOP.strip().splitlines()[-2].strip() in with_solution
    assert ("line" in with_solution.replace(own.task_prompt(task), "")) == (style == "instruct")
