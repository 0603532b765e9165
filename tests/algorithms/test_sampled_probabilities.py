"""The trainer computes the log-probabilities that the sampler recorded: on-policy ratios are 1."""

import pytest
import torch
from transformers import Qwen3Config, Qwen3ForCausalLM
from trl.trainer.utils import add_fused_lm_head

from rlvr_exp.algorithms.logprobs import score
from rlvr_exp.algorithms.packing import packed, row_by_row
from rlvr_exp.algorithms.training_batch import collate_kept_token_ids
from rlvr_exp.rollouts.sampler import sample_groups
from rlvr_exp.rollouts.sampling_params import LogitFilters, SamplingParams

GROUP = 3
FILTERS = {
    "all": LogitFilters(),
    "temperature": LogitFilters(0.6),
    "top_k": LogitFilters(1.3, top_k=4),
    "top_p": LogitFilters(1.0, top_p=0.6),
    "min_p": LogitFilters(1.0, min_p=0.2),
    "together": LogitFilters(0.8, top_k=9, top_p=0.8, min_p=0.1),
}


def peaked() -> Qwen3ForCausalLM:
    """A random model whose distributions are far from uniform, so that filters exclude tokens."""
    torch.manual_seed(0)
    shape = {
        "vocab_size": 24,
        "hidden_size": 16,
        "intermediate_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
    }
    model = Qwen3ForCausalLM(
        Qwen3Config(**shape, num_key_value_heads=1, head_dim=8, eos_token_id=1, initializer_range=0.8)
    )
    add_fused_lm_head(model, outputs=("log_probs", "entropy"))
    return model


@pytest.mark.parametrize("together", [True, False], ids=["packed", "row by row"])
@pytest.mark.parametrize("filters", FILTERS.values(), ids=FILTERS)
def test_the_trainer_computes_what_the_sampler_recorded(filters, together):
    model, prompts = peaked(), [[5, 9, 7, 3], [8], [4, 4, 11, 6, 2, 13]]
    keys = [[("draws", place, sample) for sample in range(GROUP)] for place in range(len(prompts))]
    samples = [one for group in sample_groups(model, prompts, keys, SamplingParams(filters, 7, (1,))) for one in group]
    answers, width = [list(one.ids) for one in samples], max(len(one.ids) for one in samples)
    repeated = [prompt for prompt in prompts for _ in range(GROUP)]
    owners = [place for place in range(len(prompts)) for _ in range(GROUP)]
    rows = packed(repeated, answers, owners, width) if together else row_by_row(repeated, answers, width)
    kept_token_ids = collate_kept_token_ids(samples)
    kept = None if kept_token_ids is None else rows.chosen(kept_token_ids)
    with torch.no_grad():
        ours = rows.placed(score(model, rows, filters.temperature, kept).logprobs)
    recorded = torch.tensor([[*one.logprobs, *[0.0] * (width - len(one.logprobs))] for one in samples])
    assert ((ours - recorded).exp() - 1).abs().max() <= 1e-4
    if filters.narrow:
        with torch.no_grad():
            whole = rows.placed(score(model, rows, filters.temperature).logprobs)
        assert ((whole - recorded).exp() - 1).abs().max() > 1e-2, "without the support the ratio is not 1"
