"""Updates of a policy with an adapter: the gradient is the adapter's, the reference is the base, nothing is rounded."""

from dataclasses import replace
from pathlib import Path

import fixed_batch
import pytest
import torch
from trl import GRPOConfig
from updating import updated

from rlvr_exp.algorithms.gradients import NonFiniteGuard
from rlvr_exp.algorithms.trainer import PolicyTrainer
from rlvr_exp.algorithms.training_batch import TrainingBatch
from rlvr_exp.config.model import Adapter, Model
from rlvr_exp.config.parallel import BatchLimits
from rlvr_exp.models.adapters import adapter_parameters, adapters_off
from rlvr_exp.models.policy import Policy, load_policy

PROMPT, ANSWER, SIZE = 4, 3, 2
LORA = Adapter(kind="lora", rank=2)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("base")
    fixed_batch.policy(place)
    return place


def policy(folder: Path, adapter: Adapter = LORA, moved: bool = True, **options) -> Policy:
    """A policy whose adapter has been trained, so that it differs from its base."""
    made = load_policy(Model(path=str(folder), adapter=adapter, **options), seed=0)
    draw = torch.Generator().manual_seed(1)
    for value in adapter_parameters(made.model, "default") if moved else ():
        value.data += 0.3 * torch.randn(value.shape, generator=draw)
    return replace(made, max_tokens=64)


def experience() -> TrainingBatch:
    """Two groups of two completions."""
    draw = torch.Generator().manual_seed(2)
    prompts = torch.randint(2, 20, (2, PROMPT), generator=draw).repeat_interleave(SIZE, 0)
    mask = torch.tensor([[1, 1, 1], [1, 1, 0], [1, 0, 0], [1, 1, 1]])
    return TrainingBatch(
        prompt_ids=prompts,
        prompt_mask=torch.ones_like(prompts),
        completion_ids=torch.randint(2, 20, (4, ANSWER), generator=draw),
        completion_mask=mask,
        sampling_logprobs=torch.zeros(4, ANSWER),
        advantages=torch.randn(4, 1, generator=draw) * mask,
        weights=mask / mask.sum(),
        sizes=(SIZE, SIZE),
        group_ids=torch.tensor([0, 0, 1, 1]),
    )


def trainer(folder: Path, who: Policy, **options) -> PolicyTrainer:
    common = {
        "output_dir": str(folder),
        "per_device_train_batch_size": SIZE,
        "gradient_accumulation_steps": 1,
        "steps_per_generation": 1,
        "num_generations": SIZE,
        "max_completion_length": ANSWER,
        "max_steps": 1,
        "loss_type": "dapo",
        "bf16": False,
        "use_cpu": True,
        "gradient_checkpointing": False,
        "gradient_checkpointing_kwargs": {"use_reentrant": False},
        "save_strategy": "no",
        "report_to": "none",
        "disable_tqdm": True,
        "max_grad_norm": 1e9,
    }
    optimizer = torch.optim.SGD([value for value in who.model.parameters() if value.requires_grad], lr=1.0)
    args = GRPOConfig(**{**common, "learning_rate": 1.0, **options})
    return PolicyTrainer(who, args, optimizer, NonFiniteGuard(), BatchLimits(1000, PROMPT))


def log_probabilities(who: Policy) -> torch.Tensor:
    """(samples, T), each sample in its own row."""
    given = experience()
    logits = who.model(input_ids=torch.cat([given.prompt_ids, given.completion_ids], dim=1)).logits
    scores = logits[:, PROMPT - 1 : -1].log_softmax(-1)
    return scores.gather(-1, given.completion_ids.unsqueeze(-1)).squeeze(-1)


def by_hand(who: Policy) -> list[torch.Tensor]:
    """The adapter's gradient of sum(weight * -advantage * log-probability)."""
    given = experience()
    (-(given.weights * given.advantages * log_probabilities(who))).sum().backward()
    return [value.grad for value in adapter_parameters(who.model, "default")]


@pytest.mark.parametrize(
    ("adapter", "options"),
    [
        (LORA, {}),
        (LORA, {"gradient_checkpointing": True}),
        (Adapter(kind="dora", rank=2), {}),
    ],
    ids=["lora", "checkpointing", "dora"],
)
def test_one_step_moves_the_adapter_by_its_gradient_and_nothing_else(folder, tmp_path, adapter, options):
    who, wanted = policy(folder, adapter), by_hand(policy(folder, adapter))
    before = {name: value.detach().clone() for name, value in who.model.named_parameters()}
    updated(trainer(tmp_path, who, **options), lambda _: experience())
    assert who.model.get_base_model().is_gradient_checkpointing == bool(options)
    moved = [before[name] - value for name, value in who.model.named_parameters() if value.requires_grad]
    got, wanted = (torch.cat([value.flatten() for value in values]) for values in (moved, wanted))
    assert (got - wanted).norm() < 1e-5 * wanted.norm()
    assert all(
        torch.equal(value, before[name]) for name, value in who.model.named_parameters() if not value.requires_grad
    )


def test_the_reference_is_the_base_also_of_a_resumed_adapter(folder, tmp_path):
    who = policy(folder)
    made = trainer(tmp_path, who, beta=0.1)
    assert made.ref_model is None and list(who.model.peft_config) == ["default"], "no copy of anything"
    assert made.beta == made.args.beta == 0.1
    updated(made, lambda _: experience())
    inputs = made._updates[0][0]
    with torch.no_grad():
        base = log_probabilities(load_like(folder))
        own = log_probabilities(who)
    mask = experience().completion_mask
    told = torch.cat([batch["ref_per_token_logps"] for batch in made._updates[0]])
    assert torch.allclose(told * mask, base * mask, atol=1e-5)
    assert not torch.allclose(own * mask, base * mask, atol=1e-2) and "ref_per_token_logps" in inputs
    assert all(value.requires_grad for value in adapter_parameters(who.model, "default")), (
        "on again after the reference"
    )


def load_like(folder: Path) -> Policy:
    return load_policy(Model(path=str(folder)), seed=0)


@pytest.mark.parametrize("bits", ["4bit", "8bit"])
def test_an_adapter_over_quantized_weights_keeps_its_precision(folder, tmp_path, bits):
    who = policy(folder, quantization=bits)
    before = [value.detach().clone() for value in adapter_parameters(who.model, "default")]
    made = trainer(tmp_path, who)
    assert all(map(torch.equal, adapter_parameters(who.model, "default"), before))
    updated(made, lambda _: experience())
    after = adapter_parameters(who.model, "default")
    assert all(value.dtype == torch.float32 for value in after) and not any(map(torch.equal, after, before))
    with adapters_off(who.model), torch.no_grad():
        assert torch.equal(
            log_probabilities(who), log_probabilities(policy(folder, Adapter(), False, quantization=bits))
        )
