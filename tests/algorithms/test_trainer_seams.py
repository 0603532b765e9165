"""What the trainer relies on in the pinned TRL, and that a step's gradient is the loss that its weights say."""

from pathlib import Path

import pytest
import torch
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM
from tokenizers import Tokenizer, models
from trl import GRPOConfig

from rlvr_exp.algorithms.experience import Experience
from rlvr_exp.algorithms.trainer import PolicyTrainer
from rlvr_exp.models.policy import Policy

GROUPS, SIZE, PROMPT, ANSWER = 4, 2, 5, 3


def policy() -> Policy:
    torch.manual_seed(0)
    shape = dict(vocab_size=20, hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2)
    config = Qwen3Config(**shape, num_key_value_heads=1, head_dim=8, pad_token_id=0, eos_token_id=1)
    words = {f"w{index}": index for index in range(20)}
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.WordLevel(words, unk_token="w2")), pad_token="w0", eos_token="w1"
    )
    return Policy(Qwen3ForCausalLM(config), tokenizer, (1,), chat=False, thinking=False, max_tokens=64)


def experience(dead: tuple[int, ...] = ()) -> Experience:
    """Four groups of two; the groups named have no advantage."""
    generator = torch.Generator().manual_seed(4)
    prompts = torch.randint(2, 20, (GROUPS, PROMPT), generator=generator).repeat_interleave(SIZE, 0)
    mask = torch.ones(GROUPS * SIZE, ANSWER)
    mask[1, 2:] = mask[4, 1:] = 0
    advantages = torch.randn(GROUPS * SIZE, 1, generator=generator) * mask
    for group in dead:
        advantages[group * SIZE : (group + 1) * SIZE] = 0
    return Experience(
        prompt_ids=prompts,
        prompt_mask=torch.ones_like(prompts),
        completion_ids=torch.randint(2, 20, (GROUPS * SIZE, ANSWER), generator=generator),
        completion_mask=mask.long(),
        sampling_logprobs=torch.zeros(GROUPS * SIZE, ANSWER),
        advantages=advantages,
        weights=mask / mask.sum(),
        group_size=SIZE,
    )


def gradient(tmp_path: Path, given: Experience, micro_batches: int, entropy_coef: float = 0.0) -> torch.Tensor:
    """The gradient that one step hands to its optimizer, before clipping."""
    who = policy()
    args = GRPOConfig(
        output_dir=str(tmp_path),
        per_device_train_batch_size=GROUPS * SIZE // micro_batches,
        gradient_accumulation_steps=micro_batches,
        steps_per_generation=micro_batches,
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
    start = torch.cat([value.detach().flatten().clone() for value in who.model.parameters()])
    optimizer = torch.optim.SGD(who.model.parameters(), lr=1.0)
    asked = []

    def collect(step: int) -> Experience:
        asked.append(step)
        return given

    PolicyTrainer(who, args, optimizer, entropy_coef, collect, []).train()
    assert asked == [0], "one step asks for one experience"
    return start - torch.cat([value.detach().flatten() for value in who.model.parameters()])


def by_hand(given: Experience, entropy_coef: float = 0.0) -> torch.Tensor:
    """The gradient of sum(weight * (-advantage * logprob - coefficient * entropy)): the ratio is 1 on fresh samples."""
    model = policy().model
    ids = torch.cat([given.prompt_ids, given.completion_ids], dim=1)
    mask = torch.cat([given.prompt_mask, given.completion_mask], dim=1)
    logits = model(input_ids=ids, attention_mask=mask).logits[:, -ANSWER - 1 : -1]
    scores = logits.log_softmax(-1)
    entropy = -(scores.exp() * scores).sum(-1)
    logprobs = scores.gather(-1, given.completion_ids.unsqueeze(-1)).squeeze(-1)
    (-(given.weights * (given.advantages * logprobs + entropy_coef * entropy))).sum().backward()
    return torch.cat([value.grad.flatten() for value in model.parameters()])


@pytest.mark.parametrize("micro_batches", [1, 2, 4])
@pytest.mark.parametrize("dead", [(), (1,), (0, 2, 3)])
def test_a_steps_gradient_is_what_the_weights_say_in_any_split(tmp_path, micro_batches, dead):
    given = experience(dead)
    wanted, got = by_hand(given), gradient(tmp_path, given, micro_batches)
    assert (got - wanted).norm() <= 1e-4 * wanted.norm()


@pytest.mark.parametrize("micro_batches", [1, 4])
def test_the_entropy_bonus_has_the_same_weights_in_any_split(tmp_path, micro_batches):
    given = experience((1,))
    wanted, got = by_hand(given, 0.5), gradient(tmp_path, given, micro_batches, 0.5)
    assert (got - wanted).norm() <= 1e-4 * wanted.norm()
    assert (got - by_hand(given)).norm() > 1e-2 * wanted.norm(), "the bonus is there"


def test_groups_without_signal_alone_give_no_gradient(tmp_path):
    assert gradient(tmp_path, experience((0, 1, 2, 3)), 2).abs().max() == 0
