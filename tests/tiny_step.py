"""A step of GRPO's trainer on a model of a few hundred weights and a batch built by hand."""

from pathlib import Path

import torch
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM
from trl import GRPOConfig

from rlvr_exp.algorithms.gradients import NonFiniteGuard
from rlvr_exp.algorithms.loss import EntropyControl
from rlvr_exp.algorithms.trainer import PolicyTrainer
from rlvr_exp.algorithms.training_batch import TrainingBatch
from rlvr_exp.config.parallel import BatchLimits
from rlvr_exp.models.policy import Policy

GROUPS, SIZE, PROMPT, ANSWER = 4, 2, 5, 3
EVERYTHING = 1000
"""A limit on tokens that an entire step stays within."""


def policy() -> Policy:
    torch.manual_seed(0)
    shape = {
        "vocab_size": 20,
        "hidden_size": 16,
        "intermediate_size": 32,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
    }
    config = Qwen3Config(**shape, num_key_value_heads=1, head_dim=8, pad_token_id=0, eos_token_id=1)
    words = {f"w{index}": index for index in range(20)}
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.WordLevel(words, unk_token="w2")), pad_token="w0", eos_token="w1"
    )
    return Policy(Qwen3ForCausalLM(config), tokenizer, (1,), chat=False, thinking=False, max_tokens=64)


def experience(dead: tuple[int, ...] = (), still: tuple[int, ...] = ()) -> TrainingBatch:
    """Four groups of two; the given groups and samples have no advantage. Prompts and completions differ in length."""
    generator = torch.Generator().manual_seed(4)
    prompts = torch.randint(2, 20, (GROUPS, PROMPT), generator=generator).repeat_interleave(SIZE, 0)
    seen = torch.ones_like(prompts)
    seen[2:4, :3] = seen[6:, :1] = 0
    mask = torch.ones(GROUPS * SIZE, ANSWER)
    mask[1, 2:] = mask[4, 1:] = 0
    advantages = torch.randn(GROUPS * SIZE, 1, generator=generator) * mask
    for group in dead:
        advantages[group * SIZE : (group + 1) * SIZE] = 0
    advantages[list(still)] = 0
    return TrainingBatch(
        prompt_ids=prompts * seen,
        prompt_mask=seen,
        completion_ids=torch.randint(2, 20, (GROUPS * SIZE, ANSWER), generator=generator),
        completion_mask=mask.long(),
        sampling_logprobs=torch.zeros(GROUPS * SIZE, ANSWER),
        advantages=advantages,
        weights=mask / mask.sum(),
        sizes=(SIZE,) * GROUPS,
        group_ids=torch.arange(GROUPS).repeat_interleave(SIZE),
    )


def trainer(
    folder: Path | str,
    tokens: int,
    entropy_coef: float = 0.0,
    kind: type[PolicyTrainer] = PolicyTrainer,
    control: EntropyControl | None = None,
    **more,
) -> PolicyTrainer:
    """Plain descent at rate 1, so that a single update shows its gradient. `tokens`: of a pass."""
    who = policy()
    common = dict(
        output_dir=str(folder),
        per_device_train_batch_size=SIZE,
        gradient_accumulation_steps=1,
        steps_per_generation=1,
        num_generations=SIZE,
        max_completion_length=ANSWER,
        max_steps=1,
        loss_type="dapo",
        bf16=False,
        use_cpu=True,
        gradient_checkpointing=False,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        max_grad_norm=1e9,
        learning_rate=1.0,
    )
    optimizer = torch.optim.SGD(who.model.parameters(), lr=1.0)
    args = GRPOConfig(**{**common, **more})
    return kind(
        who,
        args,
        optimizer,
        NonFiniteGuard(),
        BatchLimits(tokens, PROMPT),
        entropy=control or EntropyControl(entropy_coef),
    )


def flat(model: torch.nn.Module) -> torch.Tensor:
    return torch.cat([value.detach().flatten().clone() for value in model.parameters()])
