"""Small models with random weights, on disk with the embedded tokenizer, one update of a policy, and its checkpoint."""

from pathlib import Path

import torch
from transformers import AutoTokenizer, Qwen3Config, Qwen3ForCausalLM

from rlvr_exp.config.model import EMBEDDED_MODELS, Adapter, Model
from rlvr_exp.config.run import Checkpoint
from rlvr_exp.models.policy import Policy, load_policy
from rlvr_exp.training.checkpoints import Checkpoints, Contents

IDS = torch.tensor([[5, 9, 300, 7, 11, 40, 2, 77]])


def written(folder: Path, seed: int = 0, hidden: int = 64, layers: int = 2, vocabulary: int = 1024, **more) -> Path:
    """A Qwen3 checkpoint with random weights in float32 (`dtype=` for another)."""
    torch.manual_seed(seed)
    config = Qwen3Config(
        vocab_size=vocabulary,
        hidden_size=hidden,
        intermediate_size=3 * hidden,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=hidden // 4,
        max_position_embeddings=512,
        tie_word_embeddings=True,
        initializer_range=0.1,
    )
    network = Qwen3ForCausalLM(config).to(more.get("dtype", torch.float32))
    for value in network.parameters():
        if value.ndim == 1:  # Norms as training leaves them: no two models have the same.
            value.data.add_(0.1 * torch.randn_like(value))
    network.save_pretrained(folder)
    AutoTokenizer.from_pretrained(EMBEDDED_MODELS / "tiny").save_pretrained(folder)
    return folder


def loaded(folder: Path, seed: int = 0, adapter: Adapter | None = None, **options) -> Policy:
    return load_policy(Model(path=str(folder), adapter=adapter or Adapter(), **options), seed)


def logits(policy: Policy) -> torch.Tensor:
    policy.model.eval()
    with torch.no_grad():
        return policy.model(input_ids=IDS).logits


def updated(policy: Policy, steps: int = 1, lr: float = 0.05) -> Policy:
    """Some steps of imitation of IDS with AdamW, decay included, so that all trained weights move."""
    model = policy.model.train()
    optimizer = torch.optim.AdamW(
        [value for value in model.parameters() if value.requires_grad], lr=lr, weight_decay=0.1
    )
    for _ in range(steps):
        model(input_ids=IDS, labels=IDS).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return policy


def saved(run: Path, policy: Policy, step: int = 1) -> Path:
    """The checkpoint of a policy alone."""
    return Checkpoints(run, Checkpoint()).save(step, Contents(policy, {}, {}))
