"""Options of the groups `algorithm`, `optimizer` and `scheduler`: how tokens are drawn, how the policy learns, and how the learning
rate changes over the steps."""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

from rlvr_exp.config.names import trl_problems
from rlvr_exp.config.options import configures, defaults, option
from rlvr_exp.core.errors import InputProblem


@dataclass
class Drawing:
    """Options of sampling. The temperature acts first, then the filters in the order of their fields, as in Transformers.
    Each filter acts on the renormalized result of the one before."""

    temperature: float = option(1.0, above=0)
    """Sampling temperature. Logits are divided by it."""
    top_k: int = option(0, low=0, rare=True)
    """Sample only from the k most probable tokens, ties included. 0: from all tokens."""
    top_p: float = option(1.0, above=0, high=1)
    """Sample only from the smallest set of most probable tokens whose probabilities add up to this value. 1: from all
    tokens."""
    min_p: float = option(0.0, low=0, high=1, rare=True)
    """Sample only from tokens that are at least this share as probable as the most probable token. 0: from all tokens."""
    stop: list[str] = option([], rare=True)
    """Texts that end a completion, as the end token does. The text stays part of the completion."""

    @property
    def filtered(self) -> bool:
        """Whether some tokens are excluded."""
        return self.top_k > 0 or self.top_p < 1.0 or self.min_p > 0.0

    def drawing_problems(self) -> list[InputProblem]:
        """Settings that no engine can honour."""
        if "" in self.stop:
            return [
                InputProblem(
                    "stop", "an empty text would end every completion at once", str(self.stop), remedy="drop it"
                )
            ]
        return []


@dataclass
class Batched(Drawing):
    """Options of the stages that sample and write answers batch by batch."""

    batch_size: int = option(64, low=1)
    """Completions sampled at once. They are written after each batch. If a preset sets a smaller evaluation.batch_size, that is the
    default."""


EQUAL_REWARDS = 1e-6
"""Rewards of a group with at most this difference are equal. Also added to standard deviations that divide advantages."""
BASELINES = ("none", "batch", "group")
"""Values that REINFORCE may subtract from a reward, the least first."""


@dataclass
class Updates:
    """Options of every algorithm."""

    max_steps: int = option(360, low=1)
    """Update steps."""
    max_tokens_per_device: int = option(16384, low=1)
    """Tokens of one forward and backward pass. Micro-batches and gradient accumulation follow from it."""


@dataclass
class TRL:
    """Options of the algorithms that a trainer of TRL runs."""

    trl: dict[str, Any] = field(default_factory=dict)
    """Further fields of TRL's GRPOConfig (of SFTConfig for sft), by their own names."""


@dataclass
class Clipped:
    """Options of the losses that clip the ratio of a token's probabilities, now and when it was drawn."""

    clip_low: float = option(0.2, low=0, high=1)
    """The ratio is clipped below 1 minus this value."""
    clip_high: float = option(0.2, low=0)
    """The ratio is clipped above 1 plus this value."""


@dataclass
class Overlong:
    """The soft punishment of long answers (DAPO)."""

    overlong_share: float = option(0.2, low=0, high=1)
    """Last part of the completion limit over which the reward of an answer falls by up to 1. 0: no punishment."""


@dataclass
class Regularized:
    """Options of the algorithms with a KL penalty and an entropy bonus."""

    kl_coef: float = option(0.0, low=0)
    """Weight of the KL penalty to the reference policy. 0: no penalty, and no reference is kept in memory."""
    reference_sync_steps: int = option(0, low=0, rare=True)
    """Steps after which the reference becomes the current policy. 0: never."""
    entropy_coef: float = option(0.0, low=0)
    """Weight of the entropy bonus. With entropy_target it is the first weight."""

    def reference_problems(self) -> Iterator[InputProblem]:
        if self.reference_sync_steps and not self.kl_coef:
            what, allowed = "without a KL penalty there is no reference to renew", "0 while algorithm.kl_coef=0"
            remedy = "set algorithm.kl_coef above 0, or drop it"
            yield InputProblem("reference_sync_steps", what, str(self.reference_sync_steps), allowed, "", remedy)


@dataclass
class ReinforcementLearning(Drawing, Updates):
    """Options of every algorithm that samples and is rewarded; a user's own schema derives from it."""

    prompts_per_step: int = option(32, low=1)
    """Tasks of one step."""
    group_size: int = option(8, low=1)
    """Completions sampled for each task."""
    rollout_batch_size: int = option(0, low=0, rare=True)
    """Completions sampled at once, in complete groups. 0: as many as evaluation.batch_size. It does not change the samples."""
    lag: int = option(0, low=0, high=1)
    """Steps between the weights that sample and those that learn. 1: a server (engine.weights) samples the next batch while the
    policy learns from the last one."""
    correction: str = option("auto", choices=("auto", "sequence_mask", "token_truncate", "none"), rare=True)
    """Importance weight of fresh samples if the engine's log-probabilities differ from the trainer's. sequence_mask: of a
    completion, 0 above the cap. token_truncate: of a token, at most the cap. auto: none with engine=local, else sequence_mask."""
    correction_cap: float = option(3.0, above=1, rare=True)
    """Largest importance weight."""
    log_token_logprobs: bool = option(False, rare=True)
    """Also write the log-probability of each sampled token into rollouts/; +stage=view shows them."""

    def problems(self) -> list[InputProblem]:
        found = self.drawing_problems()
        if self.correction == "none" and self.correction_cap != ReinforcementLearning.correction_cap:
            what, remedy = "no sample is weighted", "set algorithm.correction, or drop it"
            found.append(InputProblem("correction_cap", what, str(self.correction_cap), "its default", remedy=remedy))
        if self.lag and self.correction == "none":
            what, remedy = (
                "samples of older weights are weighted",
                "algorithm.correction=sequence_mask or token_truncate",
            )
            found.append(InputProblem("lag", what, f"{self.lag} with correction=none", "0", "", remedy))
        if self.top_k == 1 or self.min_p == 1:
            name = "top_k" if self.top_k == 1 else "min_p"
            what = "leaves one token to draw from: all completions of a group would be the same"
            found.append(InputProblem(name, what, str(getattr(self, name)), remedy=f"algorithm.{name} off, or wider"))
        return found


@dataclass
class GroupMethod(ReinforcementLearning, TRL):
    """Options of the methods whose baseline is the group."""

    losses: ClassVar[tuple[str, ...]] = ()
    """Losses of TRL that it takes as `algorithm.trl.loss_type`."""
    zero_variance: str = option("keep", choices=("keep", "mask"))
    """What to do with groups whose rewards are all equal. keep: they count in the denominators of the loss. mask: they do
    not."""
    pass_k: int = option(1, low=1)
    """Train for the best of k completions (PKPO). The reward of a completion becomes the mean, over all groups of k that
    contain it, of the largest reward. 1: the reward of the completion."""
    pass_k_weight: float = option(1.0, above=0, high=1, rare=True)
    """Share of that reward in the sum with the own reward of the completion."""
    unlikeliness: float = option(0.0, low=0, high=1, rare=True)
    """A correct completion loses up to this share of its reward if it was probable within its group, so that rare correct
    completions weigh more (unlikeliness reward). 0 disables it."""
    positive_weight: float = option(1.0, low=0, rare=True)
    """Factor of positive advantages. Below 1, failures weigh more than successes (weighted REINFORCE)."""

    def problems(self) -> list[InputProblem]:
        found = super().problems() + trl_problems("GRPOConfig", self.trl, self.losses)
        if self.group_size < 2:
            what, remedy = "a group of one has no advantage over itself", "algorithm.group_size=2 or more"
            found.append(InputProblem("group_size", what, str(self.group_size), "2 or more", "", remedy))
        elif self.pass_k >= self.group_size:
            what = "the best of an entire group is the same for all its members"
            allowed, remedy = f"below algorithm.group_size={self.group_size}", "a smaller k, or a larger group"
            found.append(InputProblem("pass_k", what, str(self.pass_k), allowed, "", remedy))
        if self.pass_k == 1 and self.pass_k_weight != GroupMethod.pass_k_weight:
            what, remedy = "the best of one is the completion itself", "set algorithm.pass_k above 1, or drop it"
            found.append(InputProblem("pass_k_weight", what, str(self.pass_k_weight), "its default", remedy=remedy))
        return found


@dataclass
class RatioMethod(Regularized, GroupMethod):
    """Options of the group methods that weigh a sample by the ratio of its probabilities, now and when it was drawn."""

    zero_variance: str = option("keep", choices=("keep", "mask", "resample"))
    """What to do with groups whose rewards are all equal. keep: they count in the denominators of the loss. mask: they do
    not. resample: other tasks are sampled instead (dynamic sampling)."""
    resample_budget: int = option(10, low=1, rare=True)
    """With zero_variance=resample: most groups sampled for one batch, as a multiple of the batch."""
    rollout_steps: int = option(1, low=1)
    """Steps that learn from one batch of rollouts. The batch has so many times prompts_per_step tasks, and each step learns
    from its own part."""
    iterations: int = option(1, low=1)
    """Consecutive updates on the same samples. Each counts as a step."""
    entropy_target: float = option(0.0, low=0, rare=True)
    """Adapt the weight of the entropy bonus so that the mean entropy of a token stays at this value (Skywork-OR1). 0: the
    weight is constant."""
    entropy_unit: str = option("nats", choices=("nats", "start"), rare=True)
    """Unit of entropy_target. nats, or start: the mean entropy in the first update, so that 0.75 means 75% of it."""
    entropy_step: float = option(0.005, above=0, rare=True)
    """Change of the adapted weight after each update: up below the target, down above it."""

    def problems(self) -> list[InputProblem]:
        found = [*super().problems(), *self.reference_problems()]
        for name in ("entropy_unit", "entropy_step"):
            given = getattr(self, name)
            if not self.entropy_target and given != getattr(RatioMethod, name):
                what, remedy = "the weight of the bonus is constant", "set algorithm.entropy_target above 0, or drop it"
                found.append(InputProblem(name, what, str(given), "its default", remedy=remedy))
        loss = self.trl.get("loss_type")
        if loss in self.losses and loss != "vespo" and self.kl_coef:
            what, remedy = f"TRL's {loss} has no KL term here", "algorithm.kl_coef=0"
            found.append(InputProblem("kl_coef", what, str(self.kl_coef), "0", "", remedy))
        for name in ("clip_low", "clip_high") if loss in ("sapo", "vespo") and loss in self.losses else ():
            given, usual = getattr(self, name), {spec.name: spec.default for spec in fields(self)}[name]
            if given != usual:
                what = f"{loss} has no clip"
                found.append(InputProblem(name, what, str(given), "its default", "", "drop it"))
        if self.zero_variance != "resample" and self.resample_budget != RatioMethod.resample_budget:
            what, remedy = "nothing is resampled", "set algorithm.zero_variance=resample, or drop it"
            found.append(InputProblem("resample_budget", what, str(self.resample_budget), "its default", remedy=remedy))
        return found


@configures("rlvr_exp.algorithms.grpo.GRPO")
@dataclass
@defaults(kl_coef=0.04)
class GRPO(Clipped, RatioMethod):
    """Group-relative policy optimisation (DeepSeekMath)."""

    losses = ("sapo", "vespo")
    loss: str = option("grpo", choices=("grpo", "dapo", "dr_grpo", "token"))
    """How token losses are averaged. grpo: over the tokens of an answer, then over answers. dapo: over the tokens of a
    prompt's answers, then over prompts. dr_grpo: by the constant completion limit. token: over all tokens of the step."""
    advantage_scale: str = option("group", choices=("group", "batch", "none"))
    """Samples whose standard deviation divides the advantages: those of the group, those of the batch, or none."""


@configures("rlvr_exp.algorithms.grpo.DrGRPO")
@dataclass
class DrGRPO(Clipped, RatioMethod):
    """GRPO without its biases: advantages undivided, token losses over a constant (Dr. GRPO)."""


@configures("rlvr_exp.algorithms.grpo.DAPO")
@dataclass
@defaults(zero_variance="resample", rollout_steps=16, clip_high=0.28)
class DAPO(Overlong, Clipped, RatioMethod):
    """Wider clipping above, dynamic sampling, a loss over tokens, overlong answers punished softly (DAPO)."""


@configures("rlvr_exp.algorithms.grpo.GSPO")
@dataclass
@defaults(rollout_steps=4, clip_low=3e-4, clip_high=4e-4)
class GSPO(Clipped, RatioMethod):
    """One ratio for each completion, the geometric mean over its tokens (GSPO)."""

    losses = ("luspo",)


@configures("rlvr_exp.algorithms.grpo.CISPO")
@dataclass
@defaults(zero_variance="resample", rollout_steps=16)
class CISPO(Overlong, RatioMethod):
    """Ratios as capped weights that take no gradient, so that no token is dropped (MiniMax-M1)."""

    clip_high: float = option(4.0, low=0)
    """The weight of a token is capped at 1 plus this value."""


@dataclass
class Distilled(Clipped, RatioMethod):
    """Options of the methods that learn from a teacher's distribution."""

    alpha: float = option(0.5, low=0, high=1)
    """Divergence from the teacher. 0: forward KL. 1: reverse KL. Between: generalised Jensen-Shannon divergence."""
    distillation_top_k: int = option(100, low=0)
    """Most probable tokens of the teacher that are compared. All others count as one. 0: every token by itself, which needs
    memory for the entire vocabulary at each token."""
    is_clip: float = option(2.0, low=0)
    """Largest ratio of a token's probabilities, now and when it was drawn, that weighs its divergence. 0: no ratio."""
    loss: str = option("grpo", choices=("grpo", "dapo", "dr_grpo", "token"))
    """How token losses are averaged, as in GRPO."""


OF_REWARDS = ("clip_low", "clip_high", "pass_k", "unlikeliness", "positive_weight", "correction")
"""Options of a loss by rewards."""


@dataclass
class Weighed(Distilled):
    """Options of the methods that may mix a teacher with the verifier's reward."""

    distillation_weight: float = option(1.0, above=0, high=1)
    """Share of distillation in the loss. The rest is the loss of GRPO."""

    def problems(self) -> list[InputProblem]:
        found = super().problems()
        usual = {spec.name: spec.default for spec in fields(self)}
        others = () if self.distillation_weight < 1.0 else set(OF_REWARDS) - {one.where for one in found}
        for name in sorted(others):
            if (given := getattr(self, name)) != usual[name]:
                what, remedy = "the loss has no rewards", "set algorithm.distillation_weight below 1, or drop it"
                found.append(InputProblem(name, what, str(given), "its default", "", remedy))
        return found


@configures("rlvr_exp.algorithms.distillation.Distillation")
@dataclass
@defaults(alpha=1.0, is_clip=0.0)
class Distillation(Weighed):
    """The policy learns the distribution of another model, roles.teacher.model, on its own completions (GKD)."""


@dataclass
class SelfDistillation(Distilled):
    """Options of the methods whose teacher is the policy with another prompt."""

    teacher_update_rate: float = option(0.05, above=0, high=1)
    """Share of the policy's weights in the moving average that teaches, after each update. 1: the policy itself teaches."""


@dataclass
class OnFeedback(SelfDistillation):
    """Options of the methods whose teacher sees the verifier's feedback."""

    include_feedback: bool = option(True)
    """The teacher sees the verifier's feedback on the answer, besides another answer that passed."""


@configures("rlvr_exp.algorithms.self_distillation.SDPO")
@dataclass
class SDPO(OnFeedback, Weighed):
    """The policy learns what it would have answered with the verifier's feedback in its prompt (SDPO)."""


@configures("rlvr_exp.algorithms.self_distillation.SDFT")
@dataclass
@defaults(alpha=0.0, is_clip=0.0, teacher_update_rate=0.01)
class SDFT(SelfDistillation, Weighed):
    """The policy learns what it would have answered with the reference answer in its prompt (SDFT)."""


@configures("rlvr_exp.algorithms.self_distillation.SRPO")
@dataclass
class SRPO(OnFeedback):
    """Answers that passed learn by GRPO, the others by self-distillation (SRPO)."""

    entropy_beta: float = option(1.0, low=0)
    """A token's divergence is weighted by exp(-entropy_beta * entropy of the teacher). 0: no weight."""


@configures("rlvr_exp.algorithms.grpo.MaxRL")
@dataclass
class MaxRL(Clipped, RatioMethod):
    """Rewards divided by the mean of their group, so that rare successes weigh more (MaxRL)."""


@configures("rlvr_exp.algorithms.grpo.GDPO")
@dataclass
class GDPO(Clipped, RatioMethod):
    """Each term of the reward normalised in its group before the sum (GDPO)."""


@configures("rlvr_exp.algorithms.ssd.SSD")
@dataclass
@defaults(max_steps=40, temperature=1.6, top_p=0.8, top_k=20, correction="none")
class SSD(ReinforcementLearning, TRL):
    """Imitation of one's own samples, correct or not (SSD)."""

    rollout_steps: int = option(40, low=1)
    """Steps that learn from one batch of rollouts. At max_steps or above, the initial policy samples everything."""

    def problems(self) -> list[InputProblem]:
        known = [one for one in super().problems() if one.where != "lag"]  # Its remedy is a correction.
        return [*known, *trl_problems("GRPOConfig", self.trl), *self._faults()]

    def _faults(self) -> Iterator[InputProblem]:
        yield from not_of_group_loss(self.trl)
        if self.lag:
            what = "one batch of rollouts serves many steps, and no sample is weighted"
            yield InputProblem("lag", what, str(self.lag), "0", "", "drop it")
        if self.correction != "none":
            what = "samples are imitated as they were drawn"
            yield InputProblem("correction", what, self.correction, "none", "", "drop it")
        if self.group_size < 2:
            what = "completions of a prompt are computed together, two or more"
            yield InputProblem("group_size", what, str(self.group_size), "2 or more", "", "algorithm.group_size=2")


@configures("rlvr_exp.algorithms.rloo.RLOO")
@dataclass
class RLOO(GroupMethod):
    """REINFORCE on completions, each against the mean of the others (RLOO)."""

    baseline: str = option("group", choices=BASELINES)
    """Value subtracted from a reward. group: the mean of the other completions of the group. batch: the mean of all other
    completions of the step. none: nothing (REINFORCE)."""
    kl_coef: float = option(0.03, low=0)
    """Weight of an answer's log-ratio to the reference policy, subtracted from its reward. 0: no reference is kept in
    memory."""


@configures("rlvr_exp.algorithms.sft.SFT")
@dataclass
@defaults(max_steps=150)
class SFT(Updates, TRL):
    """Imitation of reference answers. The loss does not include the prompt."""

    batch_size: int = option(64, low=1)
    """Sequences in one step."""
    max_sequence_tokens: int = option(1024, low=1)
    """Longest prompt and completion together. Longer examples are left out and counted."""
    shown_answers: float = option(0.0, low=0, high=1, rare=True)
    """Share of examples whose prompt shows the answer, as the teacher of algorithm=sdpo sees it. A small policy learns to read
    such prompts."""
    eval_every_steps: int = option(50, low=1)
    """Steps between measurements of the held-out loss."""

    def problems(self) -> list[InputProblem]:
        return trl_problems("SFTConfig", self.trl)


def queues(algorithm: Any) -> bool:
    """Whether groups may wait for later steps, or others be sampled in their place."""
    return getattr(algorithm, "zero_variance", "") == "resample" or getattr(algorithm, "rollout_steps", 1) > 1


def without_queues(algorithm: Any) -> str:
    """The overrides that stop groups from waiting."""
    resamples = getattr(algorithm, "zero_variance", "") == "resample"
    words = ["algorithm.zero_variance=keep"] * resamples
    usual = {spec.name: spec.default for spec in fields(algorithm)}.get("resample_budget")
    if resamples and algorithm.resample_budget != usual:
        words.append(f"algorithm.resample_budget={usual}")
    words += ["algorithm.rollout_steps=1"] * (getattr(algorithm, "rollout_steps", 1) > 1)
    return " ".join(words)


OF_GROUP_LOSS = {"delta", "importance_sampling_level", "off_policy_mask_threshold", "use_bias_correction_kl"}
"""Fields of GRPOConfig that only the group methods' loss reads."""


def not_of_group_loss(trl: dict[str, Any]) -> Iterator[InputProblem]:
    for name in OF_GROUP_LOSS & trl.keys():
        what = "read by the loss of the group methods alone"
        yield InputProblem(f"trl.{name}", what, str(trl[name]), remedy="drop it")


@configures("rlvr_exp.algorithms.ppo.PPO")
@dataclass
@defaults(kl_coef=0.05)
class PPO(Clipped, Regularized, ReinforcementLearning, TRL):
    """Proximal policy optimisation with a value for every token."""

    gamma: float = option(1.0, low=0, high=1)
    """Discount for each further token."""
    gae_lambda: float = option(0.95, low=0, high=1)
    """Bias and variance of the advantages: 1 uses the reward alone, 0 the value of the next token alone."""
    whiten_advantages: bool = option(True)
    """Scale the advantages of a batch to mean 0 and standard deviation 1."""
    iterations: int = option(4, low=1)
    """Passes over each batch of rollouts."""
    minibatches: int = option(1, low=1)
    """Parts of a batch. Each has its own update."""
    value_trunk: str = option("shared", choices=("shared", "own"))
    """Input of the value head. shared: the hidden states of the policy, which the value loss then changes too. own: a copy
    of the policy's decoder."""
    value_coef: float = option(0.1, above=0)
    """Weight of the value's loss."""
    value_clip: float = option(0.2, low=0)
    """A value may differ from its old estimate by at most this much before its gradient stops. 0: no limit."""
    value_lr: float = option(0.0, low=0)
    """Learning rate of the value's own weights. 0: the optimizer's rate."""
    value_warmup_steps: int = option(0, low=0)
    """First updates, which train only the value's own weights."""
    kl_in: str = option("reward", choices=("reward", "loss"))
    """Place of the KL penalty: in each token's reward, or as a term of the loss."""
    loss: str = option("token", choices=("token", "grpo", "dr_grpo"))
    """How token losses are averaged. token: over all tokens of a batch. grpo and dr_grpo: as in GRPO."""
    replay_steps: int = option(0, low=0, rare=True)
    """Recent batches of rollouts that are kept for replay. 0: none."""
    replay_prompts: int = option(0, low=0, rare=True)
    """Groups drawn from the kept batches and added to each batch."""
    replay_max_weight: float = option(1.0, above=0, rare=True)
    """Largest importance weight of a replayed token."""

    def problems(self) -> list[InputProblem]:
        return [*super().problems(), *trl_problems("GRPOConfig", self.trl), *self._faults()]

    def _faults(self) -> Iterator[InputProblem]:
        yield from self.reference_problems()
        yield from not_of_group_loss(self.trl)
        if not self.kl_coef and self.kl_in != "reward":
            what, remedy = "without a KL penalty it acts nowhere", "set algorithm.kl_coef above 0, or drop it"
            yield InputProblem("kl_in", what, self.kl_in, "reward while algorithm.kl_coef=0", "", remedy)
        if self.group_size < 2:
            what = "completions of a prompt are computed together, two or more"
            yield InputProblem("group_size", what, str(self.group_size), "2 or more", "", "algorithm.group_size=2")
        if self.replay_steps and self.replay_prompts:
            return
        remedy = "set algorithm.replay_steps and algorithm.replay_prompts both, or neither"
        for name in ("replay_steps", "replay_prompts"):
            if value := getattr(self, name):
                yield InputProblem(name, "nothing is replayed without the other", str(value), "0", "", remedy)
        if self.replay_max_weight != 1.0:
            got = str(self.replay_max_weight)
            yield InputProblem("replay_max_weight", "nothing is replayed", got, "1.0", "", remedy)


@dataclass
class Optimizer:
    """Options of every optimizer's node, a user's own included."""

    lr: float = option(2e-4, above=0)
    """Highest learning rate."""
    max_grad_norm: float = option(1.0, above=0)
    """Largest norm of the gradient. Larger gradients are scaled down to it."""
    gradient_cosine: bool = option(False, rare=True)
    """Log the cosine between the gradients of consecutive updates for each layer. One gradient is kept in host memory."""


@dataclass
class Decayed(Optimizer):
    """Options of the optimizers with weight decay."""

    weight_decay: float = option(0.0, low=0)
    """Weight decay of matrices. Vectors, such as biases and norms, have none."""


@dataclass
class Moments(Decayed):
    """Options of the optimizers of Adam's kind."""

    beta1: float = option(0.9, low=0, below=1)
    """Decay rate of the mean of gradients."""
    beta2: float = option(0.999, low=0, below=1)
    """Decay rate of the mean of squared gradients."""
    eps: float = option(1e-8, above=0, rare=True)
    """Constant added to the denominator."""


@configures("rlvr_exp.algorithms.optimizers.Adam")
@dataclass
class Adam(Moments):
    """Adam. Its weight decay is an L2 penalty: it is added to the gradients, which the denominator divides."""


@configures("rlvr_exp.algorithms.optimizers.AdamW")
@dataclass
class AdamW(Moments):
    """Adam with weight decay that is decoupled from the gradients."""


@configures("rlvr_exp.algorithms.optimizers.AdamW8bit")
@dataclass
class AdamW8bit(AdamW):
    """AdamW with states of 8 bits, in blocks of 256 with a scale each (bitsandbytes): a quarter of the memory."""


@configures("rlvr_exp.algorithms.optimizers.SGD")
@dataclass
class SGD(Decayed):
    """Stochastic gradient descent. Its weight decay is an L2 penalty."""

    momentum: float = option(0.9, low=0, below=1)
    """Share of the last update in the next; 0: none, and no state in memory."""


@configures("rlvr_exp.algorithms.optimizers.Adafactor")
@dataclass
class Adafactor(Decayed):
    """Adam with a row and a column of second moments for each matrix instead of all of them: little memory, decoupled weight decay."""

    beta1: float = option(0.0, low=0, below=1)
    """Decay of the mean of updates; 0: none, and no such state in memory."""


@configures("rlvr_exp.algorithms.optimizers.Muon")
@dataclass
class Muon(AdamW):
    """Orthogonalised momentum for hidden matrices, for training from scratch in few steps; AdamW for the rest."""

    matrix_lr: float = option(0.02, above=0)
    """Learning rate of the hidden matrices; `lr` is that of embeddings, heads and norms."""
    momentum: float = option(0.95, low=0, below=1)
    """Decay of the momentum of the hidden matrices."""


@dataclass
class Scheduler:
    """Options of every learning rate schedule."""

    warmup_steps: int = option(0, low=0)
    """Steps over which the learning rate rises from 0 to its highest value."""


@configures("rlvr_exp.algorithms.optimizers.Constant")
@dataclass
class Constant(Scheduler):
    """The highest rate, after the warm-up."""


@configures("rlvr_exp.algorithms.optimizers.Linear")
@dataclass
class Linear(Scheduler):
    """A straight line to 0 at the last step."""


@dataclass
class Falling(Scheduler):
    """Options of the schedules that may end above 0."""

    min_ratio: float = option(0.0, low=0, below=1)
    """Last rate as a share of the highest rate."""


@configures("rlvr_exp.algorithms.optimizers.Cosine")
@dataclass
class Cosine(Falling):
    """Half a wave of the cosine."""


@configures("rlvr_exp.algorithms.optimizers.Polynomial")
@dataclass
class Polynomial(Falling):
    """A power of the share of steps that are left."""

    power: float = option(2.0, above=0)
    """The power; 1 is a straight line."""


@configures("rlvr_exp.algorithms.optimizers.WarmupStableDecay")
@dataclass
class WarmupStableDecay(Falling):
    """The highest rate for most of the run, then a short decay: the stable part can be resumed from any step."""

    decay_steps: int = option(0, low=0)
    """Last steps, over which the rate decays. 0: a fifth of all steps."""
    decay: str = option("linear", choices=("linear", "cosine", "1-sqrt"))
    """Shape of the decay."""


def last_steps(steps: int) -> int:
    """Steps of a decay whose length is not given: a fifth of a run's, rounded up."""
    return -(-steps // 5)


def schedule_problems(scheduler: Scheduler, steps: int) -> Iterator[InputProblem]:
    """Problems of a schedule in a run of that many steps."""
    if not (steps and isinstance(scheduler, WarmupStableDecay)):
        return
    decay = scheduler.decay_steps or last_steps(steps)
    if scheduler.warmup_steps + decay > steps:
        got = f"{scheduler.warmup_steps} + {decay} of {steps} steps"
        remedy = "a shorter scheduler.warmup_steps or scheduler.decay_steps, or a larger algorithm.max_steps"
        yield InputProblem("scheduler", "warm-up and decay are longer than the run", got, "", "", remedy)
