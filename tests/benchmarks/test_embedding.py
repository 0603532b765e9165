"""Embeddings of tasks by a policy: the mean of what its network gives at the end of each prompt that fits."""

from pathlib import Path

import pytest
import torch
from functions import measured

from rlvr_exp.config.compose import compose
from rlvr_exp.config.load import build
from rlvr_exp.core.errors import InputError
from rlvr_exp.models.policy import load_policy


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
