"""The rollouts of a training step show their progress once they take longer than a few seconds."""

from types import SimpleNamespace

import pytest
from rollout_models import EOS, keys, prompts, tiny_model

from rlvr_exp.rollouts.engines import journaled
from rlvr_exp.rollouts.engines.base import RolloutRequest
from rlvr_exp.rollouts.engines.journaled import Shown
from rlvr_exp.rollouts.engines.local import LocalEngine
from rlvr_exp.rollouts.sampling_params import LogitFilters, SamplingParams

SAMPLING = SamplingParams(LogitFilters(), 30, (EOS,), batch_size=9)
POLICY = SimpleNamespace(model=tiny_model(), decode=lambda ids: " ".join(map(str, ids)))
REQUESTS = [
    RolloutRequest(SimpleNamespace(id=str(i)), tuple(prompt), tuple(own))
    for i, (prompt, own) in enumerate(zip(prompts(5), keys(5, 4), strict=True))
]


def reports_and_tokens():
    found = []
    drawn = list(Shown(LocalEngine(), lambda *given: found.append(given)).draw(POLICY, None, REQUESTS, SAMPLING))
    return found, sum(len(one.sampled) for one in drawn)


def test_long_rollouts_show_completions_and_tokens_per_second(monkeypatch):
    monkeypatch.setattr(journaled, "SHOWN_AFTER_S", 0.0)
    monkeypatch.setattr(journaled, "SHOWN_EVERY_S", 0.0)
    reports, tokens = reports_and_tokens()
    done, totals, rates, worked = zip(*reports, strict=True)
    assert sorted(done) == list(done) and done[0] == 0 and done[-1] == 20
    assert set(totals) == {20}
    assert all(rate > 0 for rate in rates) and 0 < worked[0] < 1 and worked[-1] == pytest.approx(20)
    assert len(reports) > tokens / 20  # A report for every pass, not only for every completion.


def test_short_rollouts_show_nothing():
    reports, _ = reports_and_tokens()
    assert reports == []
