"""Attention heads of known behaviour have the scores that they should; embeddings are the mean of last hidden states."""

import json
from pathlib import Path

import pytest
import torch
from functions import measured

from rlvr_exp.benchmarks import networks
from rlvr_exp.benchmarks.networks import same_cells
from rlvr_exp.config.compose import compose
from rlvr_exp.config.load import build
from rlvr_exp.core.errors import InputError
from rlvr_exp.models.policy import load_policy

PROMPT = "I\n012\n345\nO\n543\n210\nI\n1\nO\n11\nT\n77\nP\n"


def test_same_cells_are_those_of_pairs_of_one_shape() -> None:
    pairs = [(PROMPT[earlier], PROMPT[later], earlier, later) for earlier, later in same_cells(PROMPT)]
    assert [pair[:2] for pair in pairs] == [("0", "5"), ("1", "4"), ("2", "3"), ("3", "2"), ("4", "1"), ("5", "0")]
    assert all(earlier < later for _, _, earlier, later in pairs)
    assert not [*same_cells("I\n12\nO\n1\n2\nT\n12\nP\n")], "another shape"


def planted(policy, ids) -> torch.Tensor:
    """Four heads of a layer, and uniform ones: they attend to the token before, behind the last occurrence, to that occurrence,
    and to the same cell of the grid before."""
    count = len(ids)
    heads = torch.zeros(2, 4, count, count)
    for place, token in enumerate(ids):
        heads[0, 0, place, max(0, place - 1)] = 1.0
        earlier = [before for before in range(place) if ids[before] == token]
        heads[0, 1, place, earlier[-1] + 1 if earlier else place] = 1.0
        heads[0, 2, place, earlier[-1] if earlier else place] = 1.0
        heads[1, :, place, : place + 1] = 1 / (place + 1)
    text = policy.tokenizer.decode(ids)
    encoded = policy.tokenizer(text)
    for there, here in same_cells(text):
        heads[0, 3, encoded.char_to_token(here), encoded.char_to_token(there)] = 1.0
    return heads


def test_heads_of_known_behaviour_are_told_apart(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(networks, "_attention", planted)
    text, scores = measured(tmp_path, "attention", "benchmark.tasks=3", "benchmark.sequences=3")
    assert scores["previous/layer_0_head_0"]["value"] == 1.0
    assert scores["induction/layer_0_head_1"]["value"] > 0.9 > 0.1 > scores["induction/layer_0_head_0"]["value"]
    assert scores["copy/layer_0_head_2"]["value"] > 0.9 > 0.1 > scores["copy/layer_0_head_1"]["value"]
    assert scores["same_cell/layer_0_head_3"]["value"] == 1.0 > 0.5 > scores["same_cell/layer_0_head_0"]["value"]
    assert "| 0, 1 |" in text and "| uniform |" in text
    assert (tmp_path / "benchmark.svg").read_text().count("<circle") == 4 * 4


def test_sequences_beyond_the_context_are_refused(tmp_path: Path) -> None:
    words = ["model.from_scratch=true", "model.scratch.positions=learned", "model.scratch.context=512"]
    with pytest.raises(
        InputError, match=r"benchmark.length: .* longer than the policy takes\n    got: 257\n    allowed: at most 256"
    ):
        measured(tmp_path, "attention", *words, "benchmark.length=257")


@pytest.mark.parametrize("positions", ["rotary", "alibi", "learned", "none"])
def test_every_class_says_what_it_attends_to(tmp_path: Path, positions: str) -> None:
    small = ["layers=1", "hidden=32", "heads=2", f"positions={positions}"]
    words = ["model.from_scratch=true", *(f"model.scratch.{word}" for word in small)]
    _, scores = measured(tmp_path, "attention", *words, "benchmark.tasks=2", "benchmark.sequences=2")
    assert {name.partition("/")[0] for name in scores} == {"previous", "same_cell", "induction", "copy"}
    assert all(0 <= one["low"] <= one["value"] <= one["high"] <= 1 for one in scores.values())
    json.dumps(scores)


def test_it_is_the_mean_of_the_last_states_of_the_prompts_that_fit(tmp_path: Path) -> None:
    config = compose(["+stage=grpo"]).config
    policy, domain = load_policy(config.model, 0), build(config.data)
    prompts = [policy.encode_prompt(domain.task_prompt(task)) for task in domain.splits()["train"][:3]]
    limit = max(map(len, prompts)) - 1
    fitting = [ids for ids in prompts if len(ids) <= limit]
    assert len(fitting) == 2
    decoder = policy.model.get_decoder()
    with torch.no_grad():
        ends = [decoder(input_ids=torch.tensor([ids])).last_hidden_state[0, -1] for ids in fitting]
    words = ["benchmark.tasks=3", f"model.max_prompt_tokens={limit}"]
    text, found = measured(tmp_path, "embedding", *words)
    assert found["prompts"] == 2 and text.startswith("mean embedding of 2 prompts")
    assert found["mean"] == pytest.approx(torch.stack(ends).mean(0).tolist(), abs=1e-4)


@pytest.mark.parametrize("word", ["benchmark.split=practise", "model.max_prompt_tokens=2"])
def test_without_a_prompt_that_fits_it_says_so(tmp_path: Path, word: str) -> None:
    with pytest.raises(InputError, match="no task with a prompt that fits"):
        measured(tmp_path, "embedding", "benchmark.tasks=2", word)
