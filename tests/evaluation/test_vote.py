"""Votes of programs: the rule itself, and programs that run on what a task shows."""

from concurrent.futures import Future
from dataclasses import replace
from itertools import groupby
from types import SimpleNamespace

import pytest
from completions import completion
from hypothesis import given
from hypothesis import strategies as st

from rlvr_exp.domains.arc.load import record_of
from rlvr_exp.domains.arc.tasks import Arc, to_task
from rlvr_exp.episodes.types import TRUNCATED
from rlvr_exp.evaluation.metrics import rates_from, task_values
from rlvr_exp.evaluation.vote import Ballot, EvaluationVote, Polls, VotedAnswer, solved_with, vote
from rlvr_exp.records.rollout_files import EvalSample, read_evaluation, write_evaluation
from rlvr_exp.tasks.base import Candidate
from rlvr_exp.verifiers.base import Execution, Executor, Verdict
from rlvr_exp.verifiers.python_io import PythonIO


def ballot(output, shown_right=0, program="", *more):
    return Ballot(program or f"{output}:{shown_right}", (output, *more), shown_right)


def outputs(voted):
    return [[one.output for one in answers] for answers in voted]


def test_equal_outputs_add_up_and_shown_cases_weigh_a_thousand_times_more():
    ballots = [ballot("a", 3), ballot("b", 3), ballot("b", 3), ballot("c"), ballot("c"), ballot("c"), ballot("c")]
    (found,) = vote(ballots, 1, 3, 3)
    assert [(one.output, one.votes, one.shown_right, one.weight) for one in found] == [
        ("b", 2, 1.0, 1002), ("a", 1, 1.0, 1001), ("c", 4, 0.0, 4)
    ]  # fmt: skip


def test_the_share_of_an_output_is_the_mean_of_its_programs():
    """One that has all of the shown cases right does not carry three that have none."""
    ballots = [ballot("a", 4), *[ballot("a", 0, "other")] * 3, ballot("b", 2)]
    (found,) = vote(ballots, 1, 4, 2)
    assert [(one.output, one.weight) for one in found] == [("b", 501), ("a", 254)]


def test_the_program_that_stands_for_an_output_is_the_one_most_right_then_the_shortest():
    ballots = [ballot("a", 1, "x"), ballot("a", 2, "longer"), ballot("a", 2, "short"), ballot("a", 2, "shoos")]
    assert vote(ballots, 1, 2, 1)[0][0].program == "shoos"


def test_a_tie_goes_to_the_shorter_program():
    ballots = [ballot("a", 1, "return long"), ballot("b", 1, "return b")]
    assert outputs(vote(ballots, 1, 2, 2)) == outputs(vote(ballots[::-1], 1, 2, 2)) == [["b", "a"]]


def test_each_input_has_a_vote_of_its_own_and_no_output_is_no_vote():
    ballots = [ballot("a", 2, "p", None), ballot(None, 0, "q", "y"), ballot("b", 1, "r", None)]
    assert outputs(vote(ballots, 2, 2, 2)) == [["a", "b"], ["y"]]
    assert vote([], 2, 2, 2) == ((), ())


@pytest.mark.parametrize(
    ("voted", "fewest"),
    [
        ([["a", "b"], ["x", "y"]], 1),
        ([["b", "a"], ["x", "y"]], 2),
        ([["b", "a"], ["y", "x"]], 2),
        ([["a", "b"], ["y", "z"]], 0),
        ([["a"], []], 0),
    ],
)
def test_every_input_needs_a_right_answer(voted, fewest):
    answers = [[VotedAnswer(one, 1, 0.0, "") for one in of_input] for of_input in voted]
    assert solved_with(answers, ["a", "x"]) == fewest


@st.composite
def polls(draw):
    """Ballots on two inputs of a task that shows 3; a program says the same each time."""
    said = st.tuples(*[st.sampled_from("abc") | st.none()] * 2)
    programs = draw(st.dictionaries(st.text("pqr", min_size=1, max_size=3), st.tuples(said, st.integers(0, 3))))
    names = draw(st.lists(st.sampled_from(sorted(programs)), max_size=12)) if programs else []
    return [Ballot(name, *programs[name]) for name in names]


@given(polls(), st.randoms(), st.integers(1, 4))
def test_the_order_of_the_ballots_decides_nothing(ballots, rng, answers):
    shuffled = rng.sample(ballots, len(ballots))
    assert vote(shuffled, 2, 3, answers) == vote(ballots, 2, 3, answers)


@given(polls(), st.integers(1, 4))
def test_the_answers_are_those_of_most_weight(ballots, answers):
    for place, found in enumerate(vote(ballots, 2, 3, answers)):
        said = sorted((one.outputs[place], one.shown_right) for one in ballots if one.outputs[place] is not None)
        weights = {}
        for output, own in groupby(said, key=lambda pair: pair[0]):
            right = [share for _, share in own]
            weights[output] = len(right) + 1000 * sum(right) / (3 * len(right))
        assert len(found) == min(answers, len(weights))
        assert [one.weight for one in found] == pytest.approx(sorted(weights.values(), reverse=True)[:answers])
        assert {one.output: one.weight for one in found}.items() <= {
            one: pytest.approx(weight) for one, weight in weights.items()
        }.items()
        assert sum(one.votes for one in found) <= len(said)


@given(polls())
def test_fewer_answers_are_the_first_of_more(ballots):
    many = vote(ballots, 2, 3, 4)
    assert vote(ballots, 2, 3, 2) == tuple(answers[:2] for answers in many)


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
    monkeypatch.setattr(f"{Polls.__module__}.ranks", lambda: 2)

    def on(rank, gather):
        monkeypatch.setattr(f"{Polls.__module__}.rank", lambda: rank)
        monkeypatch.setattr(f"{Polls.__module__}.all_gather_object", gather)
        return marked(results, 1)

    def first(rank):
        """What a rank sends; it is not answered."""
        with pytest.raises(ZeroDivisionError):
            on(rank, lambda outcomes: shares.update({rank: outcomes}) or 1 / 0)

    first(0), first(1)
    assert [len(shares[rank]) for rank in (0, 1)] == [3, 2]
    assert [on(rank, lambda outcomes: [shares[0], shares[1]]) for rank in (0, 1)] == [alone, alone]
