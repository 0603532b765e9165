"""A solver against a tester: who is asked what, which tests count, who is credited with what."""

import json
from types import SimpleNamespace

import pytest

from rlvr_exp.config.problems import ReasoningStage
from rlvr_exp.config.verifier import Sandbox
from rlvr_exp.core.errors import InputError
from rlvr_exp.episodes.environments.adversarial import SOLVER, TESTER, Adversarial
from rlvr_exp.episodes.episode import Draws, Episode
from rlvr_exp.episodes.types import PENDING, TRUNCATED, Completion, RewardBreakdown, TokenSample
from rlvr_exp.rollouts.rollout_loop import DeferredVerifier, RolloutResult
from rlvr_exp.rollouts.run_episodes import EpisodeRunner, Player
from rlvr_exp.tasks.arc.domain import Arc
from rlvr_exp.tasks.problems.domain import Problems
from rlvr_exp.verifiers.base import Request, Verdict
from rlvr_exp.verifiers.execution import KeepsOutputs
from rlvr_exp.verifiers.python_tests import PythonTests

RIGHT, NEGATIVE, ZERO = (
    "def size(x):\n    return abs(x)",
    "def size(x):\n    return x",
    "def size(x):\n    return abs(x) or 1",
)
ROW = {
    "id": "t",
    "text": "Write size(x). It returns x without its sign.",
    "entry_point": "size",
    "solution": RIGHT,
    "tests": [{"args": [3], "expected": 3}, {"args": [-3], "expected": 3}],
    "split": "train",
}
STAGES = {"plan": ReasoningStage(), "code": ReasoningStage(form="code")}


@pytest.fixture(scope="module")
def verifier():
    with PythonTests(Sandbox(workers=1)) as one:
        yield KeepsOutputs(one, "environment", remember=False)


@pytest.fixture
def domain(tmp_path) -> Problems:
    (tmp_path / "rows.jsonl").write_text(json.dumps(ROW) + "\n")
    return Problems(path=str(tmp_path), reasoning=STAGES)


def played(verifier, domain: Problems, codes: list[str], tests: list[str], sets: int | None = None):
    """An episode of chains with these programs, and sets of tests in turn; "..." is an answer that is cut."""
    written = iter(tests)

    def generate(policy, own, verifier, requests, sampling):
        rows = []
        for one in requests:
            rows.append([])
            for key in one.keys:
                stage = one.task.inputs.stage
                text = (
                    next(written)
                    if stage == "tests"
                    else "1. plan"
                    if stage == "plan"
                    else codes[key[key.index("t") + 1]]
                )
                candidate = own.parse(text, one.task)
                verdict = TRUNCATED if text == "..." else PENDING
                if verdict == PENDING and candidate.text is None:
                    verdict = Verdict("failed", "parse")
                elif verdict == PENDING and not isinstance(verifier, DeferredVerifier):
                    verdict = verifier.submit(Request(one.task.problem, candidate)).result(timeout=60)
                rows[-1].append(
                    Completion(one.task, 0, TokenSample((1,), (-1.0,), text == "..."), text, candidate, verdict)
                )
        return RolloutResult(tuple(map(tuple, rows)), {"generate": 1.0, "verify": 0.0})

    policy = SimpleNamespace(model=None, encode_prompt=lambda text: [ord(letter) for letter in text])
    environment = Adversarial(domain, tests=sets or len(tests))
    players = {role: Player(policy, None, 1000) for role in (SOLVER, TESTER)}
    (task,) = domain.splits()["train"]
    runner = EpisodeRunner(environment, players, verifier, generate)
    (done,) = runner.run([environment.reset(task, Draws(0, "rollout"), range(len(codes)))])
    return environment, done


def credits_of(environment: Adversarial, done: Episode, role: str) -> list[float | None]:
    """By sample: of each chain's program, or of each set of tests."""
    found = environment.credit(done, {})
    places = (
        environment.ends(done)
        if role == SOLVER
        else [index for index, turn in enumerate(done.turns) if turn.role == TESTER]
    )
    return [found[place].total for place in places]


def test_every_set_runs_against_every_program_and_each_is_paid_by_what_the_other_did(verifier, domain) -> None:
    sets = ["size(-2) == 2\nsize(3) == 3", "size(0) == 0", "size(-1) == -1\nsize(-5) == 5"]
    environment, done = played(verifier, domain, [NEGATIVE, RIGHT, ZERO, NEGATIVE], sets)
    matrix = environment.matrix(done)
    assert matrix.programs == (NEGATIVE, RIGHT, ZERO) and matrix.valid == (2, 1, 1)
    assert matrix.caught == ((1, 0, 0), (0, 0, 1), (1, 0, 0)) and matrix.wrong == [0, 2]
    assert credits_of(environment, done, SOLVER) == [0.5, 1.0, 0.75, 0.5]
    assert credits_of(environment, done, TESTER) == [0.5, 0.5, 0.25]
    prompt = next(turn.prompt for turn in done.turns if turn.role == TESTER)
    assert prompt.endswith(f"[code]\n{NEGATIVE}\n[tests]\n"), "the first attempt is shown"
    groups = environment.groups(done)
    assert [len(group) for group in groups] == [4, 4, 3] and environment.rewarded(done) == ()
    assert set(environment.credit(done, {})) == {index for group in groups for index in group}
    found = environment.metrics([done])
    assert found["adversarial/validity"] == pytest.approx((1 + 1 + 0.5) / 3)
    assert found["adversarial/hidden"] == pytest.approx((0.5 + 1 + 1 + 0.5) / 4)
    assert found["adversarial/gap"] == pytest.approx(0.6875 - 0.75)


def test_the_hidden_tests_are_never_paid(verifier, domain) -> None:
    """Weak tests: the wrong program earns as much as the right one, and the gap shows it."""
    environment, done = played(verifier, domain, [NEGATIVE, RIGHT], ["size(3) == 3", "size(4) == 4"])
    assert credits_of(environment, done, SOLVER) == [1.0, 1.0]
    assert credits_of(environment, done, TESTER) == [None, None], "no program is wrong, as far as anybody knows"
    assert environment.metrics([done])["adversarial/gap"] == 0.25
    ends = environment.ends(done)
    assert [environment.shown(done, index).correct for index in ends] == [False, True]


@pytest.mark.parametrize(
    ("tests", "paid"),
    [
        (["size(-2) == -2", "size(-2) == 2"], [0.0, 1.0]),
        (["print(size(-2))", "size(-2) == 2"], [0.0, 1.0]),
        (["import os\nsize(-2) == 2", "size(-2) == 2"], [0.5, 1.0]),
        (["size(-2) == 2\nsize(-2) == 2", "size(-2) == 2"], [0.5, 1.0]),
        (["size(2) == 2", "size(-2) == 2"], [0.0, 1.0]),
        (["True == True", "size(-2) == 2"], [0.0, 1.0]),
        (["...", "size(-2) == 2"], [0.0, 1.0]),
    ],
)
def test_tests_that_are_invalid_repeated_or_catch_nothing_are_paid_less(verifier, domain, tests, paid) -> None:
    environment, done = played(verifier, domain, [NEGATIVE, RIGHT], tests)
    assert credits_of(environment, done, TESTER) == paid
    assert credits_of(environment, done, SOLVER)[1] == 1.0, "no tester can make a right program lose"


def test_where_no_test_is_valid_nothing_is_learned_of_programs(verifier, domain) -> None:
    environment, done = played(verifier, domain, [NEGATIVE, RIGHT], ["size(2) == 3", "nonsense"])
    assert credits_of(environment, done, SOLVER) == [None, None] and credits_of(environment, done, TESTER) == [
        None,
        None,
    ]


def test_a_chain_without_a_program_earns_nothing_where_others_are_tested(verifier, domain) -> None:
    environment, done = played(
        verifier, domain, ["...", "def size(:", RIGHT, NEGATIVE], ["size(-2) == 2", "size(0) == 0"]
    )
    assert credits_of(environment, done, SOLVER) == [0.0, 0.0, 1.0, 0.5]
    alone, empty = played(verifier, domain, ["..."], [])
    assert not alone.programs(empty) and {turn.role for turn in empty.turns} == {SOLVER}
    assert [paid.total for paid in alone.credit(empty, {}).values()] == [None, None]


def test_one_chain_that_is_measured_has_one_set_of_tests_beside_it(verifier, domain) -> None:
    environment, done = played(verifier, domain, [NEGATIVE], ["size(-2) == 2"], sets=4)
    assert environment.result(done).verdict.score == 0.5, "success is that of the hidden tests"
    told = environment.outcome(done)
    assert told["tests"] == "size(-2) == 2" and told["validity"] == 1.0 and told["pass_rate"] == 0.0
    assert environment.about(done, len(done.turns) - 1) == {"role": TESTER}


def test_tasks_for_which_no_tests_can_be_written_are_refused() -> None:
    with pytest.raises(InputError, match="these tasks are not worked out in stages"):
        Adversarial(Arc())


def test_credit_is_a_breakdown_without_terms(verifier, domain) -> None:
    environment, done = played(verifier, domain, [NEGATIVE, RIGHT], ["size(-2) == 2", "size(0) == 0"])
    assert all(isinstance(one, RewardBreakdown) and one.sum is None for one in environment.credit(done, {}).values())
