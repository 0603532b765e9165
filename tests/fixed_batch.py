"""A fixed batch for the papers' formulas: a model of a few hundred weights, groups with rewards, and one real update."""

from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from types import SimpleNamespace

import torch
from tokenizers import Tokenizer, models
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM
from trl import GRPOConfig
from updating import updated

from rlvr_exp.algorithms.base import Algorithm
from rlvr_exp.algorithms.gradients import NonFiniteGuard
from rlvr_exp.algorithms.trainer import PolicyTrainer
from rlvr_exp.algorithms.training_batch import TrainingBatch
from rlvr_exp.config.compose import compose
from rlvr_exp.config.load import build
from rlvr_exp.config.model import Adapter, Model
from rlvr_exp.config.parallel import BatchLimits
from rlvr_exp.episodes.types import Completion, TokenSample
from rlvr_exp.models.adapters import adapter_parameters
from rlvr_exp.models.policy import Policy, load_policy
from rlvr_exp.rewards.compose import RewardBreakdown
from rlvr_exp.rollouts.groups import Group, Groups
from rlvr_exp.tasks.base import Candidate
from rlvr_exp.verifiers.base import Verdict

LIMIT = 6
"""The most tokens of a completion."""
PROMPTS = ((5, 6, 7, 8), (9, 3), (4, 4, 11))
LENGTHS = ((3, 1, 6), (4, 2, 2), (5, 6, 3))
REWARDS = ((1.0, 0.0, 0.25), (0.2, 0.9, 0.4), (0.3, 0.3, 0.3))
"""The last group has zero variance, unless an algorithm shapes rewards by length."""
TERM_WEIGHTS = {"first": 0.5, "second": 2.0}


def terms(place: int, reward: float) -> dict[str, float]:
    """The terms of the completion at a place of its group. They vary in the last group, too."""
    return {"first": 0.1 * place * place, "second": reward - 0.1 * place * place}


def policy(folder: Path) -> Policy:
    """Loaded from disk, like a reference."""
    torch.manual_seed(0)
    shape = dict(vocab_size=20, hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2)
    config = Qwen3Config(**shape, num_key_value_heads=1, head_dim=8, pad_token_id=0, eos_token_id=1)
    Qwen3ForCausalLM(config).save_pretrained(folder)
    words = {f"w{index}": index for index in range(20)}
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.WordLevel(words, unk_token="w2")), pad_token="w0", eos_token="w1"
    )
    tokenizer.save_pretrained(folder)
    return Policy(Qwen3ForCausalLM.from_pretrained(folder), tokenizer, (1,), chat=False, thinking=False, max_tokens=64)


LORA = Adapter(kind="lora", rank=2)


def player_of(folder: Path, adapter: bool) -> Policy:
    """The policy in float64, with an adapter that has been trained or without one."""
    made = policy(folder)
    if adapter:
        made = load_policy(Model(path=str(folder), adapter=LORA), seed=0)
        draw = torch.Generator().manual_seed(1)
        for value in adapter_parameters(made.model, "default"):
            value.data += 0.3 * torch.randn(value.shape, generator=draw)
    made.model.double()
    return made


def algorithm(name: str, *words: str) -> Algorithm:
    """The algorithm of `algorithm=NAME`, for the size of the fixed batch."""
    size = ["algorithm.prompts_per_step=3", "algorithm.group_size=3", "algorithm.max_steps=1"]
    config = compose(["+stage=grpo", f"algorithm={name}", *size, *words]).config
    return build(config.algorithm, max_completion_tokens=LIMIT, term_weights=TERM_WEIGHTS)


def answers() -> list[list[tuple[int, ...]]]:
    """Token ids of every completion, by prompt."""
    draw = torch.Generator().manual_seed(3)
    return [[tuple(torch.randint(2, 20, (n,), generator=draw).tolist()) for n in row] for row in LENGTHS]


def logprobs(model, prompt: Sequence[int], answer: Sequence[int]) -> torch.Tensor:
    """(tokens,) of one completion, row by row and without padding."""
    logits = model(input_ids=torch.tensor([[*prompt, *answer]])).logits[0, len(prompt) - 1 : -1]
    return logits.log_softmax(-1).gather(-1, torch.tensor(answer)[:, None])[:, 0]


def doubled(model) -> torch.nn.Module:
    """A plain model with the same weights: the trainer puts its own head into its model."""
    plain = AutoModelForCausalLM.from_config(model.config, dtype=torch.float64)
    plain.load_state_dict(model.state_dict())
    return plain


def drawn_from(model, drift: float) -> list[list[tuple[float, ...]]]:
    """A sampler's records of every token, `drift` away from the current model."""
    draw = torch.Generator().manual_seed(7)
    with torch.no_grad():
        plain = deepcopy(model).double()
        rows = [[logprobs(plain, PROMPTS[p], one) for one in row] for p, row in enumerate(answers())]
    return [[tuple((one + drift * torch.randn(len(one), generator=draw)).tolist()) for one in row] for row in rows]


def groups(who: Algorithm, recorded, rewards=REWARDS, step: int = 1, sampled_at: int = 0) -> Groups:
    """The batch at `step`, sampled at `sampled_at`; rewards None have no verdict."""
    made = [_group(who, place, recorded[place], rewards[place], sampled_at) for place in range(len(PROMPTS))]
    zero_variance = {group.id: kind for group in made if (kind := who.group_filter().zero_variance_kind(group))}
    return Groups(step, tuple(made), (), tuple(made), (), zero_variance, {})


def _group(who: Algorithm, place: int, recorded, rewards, step: int) -> Group:
    task = SimpleNamespace(id=f"task {place}", family="f", difficulty=0.0)
    ids = answers()[place]
    made = [
        Completion(task, s, TokenSample(ids[s], recorded[s], False), f"answer {s}", Candidate(""), _verdict(reward))
        for s, reward in enumerate(rewards)
    ]
    paid = [
        RewardBreakdown(reward, reward, {} if reward is None else terms(s, reward)) for s, reward in enumerate(rewards)
    ]
    seen = who.shaped_group(paid, made)
    return Group(step, place, ("",) * len(made), (tuple(PROMPTS[place]),) * len(made), tuple(made), tuple(paid), seen)


def _verdict(reward: float | None) -> Verdict:
    if reward is None:
        return Verdict("no_verdict")
    return Verdict("passed") if reward > 0.5 else Verdict("failed", bucket="wrong_answer")


def trainer(
    folder: Path,
    who: Algorithm,
    tokens: int = 1000,
    lr: float = 1.0,
    frozen: Sequence[int] = (),
    player: Policy | None = None,
) -> PolicyTrainer:
    """A step of plain gradient descent, at rate 1 by the gradient; parameters are frozen by their number. A reference is
    moved away from the policy, so that its penalty acts. `player`: in place of `policy`; nothing of it is frozen."""
    if player is None:
        player = policy(folder)
        for number, value in enumerate(player.model.parameters()):
            value.requires_grad = number not in frozen
    fixed = dict(
        output_dir=str(folder / "scratch"),
        per_device_train_batch_size=who.group_size,
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
    )
    args = GRPOConfig(**{**who.trl_arguments(), **fixed})
    descent = torch.optim.SGD([value for value in player.model.parameters() if value.requires_grad], lr=lr)
    made = who.trainer(player, args, descent, NonFiniteGuard(), BatchLimits(tokens, max(map(len, PROMPTS))))
    if made.ref_model is not None:
        draw = torch.Generator().manual_seed(11)
        for value in made.ref_model.parameters():
            value.data += 0.1 * torch.randn(value.shape, generator=draw)
    return made


def flat(model) -> torch.Tensor:
    """The trained weights."""
    return torch.cat([value.detach().flatten().double() for value in model.parameters() if value.requires_grad])


def gradient(made: PolicyTrainer, given: TrainingBatch) -> torch.Tensor:
    """The gradient that a step on the batch passes to its optimizer."""
    start = flat(made.model)
    updated(made, lambda _: given)
    return start - flat(made.model)
