"""On-policy distillation: the policy learns the distribution of a teacher on tokens that it drew itself.

On-Policy Distillation of Language Models (Agarwal et al. 2024, GKD, arXiv 2306.13649). The loss of a token is a divergence of
the student p_S from the teacher p_T over the vocabulary (its eq. 1, the generalised Jensen-Shannon divergence):

    alpha = 0        KL(p_T || p_S), forward
    alpha = 1        KL(p_S || p_T), reverse
    0 < alpha < 1    (1 - alpha) KL(p_S || M) + alpha KL(p_T || M), with M = (1 - alpha) p_S + alpha p_T

These are the definitions of TRL's SDPOTrainer. The gradient does not pass through the draws of tokens.

The teacher's distribution is its K most probable tokens and one further event for all others, so that it fits in memory at
any vocabulary. A divergence over these events is at most that over all tokens.

`DistillationTrainer` adds the divergence to the loss of TRL's GRPOTrainer. The teacher is another model (`Distillation`), or the
policy with another prompt (rlvr_exp.algorithms.self_distillation). A server returns the K tokens of its model.

Differences from the paper:
- All samples are the student's own (its lambda is 1).
- The student samples and learns at the temperature of sampling, which divides the teacher's logits, too.
"""

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache, partial
from itertools import groupby, takewhile
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from safetensors.torch import load_file, save_file
from torch import nn
from transformers import TrainerCallback

from rlvr_exp.algorithms.grpo import RatioAlgorithm
from rlvr_exp.algorithms.logprobs import (
    Scores,
    Tiled,
    linear_head,
    model_config,
    precise,
    token_logprobs,
    with_head,
)
from rlvr_exp.algorithms.loss import EntropyControl, TokenMeans, token_weights
from rlvr_exp.algorithms.packed_layers import choose
from rlvr_exp.algorithms.packing import SDPA_PACKED, ModelRows
from rlvr_exp.algorithms.trainer import PolicyTrainer
from rlvr_exp.algorithms.training_batch import TrainingBatch, unpadded
from rlvr_exp.config import algorithm as options
from rlvr_exp.models.policy import Policy
from rlvr_exp.rollouts.engines.teacher_server import TeacherServer
from rlvr_exp.rollouts.groups import Groups
from rlvr_exp.tasks.base import Domain


def divergence(student: torch.Tensor, teacher: torch.Tensor, alpha: float) -> torch.Tensor:
    """(m, events) log-probabilities of both -> (m,), in nats; `alpha` as above."""
    if alpha == 0.0:
        return (teacher.exp() * (teacher - student)).sum(-1)
    if alpha == 1.0:
        return (student.exp() * (student - teacher)).sum(-1)
    mixed = torch.logaddexp(student + math.log(1 - alpha), teacher + math.log(alpha))
    of_student = (student.exp() * (student - mixed)).sum(-1)
    of_teacher = (teacher.exp() * (teacher - mixed)).sum(-1)
    return (1 - alpha) * of_student + alpha * of_teacher


def with_rest(logprobs: torch.Tensor, vocabulary: int) -> torch.Tensor:
    """(m, K) log-probabilities of some tokens -> (m, K + 1): also that of any other token. All tokens stay as they are."""
    if logprobs.shape[-1] == vocabulary:
        return logprobs
    known = logprobs.logsumexp(-1, keepdim=True).clamp(max=-1e-7)
    return torch.cat([logprobs, (-known.expm1()).log()], -1)


@dataclass(frozen=True)
class Taught:
    """A teacher's most probable tokens at m places, and their log-probabilities."""

    ids: torch.Tensor
    """(m, K)"""
    logprobs: torch.Tensor
    """(m, K), under its full distribution"""


@dataclass(frozen=True)
class TaughtHead:
    """The student's head: log-probabilities and entropies of the distribution that tokens are drawn from, and divergences from
    the teacher of that before any filter.

    Args:
        labels: (m,) the tokens that were drawn.
        temperature: divides the logits.
        kept_token_ids: as for `logprobs.score`.
    """

    labels: torch.Tensor
    taught: Taught
    temperature: float
    alpha: float
    kept_token_ids: torch.Tensor | None
    constants: ClassVar[int] = 0

    def figures(self, logits: torch.Tensor, rows: slice) -> tuple[torch.Tensor, ...]:
        logs = precise(logits).div(self.temperature).log_softmax(-1)
        if self.kept_token_ids is None:
            own, entropies = logs.gather(-1, self.labels[rows, None])[:, 0], -(logs.exp() * logs).sum(-1)
        else:
            kept = self.kept_token_ids[rows]
            own, entropies = token_logprobs(logits, self.labels[rows], self.temperature, kept, entropy=True)
        student = with_rest(logs.gather(-1, self.taught.ids[rows]), logs.shape[-1])
        teacher = with_rest(self.taught.logprobs[rows], logs.shape[-1])
        return own, entropies, divergence(student, teacher, self.alpha)


@dataclass(frozen=True)
class TopHead:
    """A teacher's head: ids and log-probabilities of its K most probable tokens, (r, K), and of the token drawn.

    Args:
        vocabulary: of the student; a larger teacher of its family may have unused tokens after these.
    """

    labels: torch.Tensor
    temperature: float
    top_k: int
    vocabulary: int
    constants: ClassVar[int] = 0

    def figures(self, logits: torch.Tensor, rows: slice) -> tuple[torch.Tensor, ...]:
        logs = precise(logits[:, : self.vocabulary]).div(self.temperature).log_softmax(-1)
        found, ids = logs.topk(min(self.top_k or logs.shape[-1], logs.shape[-1]), -1)
        return ids, found, logs.gather(-1, self.labels[rows, None])[:, 0]


@dataclass(frozen=True, kw_only=True)
class TaughtBatch(TrainingBatch):
    """A training batch with a teacher's prompts."""

    teacher_prompts: tuple[tuple[int, ...], ...]
    """Of each sample."""
    distilled: torch.Tensor
    """(N, T) weight of a token's divergence beside its policy loss, both times `weights`; 0 if it has no teacher."""

    def informative(self) -> bool:
        """Whether any sample is taught or has an advantage."""
        return bool((self.distilled != 0).any() or (self.advantages != 0).any())

    def select(self, prompts: Sequence[int]) -> Self:
        rows_of = self.rows_of
        chosen = tuple(self.teacher_prompts[row] for prompt in prompts for row in rows_of[prompt])
        return dataclasses.replace(super().select(prompts), teacher_prompts=chosen)


def shared_starts(
    prompts: Sequence[Sequence[int]], owners: Sequence[int]
) -> tuple[list[list[int]], list[list[int]], list[int]]:
    """Prompts in two parts: a beginning that neighbours of a group share, which is computed once, and the rest. Neighbours with
    the same prompt share all of it; the others of a group share their common beginning, if they have one.

    Args:
        owners: the group of each prompt; its members are neighbours.

    Returns:
        Beginnings, rests, and the number of each beginning.
    """
    starts, numbers = list[list[int]](), list[int]()
    for _, of_group in groupby(range(len(owners)), key=owners.__getitem__):
        runs = [[*map(list, same)] for _, same in groupby(prompts[row] for row in of_group)]
        alone = [run for run in runs if len(run) == 1]
        alike = takewhile(lambda tokens: len({*tokens}) == 1, zip(*(run[0] for run in alone), strict=False))
        start = [tokens[0] for tokens in alike]
        shared = bool(start) and len(alone) == len(runs)
        first = len({*numbers})
        for place, run in enumerate(runs):
            starts += [start if shared else run[0]] * len(run)
            numbers += [first + (0 if shared else place)] * len(run)
    rests = [list(prompt)[len(start) :] for prompt, start in zip(prompts, starts, strict=True)]
    return starts, rests, numbers


class Teacher(nn.Module):
    """The policy itself. Subclasses are other weights.

    Args:
        model: another model; None: the policy's.
    """

    def __init__(self, model: nn.Module | None = None):
        super().__init__()
        self.model = model

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Inside the block the policy's model has the teacher's weights."""
        yield

    def follow(self) -> None:
        """After each update."""


class OtherModel(Teacher):
    """A teacher with its own weights."""

    def __init__(self, model: nn.Module):
        super().__init__(model.requires_grad_(False).eval())
        self.way: str | None = None
        """As `Choice.implementation`, tried on this model."""


class ServedTeacher(Teacher):
    """A teacher whose weights a server holds."""

    def __init__(self, server: TeacherServer):
        super().__init__()
        self.server = server


class MovingAverage(Teacher):
    """The exponential moving average of a model's trained weights, in float32: after each update w <- (1 - rate) w + rate theta."""

    FILE: ClassVar[Path] = Path("training") / "teacher.safetensors"

    def __init__(self, model: nn.Module, rate: float):
        super().__init__()
        self._rate = rate
        self._of = {name: value for name, value in model.named_parameters() if value.requires_grad}
        self._average = {name: value.detach().float().clone() for name, value in self._of.items()}

    @classmethod
    def teacher(cls, model: nn.Module, rate: float) -> Teacher:
        """The average of a policy's weights; at rate 1 the policy itself."""
        return cls(model, rate) if rate < 1.0 else Teacher()

    @torch.no_grad()
    def follow(self) -> None:
        for name, value in self._of.items():
            self._average[name].lerp_(value.float(), self._rate)

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Inside the block the model has the averaged weights."""
        own = {name: value.detach().clone() for name, value in self._of.items()}
        with torch.no_grad():
            for name, value in self._of.items():
                value.copy_(self._average[name])
        try:
            yield
        finally:
            with torch.no_grad():
                for name, value in self._of.items():
                    value.copy_(own[name])

    def save(self, folder: Path) -> None:
        save_file({name: value.contiguous() for name, value in self._average.items()}, folder / self.FILE)

    def load(self, folder: Path) -> None:
        """Raises KeyError if the file belongs to another model."""
        kept = load_file(folder / self.FILE)
        for name, value in self._average.items():
            value.copy_(kept[name])


class _Follow(TrainerCallback):
    """Lets the teacher follow after each update."""

    def __init__(self, teacher: Teacher):
        self._teacher = teacher

    def on_step_end(self, *_: Any, **__: Any) -> None:
        self._teacher.follow()


class DistillationTrainer(PolicyTrainer):
    """Adds to the loss of each token of a `TaughtBatch`: distilled * min(p / p_drawn, is_clip) * divergence, the ratio that of the
    token's probability now and when it was drawn, without gradient.

    Args:
        algorithm: its options.
        common: the arguments of PolicyTrainer.

    Raises:
        InputError: the model's head, or the teacher's, is no plain linear layer.
    """

    per_sample = (*PolicyTrainer.per_sample, "distilled")

    def __init__(self, algorithm: "TaughtAlgorithm", teacher: Teacher, policy: Policy, *common: Any, **given: Any):
        super().__init__(policy, *common, **{"entropy": EntropyControl.of(algorithm), **given})
        self._options, self._teacher = algorithm, teacher
        self._entropy_beta = algorithm.entropy_beta
        self._taught_means = TokenMeans()
        if not isinstance(teacher, (OtherModel, ServedTeacher)):
            self._longest = policy.max_tokens  # Its prompts are longer than the policy's.
        for model in filter(None, (self.model, teacher.model)):
            linear_head(model)
        self.add_callback(_Follow(teacher))

    @property
    def checkpoint_parts(self) -> Mapping[str, Any]:
        own = {"teacher": self._teacher} if isinstance(self._teacher, MovingAverage) else {}
        return {**super().checkpoint_parts, **own}

    def _begin(self, model: nn.Module) -> None:
        super()._begin(model)
        if isinstance(teacher := self._teacher, OtherModel):
            other: Any = teacher.model
            teacher.way = choose(other, self._longest, self.accelerator.device, other.dtype).implementation

    @property
    def _joins(self) -> bool:
        """False, because each turn has its own teacher prompt."""
        return False

    def _prepared(self, experience: TaughtBatch) -> TaughtBatch:  # type: ignore[override]
        """Logs the share of learned answers that have a teacher."""
        learned = (experience.weights != 0).any(1)
        taught = (experience.distilled * experience.weights != 0).any(1)
        self._metrics["train"]["distill/taught"].append(float(taught.sum() / learned.sum().clamp(min=1)))
        return experience

    def _counted(self, experience: TaughtBatch) -> torch.Tensor:  # type: ignore[override]
        return super()._counted(experience) | (experience.weights * experience.distilled != 0).any(1)

    def _inputs(self, experience: TaughtBatch, prompts: Sequence[int]) -> dict:  # type: ignore[override]
        part = experience.select(prompts)
        return super()._inputs(experience, prompts) | {"distilled": part.distilled.to(self.accelerator.device)}

    def _compared(self, inputs: dict, batch: TaughtBatch, samples: Sequence[int]) -> dict:  # type: ignore[override]
        """Also the teacher's distributions, in the order of the predictions of `rows`: sample after sample."""
        completions = unpadded(batch.completion_ids, batch.completion_mask, samples)
        owner_of = [prompt for prompt, of in enumerate(batch.rows_of) for _ in of]
        owners = [owner_of[sample] for sample in samples]
        prompts = [batch.teacher_prompts[sample] for sample in samples]
        if isinstance(self._teacher, ServedTeacher):
            device = self.accelerator.device
            ids, logprobs, drawn = (one.to(device) for one in self._teacher.server.scored(prompts, completions))
            return super()._compared(inputs, batch, samples) | _teacher_inputs(Taught(ids, logprobs), drawn)
        # Those with the same prompt become neighbours, which share it.
        order = sorted(range(len(samples)), key=lambda row: (owners[row], prompts[row]))
        starts, rests, groups = shared_starts([prompts[row] for row in order], [owners[row] for row in order])
        answers = [[*before, *completions[row]] for before, row in zip(rests, order, strict=True)]
        given = (starts, answers, groups, max(map(len, answers)))
        taught, drawn = self._taught(partial(self._model_rows, *given, given=[*map(len, rests)]), order)
        return super()._compared(inputs, batch, samples) | _teacher_inputs(taught, drawn)

    def _taught(self, make: Callable[..., ModelRows], order: Sequence[int]) -> tuple[Taught, torch.Tensor]:
        """The teacher's distributions, and its (m,) log-probabilities of the tokens drawn, sample after sample.

        Args:
            make: the rows, from `shared`: whether completions share their prompt.
            order: the sample of each place in the rows.
        """
        teacher = self._teacher
        if not isinstance(teacher, OtherModel):
            with teacher.in_use(), self.computing(self.model_wrapped):
                rows = make(shared=self._shared)
                return self._asked(self.model_wrapped, rows, order, self._way or SDPA_PACKED)
        return self._asked(teacher.model, make(shared=teacher.way is not None), order, teacher.way or SDPA_PACKED)

    def _asked(
        self, model: Any, rows: ModelRows, order: Sequence[int], implementation: str
    ) -> tuple[Taught, torch.Tensor]:
        vocabulary = model_config(self.model).get_text_config().vocab_size
        head = TopHead(rows.labels, self.temperature, self._options.distillation_top_k, vocabulary)
        found: list[torch.Tensor] = []

        def compute(hidden: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
            found.extend(Tiled.apply(hidden, weight, bias, head))
            return found[-1][:, None]

        # Another model computes in the type of its own weights.
        casting = nullcontext() if model is self._teacher.model else self.accelerator.autocast()
        was_training = model.training
        model.eval()
        try:
            with torch.no_grad(), casting:
                with_head(model, rows, compute, implementation)
        finally:
            model.train(was_training)
        back = rows.of(order, len(order)).places.argsort()
        ids, logprobs, drawn = (one[back] for one in found)
        return Taught(ids, logprobs), drawn

    def _scores_of_pass(self, model: nn.Module, rows: ModelRows, entropy: bool, **options: Any) -> Scores:
        taught, support = Taught(self._pass["teacher_ids"], self._pass["teacher_logprobs"]), self._pass.get("support")
        kept = None if support is None else rows.chosen(support)
        head = TaughtHead(rows.labels, taught, self.temperature, self._options.alpha, kept)

        def compute(hidden: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
            return torch.stack(Tiled.apply(hidden, weight, bias, head), -1)

        with self.accelerator.autocast():
            figures, output = with_head(model, rows, compute, self._way or SDPA_PACKED, **options)
        logprobs, entropies, self._divergences = figures.unbind(-1)
        return Scores(logprobs, entropies if entropy else None, None, output)

    def _compute_loss(self, model: nn.Module, inputs: dict) -> torch.Tensor:
        loss = super()._compute_loss(model, inputs)
        rows, items = inputs["rows"], inputs["num_items_in_batch"] / self.accelerator.num_processes
        weights = inputs["tool_mask"] * inputs["distilled"]
        if clip := self._options.is_clip:
            gaps = self._scores.logprobs.detach() - rows.chosen(inputs["sampling_logps"])
            weights = weights * rows.placed(gaps.clamp(-20.0, 20.0).exp().clamp(max=clip))
        if self._entropy_beta:
            events = with_rest(inputs["teacher_logprobs"], model_config(model).get_text_config().vocab_size)
            weights = weights * rows.placed((self._entropy_beta * (events.exp() * events).sum(-1)).exp())
        gain = inputs["teacher_drawn"] - self._scores.logprobs.detach()
        figures = {"distill/divergence": rows.placed(self._divergences.detach()), "distill/gain": rows.placed(gain)}
        self._taught_means.add(inputs["tool_mask"] * inputs["distilled"] / inputs["num_items_in_batch"], figures)
        return loss + (weights * rows.placed(self._divergences)).sum() / items

    def gradient(self) -> torch.Tensor:
        """Also logs means over the taught tokens: the divergence, and how much more probable the teacher finds them, in nats."""
        loss = super().gradient()
        for name, mean in self._taught_means.means(self.accelerator).items():
            if not math.isnan(mean):  # Nothing was taught.
                self._metrics["train"][name].append(mean)
        return loss


def _teacher_inputs(taught: Taught, drawn: torch.Tensor) -> dict[str, torch.Tensor]:
    return {"teacher_ids": taught.ids, "teacher_logprobs": taught.logprobs, "teacher_drawn": drawn}


class TaughtAlgorithm(RatioAlgorithm, options.Distilled):
    """A method whose loss has a teacher."""

    entropy_beta: float = 0.0
    """The divergence is weighted by exp(-entropy_beta * H), H the teacher's entropy."""

    @property
    def regularised(self) -> bool:
        """Groups without variance in their rewards are taught as well."""
        return True

    def weights(self, mask: torch.Tensor, groups: torch.Tensor) -> torch.Tensor:
        return token_weights(mask, self.loss, self.max_completion_tokens, groups)


class Distillation(TaughtAlgorithm, options.Distillation):
    teacher: Policy | TeacherServer

    def begin(self, domain: Domain, policy: Policy, teacher: Policy | TeacherServer | None) -> None:
        assert teacher is not None  # The command is refused without one.
        self.teacher = teacher

    def experience(self, groups: Groups, pad_id: int) -> TaughtBatch:
        batch = super().experience(groups, pad_id)
        weight, encode = self.distillation_weight, cache(self.teacher.encode_prompt)
        return TaughtBatch(
            **{**vars(batch), "advantages": batch.advantages * (1.0 - weight)},
            distilled=weight * batch.completion_mask,
            teacher_prompts=tuple(tuple(encode(text)) for group in groups.batch for text in group.prompts),
        )

    def trainer(self, policy: Policy, *common: Any) -> DistillationTrainer:
        own = self.teacher
        teacher = ServedTeacher(own) if isinstance(own, TeacherServer) else OtherModel(own.model)
        return DistillationTrainer(self, teacher, policy, *common)
