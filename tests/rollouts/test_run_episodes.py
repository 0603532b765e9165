"""The runner with real policies: which adapter samples."""

from pathlib import Path
from types import SimpleNamespace

import torch
from small_models import loaded, written

from rlvr_exp.config.adapter import Adapter
from rlvr_exp.config.sampling import Drawing
from rlvr_exp.episodes.environments.single_turn import SingleTurn
from rlvr_exp.episodes.episode import POLICY, Draws
from rlvr_exp.models.adapters import adapter_parameters
from rlvr_exp.rollouts.run_episodes import EpisodeRunner, Player
from rlvr_exp.rollouts.sampler import SamplingParams
from rlvr_exp.tasks.base import Candidate, Task
from rlvr_exp.verifiers.base import Direct, Verdict


class Passes(Direct):
    name, version = "passes", "1"

    def judge(self, request):
        return Verdict("passed", passed=1, total=1)


def text_of(policy) -> str:
    domain = SimpleNamespace(
        prompt=lambda task: "1 2 3",
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
