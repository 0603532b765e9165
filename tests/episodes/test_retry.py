"""Retries: who is retried with which words, whose rewards are compared, which completion is the result."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thinning import tries

from rlvr_exp.algorithms.advantages import group_advantages
from rlvr_exp.algorithms.grpo import GRPO
from rlvr_exp.algorithms.training_batch import members_of, prompt_sizes, rewards_of
from rlvr_exp.curriculum.base import Uniform
from rlvr_exp.episodes.environments import Retry
from rlvr_exp.episodes.episode import POLICY, Draws
from rlvr_exp.episodes.types import Completion, RewardBreakdown, TokenSample
from rlvr_exp.rewards.compose import Reward
from rlvr_exp.rewards.terms import AllPassed
from rlvr_exp.rollouts.collect import BatchPlan, Collector, RoleRules
from rlvr_exp.rollouts.groups import GroupFilter
from rlvr_exp.rollouts.run_episodes import EpisodeRunner, Player, RolloutResult
from rlvr_exp.tasks.base import Candidate, Domain, Task
from rlvr_exp.training.step_log import StepLog, rollout_rows
from rlvr_exp.verifiers.base import Verdict

PASSED, FAILED = Verdict("passed", passed=1, total=1), Verdict("failed", "runtime_error", log="it is wrong")
SILENT = Verdict("no_verdict", log="broke")
TASK = Task("one", "f", 0.0, None, None)


class Words(Domain):
    name = "words"

    def splits(self):
        return {}

    def task_prompt(self, task):
        return f"do {task.id}"

    def retry_prompt(self, task, previous, feedback):
        return f"do {task.id} not {previous} for {feedback}"

    def parse(self, completion, task):
        return Candidate(completion)


def runner(verdict, attempts: int, best: bool = False, room: int = 1000, thoughts: str = "") -> EpisodeRunner:
    """`verdict`: of a key. `thoughts`: before each answer."""

    def generate(policy, domain, verifier, requests, sampling):
        rows = [
            tuple(
                Completion(one.task, i, TokenSample((1,), (-1.0,), False), text, Candidate("x"), verdict(key))
                for i, key in enumerate(one.keys)
                for text in [f"{thoughts}<{key[-1]}>"]
            )
            for one in requests
        ]
        return RolloutResult(tuple(rows), {"generate": 1.0, "verify": 0.0})

    policy = SimpleNamespace(model=None, encode_prompt=lambda text, tools=(): [ord(letter) for letter in text])
    return EpisodeRunner(Retry(Words(), best, attempts=attempts), {POLICY: Player(policy, None, room)}, None, generate)


def run(made: EpisodeRunner, samples=range(3)):
    (done,) = made.run([made.environment.reset(TASK, Draws(0, "rollout", (0, 0)), samples)])
    return done


def test_each_failure_is_retried_with_the_verifiers_words_and_nothing_else_is() -> None:
    verdicts = {0: PASSED, 1: FAILED, 2: SILENT}
    done = run(runner(lambda key: verdicts[key[5]] if key[-2] != "again" else FAILED, attempts=3))
    assert [(turn.parent, turn.completion.verdict) for turn in done.turns[3:]] == [(1, FAILED), (3, FAILED)]
    assert done.turns[3].prompt == "do one not <1> for runtime_error: it is wrong"
    assert [turn.key[-2:] for turn in done.turns[3:]] == [("again", 1), ("again", 2)]


def test_a_retry_shows_the_answer_without_its_thoughts() -> None:
    done = run(runner(lambda key: FAILED, attempts=2, thoughts="<think>\nHm.\n</think>\n\n"), samples=(0,))
    assert done.turns[1].prompt == "do one not <0> for runtime_error: it is wrong"


def test_the_best_of_an_attempt_is_followed_by_as_many() -> None:
    score = Verdict("failed", "wrong_answer", passed=1, total=2, log="near")
    verdicts = {1: {0: FAILED, 1: score, 2: score}, 2: {0: FAILED, 1: PASSED, 2: PASSED}}
    made = runner(lambda key: verdicts[key[-2]][key[-1]], attempts=3, best=True)
    done = run(made)
    assert [turn.parent for turn in done.turns] == [None] * 3 + [1] * 3
    assert made.environment.result(done) is done.turns[4].completion, "the first of the best"


def test_a_retry_whose_prompt_is_too_long_ends_the_branch() -> None:
    made = runner(lambda key: FAILED, attempts=3, room=len("do one"))
    done = run(made, samples=(0,))
    assert [turn.completion.verdict.bucket for turn in done.turns] == ["runtime_error", "prompt_too_long"]
    assert made.environment.result(done) is done.turns[0].completion
    assert made.environment.groups(done) == [[0]]
    assert [turn.learn for turn in done.turns] == [True, False], "nothing is learned from what was not sampled"


@settings(deadline=None, max_examples=tries(60))
@given(st.dictionaries(st.tuples(st.integers(0, 2), st.integers(0, 2)), st.sampled_from([PASSED, FAILED, SILENT])))
def test_attempts_are_compared_with_attempts_of_their_number(table) -> None:
    """Whatever passes: every completion is in one group, groups are as ragged as the failures, and batch them."""

    def verdict(key):
        number = key.count("again")
        return table.get((key[5], number), FAILED)

    made = runner(verdict, attempts=3)
    rules = {POLICY: RoleRules(GroupFilter("keep", 1e-6), lambda rewarded, _: tuple(one.total for one in rewarded))}
    reward = Reward({"passed": AllPassed(weight=1.0)})
    collector = Collector(made, {POLICY: reward}, Uniform([TASK], 0), [TASK], BatchPlan(1, 3, 1), rules, seed=0)
    rollouts = collector.collect(0)
    groups, (done,) = rollouts.groups[POLICY].batch, rollouts.episodes
    assert sum(len(group.completions) for group in groups) == len(done.turns)
    failures = [sum(one.verdict is FAILED for one in group.completions) for group in groups]
    assert [len(group.completions) for group in groups[1:]] == [count for count in failures[:2] if count]
    assert sum(prompt_sizes(groups)) == len(done.turns) and prompt_sizes(groups)[0] == 3
    advantages = group_advantages(rewards_of(groups), "group")[members_of(groups)]
    assert len(advantages) == len(done.turns)
    alone = [place for group in groups for place in [len(group.completions) == 1] * len(group.completions)]
    assert all(value == 0 for value, single in zip(advantages.tolist(), alone, strict=True) if single)


def collected(environment: type[Retry], domain: Domain | None = None):
    """A step of three completions that fail, retried once."""
    made = replace(runner(lambda key: FAILED, attempts=2), environment=environment(domain or Words(), attempts=2))
    rules = {POLICY: RoleRules(GroupFilter("keep", 1e-6), lambda rewarded, _: tuple(one.total for one in rewarded))}
    reward = Reward({"passed": AllPassed(weight=1.0)})
    return Collector(made, {POLICY: reward}, Uniform([TASK], 0), [TASK], BatchPlan(1, 3, 1), rules, seed=0).collect(0)


def test_rows_of_a_step_are_told_apart_by_group_and_sample() -> None:
    """Every retry is the first sample of its request, and all three have the same prompt."""

    class Forgetful(Words):
        def retry_prompt(self, task, previous, feedback):
            return "again"

    rows = rollout_rows(collected(Retry, Forgetful()).groups[POLICY], None, False)
    assert [(row.group, row.completion.sample, row.prompt) for row in rows[3:]] == [(1, n, "again") for n in range(3)]


def test_turns_may_be_credited_with_what_they_have_not_earned() -> None:
    class Shared(Retry):
        def rewarded(self, episode):
            return [index for index, turn in enumerate(episode.turns) if turn.parent is not None]

        def credit(self, episode, rewards):
            return {0: RewardBreakdown(0.5), 1: RewardBreakdown(None), 2: RewardBreakdown(1.0), **rewards}

    log = StepLog(False, False)
    groups = collected(Shared).groups[POLICY]
    log.record(groups, GRPO(8).experience(groups, 0))
    row = log.metrics()
    assert row["reward/mean"] == pytest.approx(1.5 / 5) and row["reward/passed"] == 0.0


def test_an_environment_that_forgets_a_turns_credit_is_told_which() -> None:
    class Forgetful(Retry):
        def credit(self, episode, rewards):
            return {0: rewards[0], 2: rewards[2]}

    with pytest.raises(TypeError, match=r"Forgetful.credit gives nothing for turns \[1\]"):
        collected(Forgetful)


def test_episodes_of_one_task_share_the_work_for_their_prompt() -> None:
    asked = []
    made = runner(lambda key: PASSED, attempts=2)
    answer = made.generate
    counting = EpisodeRunner(
        made.environment, made.players, None, lambda *given: asked.append(given[3]) or answer(*given)
    )
    begun = [made.environment.reset(TASK, Draws(0, "evaluate"), (index,)) for index in range(4)]
    done = counting.run(begun)
    assert [len(request.keys) for request in asked[0]] == [4]
    assert [(one.turns[0].key[-1], one.turns[0].completion.sample) for one in done] == [(i, 0) for i in range(4)]


def test_waves_hold_all_live_episodes() -> None:
    waves = []
    made = runner(lambda key: FAILED if key[5] else PASSED, attempts=2)
    answer = made.generate
    counting = EpisodeRunner(
        made.environment, made.players, None, lambda *given: waves.append(len(given[3])) or answer(*given)
    )
    tasks = [Task(str(number), "f", 0.0, None, None) for number in range(3)]
    counting.run(
        [made.environment.reset(task, Draws(0, "rollout", (0, 0)), (place % 2,)) for place, task in enumerate(tasks)]
    )
    assert waves == [3, 1], "only the second task's completion failed"


@pytest.mark.parametrize("bad", [{}, {"asked": 1}])
def test_a_collectors_state_is_checked(bad) -> None:
    made = runner(lambda key: PASSED, attempts=2)
    rules = {POLICY: RoleRules(GroupFilter("keep", 1e-6), lambda rewarded, _: tuple(one.total for one in rewarded))}
    reward = Reward({"passed": AllPassed(weight=1.0)})
    collector = Collector(made, {POLICY: reward}, Uniform([TASK], 0), [TASK], BatchPlan(1, 3, 1), rules, seed=0)
    with pytest.raises(Exception, match="asked, waiting"):
        collector.load_state_dict(bad)
