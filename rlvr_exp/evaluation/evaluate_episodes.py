"""Evaluation on held-out tasks in any environment. Every task is answered greedily and by sampling, and every
completion is verified."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import fmean

from rlvr_exp.config.run import Evaluation
from rlvr_exp.episodes.environment import Environment
from rlvr_exp.episodes.episode import Draws, Episode
from rlvr_exp.episodes.types import TokenCount
from rlvr_exp.records.rollout_files import EvalSample, Mode
from rlvr_exp.rollouts.run_episodes import EpisodeRunner
from rlvr_exp.tasks.base import Task

Progress = Callable[[int, int, float | None], None]


def evaluate_episodes(
    runner: EpisodeRunner,
    tasks: Sequence[Task],
    evaluation: Evaluation,
    seed: int,
    progress: Progress,
    answered: Callable[[Sequence[EvalSample]], None] | None = None,
    begins: Callable[[int], None] | None = None,
) -> list[EvalSample]:
    """Sample `tasks` as the `evaluation` node says. Each sample is a separate episode.

    Draws depend only on (seed, role, task, sample), so two policies with the same seed are compared draw by draw. A
    prompt that is longer than the limit of the policy is never cut. All its completions fail with bucket
    `prompt_too_long`.

    Args:
        progress: called after each batch with (answered tasks, all tasks, share of verified completions that passed).
        answered: called with all samples of a task when they are complete. The next tasks are sampled meanwhile.
        begins: called before each batch with its number of episodes.
    """
    environment = runner.environment
    words = {task.id: first_prompt(environment, task) for task in tasks}
    ordered = sorted(tasks, key=lambda task: len(words[task.id]))  # Prompts of similar length are sampled together.
    per_batch = max(1, evaluation.batch_size // (evaluation.samples + evaluation.greedy))
    scored: dict[str, list[EvalSample]] = {}
    verified: list[bool] = []
    for start in range(0, len(ordered), per_batch):
        batch = ordered[start : start + per_batch]
        begun = [one for task in batch for one in _begun(environment, task, evaluation, seed)]
        if begins:
            begins(len(begun))
        for episode in runner.run(begun):
            one = _sample(environment, episode, words[episode.task.id])
            scored.setdefault(episode.task.id, []).append(one)
            if one.verdict.outcome != "no_verdict":
                verified.append(one.completion.correct)
        if answered:
            for task in batch:
                answered(scored[task.id])
        progress(len(scored), len(tasks), fmean(verified) if verified else None)
    return [row for task in tasks for row in scored[task.id]]


def first_prompt(environment: Environment, task: Task) -> str:
    return environment.domain(environment.roles[0]).task_prompt(task)


def _begun(environment: Environment, task: Task, evaluation: Evaluation, seed: int) -> list[Episode]:
    """The greedy episode, if requested, comes first. It draws nothing."""
    greedy = [environment.reset(task, Draws(seed, "evaluate", greedy=True))] if evaluation.greedy else []
    return [
        *greedy,
        *(environment.reset(task, Draws(seed, "evaluate"), (index,)) for index in range(evaluation.samples)),
    ]


def _sample(environment: Environment, episode: Episode, prompt: str) -> EvalSample:
    """Keep only the number of tokens, because an evaluation has many completions."""
    found, (index,) = environment.result(episode), episode.samples
    count = TokenCount(found.tokens, found.truncated)
    mode: Mode = "greedy" if episode.draws.greedy else "sampled"
    return EvalSample(replace(found, sample=index, sampled=count), mode, prompt, environment.outcome(episode))
