"""PPO on a policy of a few hundred weights and a batch built by hand."""

from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM
from trl import GRPOConfig
from updating import updated

from rlvr_exp.algorithms.gradients import NonFiniteGuard
from rlvr_exp.algorithms.ppo import PPO, PPOTrainer, Trajectories, collected
from rlvr_exp.config.parallel import BatchLimits
from rlvr_exp.episodes.types import Completion, RewardBreakdown, TokenSample
from rlvr_exp.models.policy import Policy
from rlvr_exp.rollouts.groups import Group
from rlvr_exp.tasks.base import Candidate, Task
from rlvr_exp.verifiers.base import Verdict

TASK = Task("task", "f", 0.0, inputs=None, problem=None)
GROUPS, SIZE, PROMPT, ANSWER = 4, 2, 5, 3
EVERYTHING = 1000
"""A limit on tokens that an entire batch stays within."""
ONCE = {"iterations": 1, "kl_coef": 0.0, "value_coef": 1.0}
"""A single update of a batch, without a reference."""


def policy() -> Policy:
    torch.manual_seed(0)
    shape = dict(vocab_size=20, hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2)
    config = Qwen3Config(**shape, num_key_value_heads=1, head_dim=8, pad_token_id=0, eos_token_id=1)
    words = {f"w{index}": index for index in range(20)}
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.WordLevel(words, unk_token="w2")), pad_token="w0", eos_token="w1"
    )
    return Policy(Qwen3ForCausalLM(config), tokenizer, (1,), chat=False, thinking=False, max_tokens=64)


def algorithm(**options: Any) -> PPO:
    """With the options of the schema, and its defaults for all others."""
    return PPO(**{"max_steps": 1, "group_size": SIZE, **options}, max_completion_tokens=ANSWER)


def groups(step: int = 0, silent: tuple[int, ...] = ()) -> list[Group]:
    """Four groups of two that differ in the lengths of prompts and completions; the given samples have no verdict."""
    draw = torch.Generator().manual_seed(4 + step)

    def tokens(count: int) -> tuple[int, ...]:
        return tuple(torch.randint(2, 20, (count,), generator=draw).tolist())

    made = []
    for number in range(GROUPS):
        places = [number * SIZE + member for member in range(SIZE)]
        samples = [TokenSample(tokens(1 + place % ANSWER), (-3.0,) * (1 + place % ANSWER), False) for place in places]
        completions = [
            Completion(TASK, i, one, "", Candidate(None), Verdict("passed")) for i, one in enumerate(samples)
        ]
        rewards = tuple(None if place in silent else float(place % 3) for place in places)
        rewarded = tuple(RewardBreakdown(reward, reward, {}) for reward in rewards)
        prompt = tokens(PROMPT - number % 2)
        made.append(Group(step, number, ("",) * SIZE, (prompt,) * SIZE, tuple(completions), rewarded, rewards))
    return made


def batch(ppo: PPO, step: int = 0, silent: tuple[int, ...] = ()) -> Trajectories:
    return collected(groups(step, silent), GROUPS, 0, ppo)


def trainer(
    folder: Path,
    ppo: PPO,
    lr: float = 1.0,
    tokens: int = EVERYTHING,
    who: Policy | None = None,
    decay: float = 0.0,
    **more: Any,
) -> PPOTrainer:
    """Plain descent at rate `lr`, so that a single update shows its gradient."""
    who = who or policy()
    common = dict(
        output_dir=str(folder),
        per_device_train_batch_size=SIZE,
        gradient_accumulation_steps=1,
        steps_per_generation=1,
        bf16=False,
        use_cpu=True,
        gradient_checkpointing=False,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        max_grad_norm=1e9,
        learning_rate=lr,
        lr_scheduler_type="constant",
        model_init_kwargs=None,
    )
    args = GRPOConfig(**{**common, **ppo.trl_arguments(), **more})
    optimizer = torch.optim.SGD(
        [value for value in who.model.parameters() if value.requires_grad], lr=lr, weight_decay=decay
    )
    return ppo.trainer(who, args, optimizer, NonFiniteGuard(), BatchLimits(tokens, PROMPT))


def trained(made: PPOTrainer, ppo: PPO, silent: tuple[int, ...] = ()) -> tuple[list[dict[str, float]], list[int]]:
    """(rows of all updates, steps that needed a batch); the given samples have no verdict."""
    asked: list[int] = []
    return updated(made, lambda step: asked.append(step) or batch(ppo, step, silent)), asked


def weights(module: torch.nn.Module) -> torch.Tensor:
    return torch.cat([value.detach().flatten().clone() for value in module.parameters()])
