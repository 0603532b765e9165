"""Tasks, completions and verdicts without a model: a task's completions depend only on its id and their keys."""

from collections.abc import Sequence
from types import SimpleNamespace

from rlvr_exp.core.seeds import uniform
from rlvr_exp.curriculum.base import Curriculum, Uniform
from rlvr_exp.episodes.environments import SingleTurn
from rlvr_exp.episodes.episode import POLICY
from rlvr_exp.episodes.types import Completion, TokenSample
from rlvr_exp.rewards.compose import Reward
from rlvr_exp.rewards.terms import AllPassed
from rlvr_exp.rollouts.collect import BatchPlan, Collector, RoleRules
from rlvr_exp.rollouts.groups import GroupFilter
from rlvr_exp.rollouts.run_episodes import EpisodeRunner, Player, RolloutRequest, RolloutResult
from rlvr_exp.tasks.base import Candidate, Task
from rlvr_exp.verifiers.base import Verdict

SHARES = (0.0, 1.0, 0.5)
"""Shares of completions that pass: tasks are always failed, always solved, or between."""


def tasks(count: int, prompts: int) -> list[Task]:
    """`prompts`: the number of different prompts among them."""
    return [Task(f"task{i}", "fg"[i % 2], SHARES[i % 3], inputs=i % prompts, problem=None) for i in range(count)]


def fake_generate_and_verify(policy, domain, verifier, requests: Sequence[RolloutRequest], sampling) -> RolloutResult:
    rows = [tuple(_answer(q.task, sample, key) for sample, key in enumerate(q.keys)) for q in requests]
    return RolloutResult(tuple(rows), {"generate": 1.0, "verify": 0.5})


def _answer(task: Task, sample: int, key) -> Completion:
    length = 1 + int(uniform(*key, "length") * 4)
    ids = tuple(int(uniform(*key, place) * 9) for place in range(length))
    sampled = TokenSample(ids, tuple(-uniform(*key, place) for place in range(length)), False)
    return Completion(task, sample, sampled, f"text {ids}", Candidate("x"), _verdict(task, key))


def _verdict(task: Task, key) -> Verdict:
    if uniform(*key, "grader") < 0.2:
        return Verdict("no_verdict", log="the grader broke")
    if uniform(*key, "answer") < task.difficulty:
        return Verdict("passed", passed=2, total=2)
    return Verdict("failed", bucket="wrong_answer", passed=1, total=2)


def collector(
    asked: Sequence[Task],
    plan: BatchPlan,
    group_filter: GroupFilter,
    seed: int = 0,
    curriculum: Curriculum | None = None,
) -> Collector:
    policy = SimpleNamespace(model=None, encode_prompt=lambda text, tools=(): [ord(letter) for letter in text])
    domain = SimpleNamespace(task_prompt=lambda task: f"prompt {task.inputs}")
    runner = EpisodeRunner(SingleTurn(domain), {POLICY: Player(policy, None, 1000)}, None, fake_generate_and_verify)
    rules = {POLICY: RoleRules(group_filter, lambda rewarded, _: tuple(one.total for one in rewarded))}
    reward = Reward({"passed": AllPassed(weight=1.0)})
    return Collector(runner, {POLICY: reward}, curriculum or Uniform(asked, seed), asked, plan, rules, seed)
