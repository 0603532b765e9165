"""Programs are run on what their task shows; what it holds back decides no vote."""

from concurrent.futures import Future
from dataclasses import replace
from types import SimpleNamespace

import pytest
from completions import completion
from hypothesis import given
from hypothesis import strategies as st

from rlvr_exp.domains.arc.load import record_of
from rlvr_exp.domains.arc.tasks import Arc, to_task
from rlvr_exp.episodes.types import TRUNCATED
from rlvr_exp.evaluation import ballots
from rlvr_exp.evaluation.ballots import EvaluationVote, Polls
from rlvr_exp.evaluation.metrics import rates_from, task_values
from rlvr_exp.records.rollout_files import EvalSample, read_evaluation, write_evaluation
from rlvr_exp.tasks.base import Candidate
from rlvr_exp.verifiers.base import Verdict
from rlvr_exp.verifiers.execution import Execution, Executor
from rlvr_exp.verifiers.python_io import PythonIO

MIRROR = "def solve(g):\n    return [row[::-1] for row in g]\n"
TURN = "def solve(g):\n    return g[::-1]\n"
SAME = "def solve(g):\n    return g\n"
NOTHING = "def solve(g):\n    return None\n"
SLY = "def solve(g):\n    return [[1]] if g == [[5, 6]] else [row[::-1] for row in g]\n"
PROGRAMS = (MIRROR, TURN, SAME, NOTHING, SLY)
HIDDEN = object()


def task(output=((6, 5),), name="t"):
    """Rows are mirrored; two pairs are shown. `output`: the held-back one."""
    pairs = [{"input": [[1, 2]], "output": [[2, 1]]}, {"input": [[3, 4], [0, 0]], "output": [[4, 3], [0, 0]]}]
    test = {"input": [[5, 6]]} | ({} if output is HIDDEN else {"output": [list(row) for row in output]})
    return to_task(record_of({"train": pairs, "test": [test]}, "here", name, "f", ""))


def completions(programs, of=None):
    made = [completion(sample=number) for number in range(len(programs))]
    pairs = zip(made, programs, strict=True)
    return [
        replace(one, task=of or task(), candidate=Candidate(text), verdict=Verdict("passed")) for one, text in pairs
    ]


class Runs(Executor):
    """Runs programs of this file here, and records the requests."""

    def __init__(self):
        self.asked = []

    def execute(self, request):
        self.asked.append(request)
        space, outputs = {}, []
        exec(request.candidate.text, space)
        outputs = tuple(space["solve"](*case.args) for case in request.problem.cases)
        done = Future()
        done.set_result(Execution(Verdict("failed", "wrong_answer"), outputs))
        return done


def votes(executor, asked, answers=2):
    polls = Polls(executor, Arc(), answers)
    for of, made in asked:
        polls.add(of, made)
    return polls.close()


def voted(programs, of=None, answers=2, executor=None):
    of = of or task()
    (found,) = votes(executor or Runs(), [(of, completions(programs, of))], answers)
    return found


def test_programs_vote_with_their_shown_pairs():
    found = voted([TURN, TURN, SAME, MIRROR])
    (answers,) = found.answers
    assert [(one.output, one.votes, one.shown_right, one.program) for one in answers] == [
        (((6, 5),), 1, 1.0, MIRROR), (((5, 6),), 3, 0.0, SAME)
    ]  # fmt: skip
    assert found.solved_with == 1 and voted([TURN]).solved_with == 0


def test_a_second_answer_may_be_the_right_one():
    assert voted([SLY, SLY, MIRROR]).solved_with == 2
    assert voted([SLY, SLY, MIRROR], answers=1).solved_with == 0


def test_nothing_that_is_expected_is_run_with():
    """Each distinct program once, on a problem that has None in place of what is held back."""
    executor, of = Runs(), task()
    voted([MIRROR, TURN, MIRROR, MIRROR], of, executor=executor)
    assert [request.candidate.text for request in executor.asked] == [MIRROR, TURN]
    (problem,) = {id(request.problem): request.problem for request in executor.asked}.values()
    assert [case.expected for case in problem.cases] == [*(case.expected for case in of.problem.cases[:2]), None]
    assert [case.args for case in problem.cases] == [case.args for case in of.problem.cases]


@given(st.lists(st.sampled_from(PROGRAMS), max_size=6), st.integers(0, 9))
def test_another_expected_output_changes_no_answer(programs, cell):
    """Only whether they are right; where it is hidden that is not known."""
    found = voted(programs)
    for other in (((cell,),), HIDDEN):
        assert voted(programs, task(other)).answers == found.answers
    assert voted(programs, task(HIDDEN)).solved_with is None


def test_nothing_returned_is_neither_an_answer_nor_right():
    """Though nothing is what the problem expects of a held-back input."""
    test = [{"input": [[5, 6]], "output": [[6, 5]]}, {"input": [[7, 8]], "output": [[8, 7]]}]
    pair = {"input": [[1, 2]], "output": [[2, 1]]}
    of = to_task(record_of({"train": [pair], "test": test}, "here", "t", "f", ""))
    lazy = "def solve(g):\n    return [[8, 7]] if g == [[7, 8]] else None\n"
    found = voted([lazy, NOTHING], of)
    assert [[(one.votes, one.shown_right) for one in answers] for answers in found.answers] == [[], [(1, 0.0)]]
    assert found.solved_with == 0 and voted([lazy, MIRROR], of).solved_with == 1


def test_what_was_cut_off_or_is_no_program_has_no_vote():
    made = completions([MIRROR, TURN, None])
    made[1] = replace(made[1], verdict=TRUNCATED)
    (found,) = votes(Runs(), [(task(), made)])
    assert [one.output for one in found.answers[0]] == [((6, 5),)]
    assert voted([None]).answers == ((),) and voted([None]).solved_with == 0


def test_a_program_without_a_verdict_leaves_its_task_without_a_vote():
    class Broken(Runs):
        def execute(self, request):
            done = super().execute(request)
            lost = Execution(Verdict("no_verdict"), ())
            return done if request.candidate.text != TURN else completed(lost)

    assert voted([MIRROR, TURN], executor=Broken()) is None
    assert voted([MIRROR], executor=Broken()) is not None


def completed(value):
    future = Future()
    future.set_result(value)
    return future


def test_programs_that_fail_in_the_sandbox_vote_on_what_they_returned():
    limits = {"cpu_s": 0.5, "wall_s": 6.0, "memory_mb": 100, "output_kb": 16, "level": "auto", "require": ""}
    fails = "def solve(g):\n    return [row[::-1] for row in g] if len(g) == 1 else 1 / 0\n"
    with PythonIO(SimpleNamespace(workers=1, **limits)) as verifier:
        found = voted(
            [fails, MIRROR, "def solve(g) return g", "def solve(g):\n    while True: pass\n"], executor=verifier
        )
    ((answer,),) = found.answers
    assert (answer.output, answer.votes, answer.shown_right, answer.program) == (((6, 5),), 2, 0.75, MIRROR)


def evaluation(programs_of):
    made = []
    for name, (programs, output) in programs_of.items():
        of = task(output, name)
        made += [EvalSample(one, "sampled", "p") for one in completions(programs, of)]
        made.append(EvalSample(completions([MIRROR], of)[0], "greedy", "p"))
    return made


def marked(results, answers):
    votes = EvaluationVote(Runs(), Arc(), answers)
    for name in dict.fromkeys(one.completion.task.id for one in results):
        votes.answered([one for one in results if one.completion.task.id == name])
    return votes.marked(results)


RIGHT = ((6, 5),)


def test_the_rates_of_a_vote_are_over_tasks(tmp_path):
    results = evaluation(
        {
            "a": ([MIRROR, TURN], RIGHT),
            "b": ([SLY, SLY], RIGHT),
            "c": ([SLY, MIRROR], RIGHT),
            "d": ([TURN, None], RIGHT),
        }
    )
    found = marked(results, 2)
    write_evaluation(tmp_path, "after", found)
    for rows in (found, read_evaluation(tmp_path, "after")):
        assert task_values(rows, "voted_at_2") == {"a": 1.0, "b": 0.0, "c": 1.0, "d": 0.0}
        rates = rates_from(rows, ("pass_at_1", "voted_at_2", "voted_at_2_top_2"))
        assert (rates["voted_at_2"].value, rates["voted_at_2"].n, rates["voted_at_2"].samples) == (0.5, 4, 2)
        assert rates["voted_at_2"].low < 0.5 < rates["voted_at_2"].high
    assert [one.about for one in found if one.mode == "greedy"] == [None] * 4, "only the sampled ones vote"


def test_a_vote_of_another_size_is_another_metric():
    rows = marked(evaluation({"a": ([MIRROR, TURN], RIGHT)}), 1)
    assert task_values(rows, "voted_at_2") == {"a": 1.0}
    for other in ("voted_at_1", "voted_at_3", "voted_at_2_top_2"):
        assert task_values(rows, other) == {}


def test_a_task_whose_outputs_are_hidden_enters_no_rate():
    rows = marked(evaluation({"a": ([MIRROR], HIDDEN), "b": ([TURN], RIGHT)}), 2)
    assert task_values(rows, "voted_at_1") == {"b": 0.0}


@pytest.mark.parametrize("name", ["voted_at_0", "voted_at_8_top_1", "voted_at_8_top_0", "voted", "voted_at_8_greedy"])
def test_what_is_no_metric_of_a_vote_is_refused(name):
    with pytest.raises(ValueError, match=name):
        task_values([], name)


def test_the_ranks_of_a_run_share_the_programs_and_agree(monkeypatch):
    given = {
        name: ([program], RIGHT) for name, program in zip("abcde", (MIRROR, TURN, MIRROR, SLY, MIRROR), strict=True)
    }
    results, shares = evaluation(given), {}
    alone = marked(results, 1)
    monkeypatch.setattr(ballots, "ranks", lambda: 2)

    def on(rank, gather):
        monkeypatch.setattr(ballots, "rank", lambda: rank)
        monkeypatch.setattr(ballots, "all_gather_object", gather)
        return marked(results, 1)

    def first(rank):
        """What a rank sends; it is not answered."""
        with pytest.raises(ZeroDivisionError):
            on(rank, lambda outcomes: shares.update({rank: outcomes}) or 1 / 0)

    first(0), first(1)
    assert [len(shares[rank]) for rank in (0, 1)] == [3, 2]
    assert [on(rank, lambda outcomes: [shares[0], shares[1]]) for rank in (0, 1)] == [alone, alone]
