"""A policy of a few thousand weights and the checkpoints of a run, for tests of a full disk."""

from pathlib import Path

import torch
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

from rlvr_exp.config.run import Checkpoint
from rlvr_exp.models.policy import Policy
from rlvr_exp.training.checkpoints import Checkpoints, Contents


def saved_policy(run_dir: Path) -> tuple[Checkpoints, Contents]:
    """Its weights take about 100 KB, every other file less than 10."""
    torch.manual_seed(0)
    shape = dict(vocab_size=20, hidden_size=64, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2)
    config = Qwen3Config(**shape, num_key_value_heads=1, head_dim=32, pad_token_id=0, eos_token_id=1)
    words = {f"w{index}": index for index in range(20)}
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.WordLevel(words, unk_token="w2")), pad_token="w0", eos_token="w1"
    )
    policy = Policy(Qwen3ForCausalLM(config), tokenizer, (1,), chat=False, thinking=False, max_tokens=64)
    return Checkpoints(run_dir, Checkpoint()), Contents(policy, {}, {})
