"""The runner with real policies: which adapter samples; and what an environment has judged."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import torch
from small_models import loaded, written

from rlvr_exp.config.algorithm import Drawing
from rlvr_exp.config.model import Adapter
from rlvr_exp.episodes.environments import SingleTurn
from rlvr_exp.episodes.episode import POLICY, Draws, Judge
from rlvr_exp.episodes.types import Completion, TokenSample
from rlvr_exp.models.adapters import adapter_parameters
from rlvr_exp.rollouts.run_episodes import EpisodeRunner, Player, RolloutResult
from rlvr_exp.rollouts.sampling_params import SamplingParams
from rlvr_exp.tasks.base import Candidate, Task
from rlvr_exp.verifiers.base import Direct, Verdict


class Passes(Direct):
    name, version = "passes", "1"

    def judge(self, request):
        return Verdict("passed", passed=1, total=1)


def text_of(policy) -> str:
    domain = SimpleNamespace(
        task_prompt=lambda task: "1 2 3",
        parse=lambda text, task: Candidate(text),
        stop_text="",
        is_complete=lambda text: False,
    )
    player = Player(policy, SamplingParams.of(Drawing(), policy, 8, 4, domain), 100)
    runner = EpisodeRunner(SingleTurn(domain), {POLICY: player}, Passes())
    task = Task("task", "f", 0.0, None, None)
    (done,) = runner.run([runner.environment.reset(task, Draws(0, "evaluate", greedy=True))])
    return done.turns[0].completion.text


def test_a_policy_alone_samples_with_its_adapter(tmp_path: Path) -> None:
    """Its adapter has no role's name."""
    base = written(tmp_path)
    policy = loaded(base, adapter=Adapter(kind="lora"))
    plain = text_of(loaded(base))
    assert text_of(policy) == plain, "a new adapter changes nothing"
    draw = torch.Generator().manual_seed(0)
    for value in adapter_parameters(policy.model, "default"):
        value.data += torch.randn(value.shape, generator=draw)
    assert text_of(policy) != plain


class Crossed(SingleTurn):
    """A completion is judged on another task's problem as well."""

    def run(self, episode):
        [[turn]] = yield [episode.ask("do")]
        other = replace(episode.task, id="other", problem=turn.completion.text)
        [verdict] = yield [Judge(POLICY, other, Candidate("its own"))]
        yield []
        episode.change(turn.index, note=verdict)


class Told(Direct):
    name, version = "told", "1"

    def judge(self, request):
        return Verdict("failed", "wrong_answer", log=f"{request.candidate.text} on {request.problem}")


def test_an_environment_has_candidates_of_its_own_judged() -> None:
    policy = SimpleNamespace(model=None, encode_prompt=lambda text, tools=(): [1])
    domain = SimpleNamespace(task_prompt=lambda task: "do")

    def generate(policy, domain, verifier, requests, sampling):
        drawn = TokenSample((1,), (-1.0,), False)
        rows = [(Completion(one.task, 0, drawn, "drawn", Candidate("drawn"), Verdict("passed")),) for one in requests]
        return RolloutResult(tuple(rows), {"generate": 1.0, "verify": 0.0})

    runner = EpisodeRunner(Crossed(domain), {POLICY: Player(policy, None, 9)}, Told(), generate)
    task = Task("task", "f", 0.0, None, None)
    (done,) = runner.run([runner.environment.reset(task, Draws(0, "rollout"))])
    assert done.turns[0].note.log == "its own on drawn"
    assert done.turns[0].completion.verdict.outcome == "passed", "its own verdict stays"
    assert runner.seconds[POLICY, "verify"] > 0
