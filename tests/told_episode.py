"""Episodes whose completions a test gives, judged by a real verifier."""

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from rlvr_exp.episodes.environment import Environment
from rlvr_exp.episodes.episode import POLICY, Draws, Episode
from rlvr_exp.episodes.types import PENDING, TRUNCATED, Completion, TokenSample
from rlvr_exp.rollouts.run_episodes import DeferredVerifier, EpisodeRunner, Player, RolloutResult
from rlvr_exp.tasks.base import Task
from rlvr_exp.verifiers.base import Request, Verdict, Verifier


def told(
    environment: Environment,
    verifier: Verifier,
    answer: Callable[[Task, Any], str],
    task: Task,
    draws: Draws,
    samples: Sequence[int],
    roles: Sequence[str] = (POLICY,),
) -> Episode:
    """Play an episode. `answer`: the text of a task and a key; one that ends with "..." counts as cut."""

    def generate(policy, domain, verifier, requests, sampling):
        rows = []
        for one in requests:
            rows.append([])
            for key in one.keys:
                text = answer(one.task, key)
                candidate, cut = domain.parse(text, one.task), text.endswith("...")
                verdict = TRUNCATED if cut else PENDING
                if verdict == PENDING and candidate.text is None:
                    verdict = Verdict("failed", "parse")
                elif verdict == PENDING and not isinstance(verifier, DeferredVerifier):
                    verdict = verifier.submit(Request(one.task.problem, candidate)).result(timeout=60)
                sample = TokenSample((1, 2), (-1.0, -1.0), cut)
                rows[-1].append(Completion(one.task, 0, sample, text, candidate, verdict))
        return RolloutResult(tuple(map(tuple, rows)), {"generate": 1.0, "verify": 0.0})

    policy = SimpleNamespace(model=None, encode_prompt=lambda text, tools=(): [ord(letter) for letter in text])
    players = {role: Player(policy, None, 1000) for role in roles}
    runner = EpisodeRunner(environment, players, verifier, generate)
    (done,) = runner.run([environment.reset(task, draws, samples)])
    return done


def in_turn(answers: Sequence[Sequence[str]], name: str) -> Callable[[Task, Any], str]:
    """Each sample of the task of this name gives its answers in turn."""
    given = [iter(one) for one in answers]
    return lambda task, key: next(given[key[key.index(name) + 1]])
