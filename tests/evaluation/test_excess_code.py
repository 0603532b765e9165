"""Excess code: the published figure by the published procedure, the strict one, and which completions have any."""

import difflib
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from completions import completion
from excess_code_golds import published
from hypothesis import given
from hypothesis import strategies as st

from rlvr_exp.config.verifier import Sandbox
from rlvr_exp.evaluation import excess_code
from rlvr_exp.evaluation.arms import arms
from rlvr_exp.evaluation.excess_code import EvaluationExcess, counts, diff, excess_section
from rlvr_exp.evaluation.metrics import rates_from, task_values
from rlvr_exp.evaluation.paired import paired
from rlvr_exp.evaluation.saved import save
from rlvr_exp.records.rollout_files import EvalSample, read_evaluation
from rlvr_exp.tasks.base import Candidate, EditWithTests
from rlvr_exp.verifiers.base import Execution, Request, Verdict
from rlvr_exp.verifiers.futures import completed_future
from rlvr_exp.verifiers.line_coverage import LineCoverage, LineCoverageRunner

BEFORE = "def double(x):\n    return x + x\n\n\ndef other(x):\n    return x"
HIDDEN = "### START TESTS ###\nif True:  # pragma: no cover\n    assert double(2) == 4\n    if False:\n        pass\n"
SHOWN = "### START TESTS ###\nif True:\n    assert double(2) == 4\n    if double(1) == 3:\n        print()\n"
EDITS = {
    "nothing more": BEFORE.replace("x + x", "2 * x"),
    "a function": BEFORE.replace("x + x", "2 * x")
    + "\n\n\ndef new(x):\n    half = x / 2\n\n    # why\n    return half",
    "a branch": BEFORE.replace("return x + x", "if x < 0:\n        return -1\n    return 2 * x"),
    "hidden": BEFORE.replace("x + x", "2 * x") + "\n\ndef new(x):  # pragma: no cover\n    return x",
    "shorter": "def double(x):\n    return x + x",
}
LINES = st.lists(st.sampled_from(["", "a", "b", "    c", "- d", "? e", "+ f"]), max_size=8)


@pytest.fixture(scope="module")
def runner() -> Iterator[LineCoverageRunner]:
    with closing(LineCoverageRunner(Sandbox(workers=1))) as found:
        yield found


def edit_of(after: str, tests: str = HIDDEN) -> EditWithTests:
    return EditWithTests(BEFORE, after, f"{after}\n{tests}")


@given(LINES, LINES)
def test_added_lines_leave_lines_of_before_in_their_order(before: list[str], after: list[str]) -> None:
    found = diff("\n".join(before), "\n".join(after))
    first, second = ("\n".join(lines).splitlines() for lines in (before, after))
    kept = [line for number, line in enumerate(second, 1) if number not in found.added]
    rest = iter(first)
    assert all(line in rest for line in kept) and found.added <= set(range(1, len(second) + 1))
    assert found.lines == len(list(difflib.Differ().compare(first, second)))


@pytest.mark.parametrize("tests", [HIDDEN, SHOWN])
@pytest.mark.parametrize("kind", EDITS)
def test_it_is_what_the_published_procedure_gives(runner: LineCoverageRunner, kind: str, tests: str) -> None:
    edit = edit_of(EDITS[kind], tests)
    found = counts(edit, runner.measure(edit.script).result())
    assert found is not None and found["uncovered"] / found["diff"] == published(edit)


@pytest.mark.parametrize(
    ("kind", "uncovered", "strict"),
    [("nothing more", 1, (0, 1)), ("a function", 5, (2, 4)), ("a branch", 2, (1, 3)), ("hidden", 1, (1, 3))],
)
def test_strictly_only_added_statements_count_and_pragmas_do_not(
    runner: LineCoverageRunner, kind: str, uncovered: int, strict: tuple[int, int]
) -> None:
    """One line of `other`, which was there before, is covered by no test."""
    edit = edit_of(EDITS[kind])
    found = counts(edit, runner.measure(edit.script).result())
    assert found is not None and found["uncovered"] == uncovered
    assert (found["uncovered_added"], found["added"]) == strict


class Measures:
    """Finds three listed lines, one of them a statement, in whatever it runs; keeps the scripts."""

    def __init__(self) -> None:
        self.scripts: list[str] = []

    def measure(self, script: str) -> Future[LineCoverage | None]:
        self.scripts.append(script)
        done: Future[LineCoverage | None] = Future()
        lines = LineCoverage(frozenset({1, 2, 3}), frozenset({1, 2}), frozenset({1}))
        done.set_result(None if "broken" in script else lines)
        return done


class Edits:
    """Edits of an empty program; a program that says so is none."""

    def edit_with_tests(self, task, program: str) -> EditWithTests | None:
        return None if "no edit" in program else EditWithTests("", program, program + "\nTESTS")


def samples(*programs: str, task: str = "t", failed: Sequence[int] = ()) -> list[EvalSample]:
    made = []
    for number, program in enumerate(programs):
        verdict = Verdict("failed", "wrong_answer") if number in failed else Verdict("passed")
        one = replace(completion(task, sample=number), candidate=Candidate(program), verdict=verdict)
        made.append(EvalSample(one, "sampled", "prompt"))
    return made


def measured(results: list[EvalSample]) -> tuple[list[EvalSample], list[str]]:
    runner = Measures()
    excess = EvaluationExcess(runner, Edits())  # type: ignore[arg-type]
    for task in dict.fromkeys(one.completion.task.id for one in results):
        excess.answered([one for one in results if one.completion.task.id == task])
    return excess.marked(results), runner.scripts


def test_passing_completions_are_measured_each_distinct_program_once() -> None:
    greedy = replace(samples("d = 1")[0], mode="greedy")
    found, scripts = measured([greedy, *samples("a = 1", "b = 1", "a = 1", "broken", "no edit", failed=[1])])
    assert scripts == ["a = 1\nTESTS", "broken\nTESTS"]
    assert [one.about is not None for one in found] == [False, True, False, True, False, False]
    assert found[1].about == {"excess_code": {"uncovered": 3, "diff": 1, "uncovered_added": 1, "added": 1}}
    section = excess_section(found)
    assert (section["passed"], section["measured"]) == (4, 2)


class Doubles:
    """Makes a program of an action: the action twice; of one that says so none."""

    def execute(self, request: Request) -> Future[Execution]:
        text = str(request.candidate.text)
        return completed_future(Execution(Verdict("passed"), () if "no edit" in text else (text + text,)))


def test_what_runs_is_the_program_that_an_action_makes() -> None:
    runner = Measures()
    excess = EvaluationExcess(runner, Edits(), Doubles())  # type: ignore[arg-type]
    answered = samples("a\n", "no edit", "b\n")
    excess.answered(answered)
    assert [one.about is not None for one in excess.marked(answered)] == [True, False, True]
    assert runner.scripts == ["a\na\n\nTESTS", "b\nb\n\nTESTS"]


def test_a_task_without_a_measured_completion_is_in_no_rate_and_tasks_count_once() -> None:
    results = samples("a\nb\nc\nd", "a\nb\nc", task="two") + samples("a", task="none", failed=[0])
    found, _ = measured(results)
    assert task_values(found, "excess_code") == {"two": pytest.approx((3 / 4 + 3 / 3) / 2)}
    assert task_values(found, "excess_code_strict") == {"two": 0.5}
    rates = rates_from(found, ("pass_at_1", "excess_code"))
    assert rates["excess_code"].n == 1 and rates["pass_at_1"].n == 2


def test_an_edit_that_adds_no_statement_has_no_strict_share() -> None:
    found, _ = measured(samples(""))
    assert found[0].about == {"excess_code": {"uncovered": 3, "diff": 0, "uncovered_added": 0, "added": 0}}
    assert task_values(found, "excess_code") == task_values(found, "excess_code_strict") == {}


def test_less_is_better_where_two_are_compared_and_files_keep_it(tmp_path: Path) -> None:
    more, _ = measured(samples("a\nb\nc"))
    less, _ = measured(samples("a\nb\nc\nd\ne"))
    change = paired(more, less, "excess_code")
    assert change.value == pytest.approx(3 / 5 - 1) and (change.won, change.lost) == (1, 0)
    for name, results in (("first", more), ("second", less)):
        save(tmp_path / name, "after", results, ("excess_code",))
        assert [one.about for one in read_evaluation(tmp_path / name, "after")] == [one.about for one in results]
    _, second = arms(["first", "second"], [0, 0], [tmp_path / "first", tmp_path / "second"])
    assert second.against_first["excess_code"]["won"] == 1


def test_the_ranks_of_a_run_share_the_programs_and_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    results = [one for name in "abc" for one in samples(f"{name} = 1", "x = 1", task=name)]
    alone, _ = measured(results)
    monkeypatch.setattr(excess_code, "ranks", lambda: 2)
    shares: dict[int, list] = {}

    def on(rank: int, gather) -> tuple[list[EvalSample], list[str]]:
        monkeypatch.setattr(excess_code, "rank", lambda: rank)
        monkeypatch.setattr(excess_code, "all_gather_object", gather)
        return measured(results)

    for rank in (0, 1):  # What it sends; it is not answered.
        with pytest.raises(ZeroDivisionError):
            on(rank, lambda found, rank=rank: shares.update({rank: found}) or 1 / 0)
    found = [on(rank, lambda _: [shares[0], shares[1]]) for rank in (0, 1)]
    assert [results for results, _ in found] == [alone, alone]
    assert [len(scripts) for _, scripts in found] == [4, 2]
