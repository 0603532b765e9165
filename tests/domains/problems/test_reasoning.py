"""Reasoning in stages: what each stage is shown, when a chain is over, who is credited with what."""

import json

import pytest
from told_episode import in_turn, told

from rlvr_exp.config.verifier import Sandbox
from rlvr_exp.core.errors import InputError
from rlvr_exp.domains.arc.tasks import Arc
from rlvr_exp.domains.problems.options import ReasoningStage
from rlvr_exp.domains.problems.reasoning import Reasoning
from rlvr_exp.domains.problems.tasks import Problems
from rlvr_exp.episodes.episode import Draws, Episode
from rlvr_exp.episodes.types import PENDING, RewardBreakdown
from rlvr_exp.verifiers.python_io import PythonIO

RIGHT, WRONG = "def twice(x):\n    return 2 * x", "def twice(x):\n    return x"
ROW = {
    "id": "t",
    "text": "Write twice(x). It returns two times x.",
    "entry_point": "twice",
    "solution": RIGHT,
    "tests": [{"args": [3], "expected": 6}],
    "shown": [{"args": [1], "expected": 2}],
    "stages": {"idea": "Double it."},
    "split": "train",
}
STAGES = {
    "idea": ReasoningStage(),
    "plan": ReasoningStage(sees=[]),
    "code": ReasoningStage(form="code", sees=["idea", "plan"]),
}


@pytest.fixture
def domain(tmp_path) -> Problems:
    (tmp_path / "rows.jsonl").write_text(json.dumps(ROW) + "\n")
    return Problems(path=str(tmp_path), reasoning=STAGES)


def played(domain: Problems, *chains: list[str]) -> tuple[Reasoning, Episode]:
    """An episode in which each sample gives its outputs in turn; "..." is one that is cut."""
    environment = Reasoning(domain)
    (task,) = domain.splits()["train"]
    with PythonIO(Sandbox(workers=1)) as verifier:
        draws, samples = Draws(0, "rollout"), range(len(chains))
        return environment, told(environment, verifier, in_turn(chains, "t"), task, draws, samples)


def test_each_stage_is_shown_the_outputs_that_it_sees_and_code_alone_is_judged(domain) -> None:
    environment, done = played(domain, ["Double it.", "1. double", RIGHT])
    first, second, third = (turn.prompt for turn in done.turns)
    assert first == "Write twice(x). It returns two times x.\ntwice(1) == 2\n[idea]\n"
    assert second.endswith("twice(1) == 2\n[plan]\n") and "Double it." not in second, "it sees nothing"
    assert third.endswith("[idea]\nDouble it.\n[plan]\n1. double\n[code]\n")
    assert [turn.completion.verdict for turn in done.turns[:2]] == [PENDING, PENDING]
    assert environment.result(done).correct and environment.result(done).tokens == 6
    assert environment.outcome(done) == {"stages": {"idea": "Double it.", "plan": "1. double", "code": RIGHT}}
    assert len({turn.key for turn in done.turns}) == 3


def test_an_output_is_credited_with_what_its_own_code_earns(domain) -> None:
    environment, done = played(domain, ["a", "b", RIGHT], ["a", "b", WRONG])
    ends = environment.rewarded(done)
    assert [done.depth(index) for index in ends] == [2, 2] and len(done.turns) == 6
    paid = {index: RewardBreakdown(float(done.turns[index].completion.correct), 1.0, {"t": 1.0}) for index in ends}
    credits = environment.credit(done, paid)
    assert sorted(credits) == list(range(6))
    for group in environment.groups(done):
        assert [credits[index].total for index in group] == [1.0, 0.0]
        assert [environment.shown(done, index).correct for index in group] == [True, False]
    assert [environment.about(done, group[0]) for group in environment.groups(done)] == [
        {"stage": "idea", "verdict_of": "code"},
        {"stage": "plan", "verdict_of": "code"},
        {"stage": "code"},
    ]


@pytest.mark.parametrize(("chain", "depth"), [(["..."], 1), (["a", ""], 2), (["a", "b", "..."], 3)])
def test_a_chain_ends_where_an_output_is_cut_or_empty(domain, chain, depth) -> None:
    environment, done = played(domain, chain, ["a", "b", RIGHT])
    short = max(index for index in environment.rewarded(done) if not done.turns[index].completion.correct)
    assert done.depth(short) + 1 == depth and done.turns[short].completion.verdict.outcome == "failed"
    assert environment.metrics([done])["episode/whole"] == (0.5 if depth < 3 else 1.0)


def test_tasks_without_stages_are_refused() -> None:
    with pytest.raises(InputError, match="these tasks are not worked out in stages"):
        Reasoning(Arc())
