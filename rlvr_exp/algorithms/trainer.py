"""The trainer of every RL stage: TRL's GRPOTrainer, given each step's training batch.

An update runs as many forward and backward passes as the real lengths require (config.batching), and the sum of their
losses is the update's. Samples whose gradient is exactly zero are skipped.

Seams used of the pinned TRL (private methods; tests/algorithms hold them):
- `_prepare_inputs` receives each micro-batch ready;
- `_get_per_token_logps_and_entropies` scores the rows of the micro-batch (algorithms.packing, algorithms.logprobs);
- advantages of shape (N, T) and a float `tool_mask` as the per-token weights of the loss.
Sampling, verification and advantages are not part of this class.

A reference policy that follows the trained policy is part of a checkpoint; a fixed reference is the initial policy.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, ClassVar

import torch
from accelerate import Accelerator
from datasets import Dataset
from safetensors.torch import load_file, save_file
from torch import nn
from trl import GRPOConfig, GRPOTrainer

from rlvr_exp.algorithms.gradients import NonFiniteGuard
from rlvr_exp.algorithms.logprobs import Scores, score
from rlvr_exp.algorithms.loss import EntropyControl, SamplingCorrection, TokenMeans, clipped, kl_estimate
from rlvr_exp.algorithms.packing import SDPA_PACKED, ModelRows, packed, row_by_row
from rlvr_exp.algorithms.stepped import PackedTrainer, as_plain, filled_on_cpu, from_plain, longest_part, warm_up
from rlvr_exp.algorithms.training_batch import TrainingBatch, joined, unpadded
from rlvr_exp.config.parallel import BatchLimits, Piece, micro_batches, pieces
from rlvr_exp.models.adapters import adapters_off, kept_precise, reference_is_base
from rlvr_exp.models.parameters import copy_weights
from rlvr_exp.models.policy import Policy


class PolicyTrainer(PackedTrainer, GRPOTrainer):
    """Updates `policy` on training batches.

    Args:
        guard: counts updates that are not applied.
        limits: tokens of a pass, and the longest possible prompt.
        entropy: the weight of the entropy bonus; None: no bonus.
    """

    per_sample: ClassVar[tuple[str, ...]] = ("tool_mask", "old_per_token_logps")
    """Inputs of a pass, 0 for samples that are not part of it."""

    def __init__(
        self,
        policy: Policy,
        args: GRPOConfig,
        optimizer: torch.optim.Optimizer,
        guard: NonFiniteGuard,
        limits: BatchLimits,
        *,
        entropy: EntropyControl | None = None,
    ):
        with kept_precise(policy.model), reference_is_base(policy.model, args):
            super().__init__(
                model=policy.model,
                reward_funcs=[_judged_elsewhere],
                args=args,
                train_dataset=Dataset.from_dict({"prompt": [""]}),  # TRL demands one; it is never read.
                processing_class=policy.tokenizer,
                optimizer=optimizer,
                guard=guard,
                longest=limits.prompt + args.max_completion_length,
            )
        self.beta = args.beta
        if self.ref_model is not None:
            # The reference is the initial policy, wherever its weights came from; TRL would load it by name.
            copy_weights(self.model, self.accelerator.unwrap_model(self.ref_model))
        self._entropy = entropy or EntropyControl(0.0)
        self._token_means = TokenMeans()
        self.correction = SamplingCorrection()
        self._limits = limits
        self._updates: list[list[dict]] = []
        """Micro-batches of each update on the training batch, in order."""
        self._pass: dict = {}
        self._scores: Any = None
        """Scores of the last forward pass, with the model's own output."""

    @property
    def needs_batch(self) -> bool:
        return self.state.global_step % self._steps_per_experience == 0 or not self._updates

    def take(self, experience: TrainingBatch) -> TrainingBatch:
        if self._choice is None:
            self._begin(self.model_wrapped)
        experience = self._prepared(experience)
        batch = joined(experience) if self._joins else experience
        cuts = [self._parts(batch, prompts) for prompts in self._minibatches(batch)]
        self._updates = [[self._micro_batch(batch, part) for part in parts] for parts in cuts]
        return experience

    def passes(self) -> tuple[list[dict], None]:
        if self._choice is None:  # Resumed between two updates on the same batch.
            self._begin(self.model_wrapped)
        return self._updates[self.state.global_step % self._steps_per_experience % len(self._updates)], None

    def gradient(self) -> torch.Tensor:
        """Accumulate the gradient of an update; the weight of the entropy bonus follows the entropy of its tokens."""
        loss = super().gradient()
        means = self._token_means.means(self.accelerator)
        for name, mean in (means | self.correction.metrics(self.accelerator)).items():
            self._metrics["train"][name].append(mean)
        if self._entropy.adapts:
            self._metrics["train"]["entropy/coef"].append(self._entropy.coef)
            self._entropy.observe(means["entropy"])
        return loss

    @property
    def checkpoint_parts(self) -> Mapping[str, Any]:
        """Objects that belong to a checkpoint besides the policy, by name (rlvr_exp.training.checkpoints)."""
        follows = self.ref_model is not None and self.args.sync_ref_model
        return {"reference": Reference(self.accelerator.unwrap_model(self.ref_model))} if follows else {}

    def trainer_state(self) -> Mapping[str, Any]:
        """How rows are packed, and the rest of the batch in use, so that a resume need not sample, score or estimate it."""
        in_use = self.state.global_step % self._steps_per_experience != 0
        return {
            **super().trainer_state(),
            "updates": as_plain(self._updates) if in_use else [],
            "entropy": self._entropy.state_dict(),
        }

    def load_trainer_state(self, state: Mapping[str, Any]) -> None:
        super().load_trainer_state(state)
        self._updates = from_plain(state["updates"])
        self._entropy.load_state_dict(state["entropy"])

    @property
    def _steps_per_experience(self) -> int:
        """Updates on each training batch."""
        return self.num_iterations

    def _minibatches(self, experience: TrainingBatch) -> list[Sequence[int]]:
        """Prompts of each update, in order: every update uses all."""
        return [range(experience.prompts)]

    def _begin(self, model: nn.Module) -> None:
        """Before step 1: choose how rows are packed, and on accelerators check that the longest rows fit in memory."""
        super()._begin(model)
        if self.accelerator.device.type == "cuda":
            self._warm_up(model)

    def _warm_up(self, model: nn.Module) -> None:
        prompts, completions, owners = longest_part(
            self._limits, self.num_generations, self.max_completion_length, self._shared
        )
        rows = self._model_rows(prompts, completions, owners, self.max_completion_length)
        kept = torch.full((*rows.shape, 1), -1, device=self.accelerator.device) if self._limits.filtered else None
        with self.passing(last=False):
            warm_up(model, lambda: self._score(model, rows, kept).logprobs.sum(), self.accelerator.backward)

    def _prepare_inputs(self, generation_batch: Any) -> Any:
        return generation_batch

    def _prepared(self, experience: TrainingBatch) -> TrainingBatch:
        """Called once for each training batch, before it is split into micro-batches."""
        return experience

    @property
    def _joins(self) -> bool:
        """Whether turns that follow from each other may be one row: not if a row is a unit of the loss."""
        return self.importance_sampling_level == "token"

    @property
    def _shared(self) -> bool:
        """Whether completions of a group share their prompt in a packed row."""
        return self._way is not None

    def _counted(self, experience: TrainingBatch) -> torch.Tensor:
        """(N,) samples whose gradient is not exactly zero."""
        if self.beta != 0.0 or self._entropy.active:
            return (experience.weights != 0).any(1)
        return (experience.weights * experience.advantages != 0).any(1)

    def _parts(self, experience: TrainingBatch, prompts: Sequence[int]) -> list[list[Piece]]:
        """The pieces of these prompts for each pass of this process; every process has equally many passes, so some may be
        empty."""
        chosen, rows_of = self._counted(experience).tolist(), experience.rows_of
        wanted = {row for prompt in prompts for row in rows_of[prompt]}
        chosen = [counts and row in wanted for row, counts in enumerate(chosen)]
        processes = self.accelerator.num_processes
        return self._cut(experience, chosen, processes)[self.accelerator.process_index :: processes]

    def _cut(self, experience: TrainingBatch, chosen: Sequence[bool], processes: int) -> list[list[Piece]]:
        """The passes over the chosen samples, (N,)."""
        limit, rows_of = self._limits.tokens, experience.rows_of
        prompts = experience.prompt_mask.sum(1)[[rows.start for rows in rows_of]].tolist()
        lengths = experience.completion_mask.sum(1).tolist()
        completions = [{row - rows.start: lengths[row] for row in rows if chosen[row]} for rows in rows_of]
        return micro_batches(pieces(prompts, completions, limit, self._shared), limit, processes)

    def _of_all(self, experience: TrainingBatch, read: Callable[[dict], Sequence[torch.Tensor]]) -> list[torch.Tensor]:
        """(N, T) each, on the host with the batch: the results of `read`, (samples, T), on the inputs of passes over every
        sample, without gradient. Every process computes its share."""
        everything, home = [True] * len(experience.prompt_ids), experience.completion_ids
        found: list[torch.Tensor] = []
        with torch.no_grad():
            processes, device = self.accelerator.num_processes, self.accelerator.device
            for part in self._cut(experience, everything, processes)[self.accelerator.process_index :: processes]:
                rows_of = experience.rows_of
                rows = [row for prompt in sorted({piece.group for piece in part}) for row in rows_of[prompt]]
                made = read(self._micro_batch(experience, part))
                found = found or [torch.zeros(home.shape, dtype=one.dtype, device=device) for one in made]
                if part:  # An empty part only keeps processes with sharded weights together.
                    for whole, one in zip(found, made, strict=True):
                        whole[rows, : one.shape[1]] += one
        return [self.accelerator.reduce(whole, "sum").to(home.device) for whole in found]

    def _micro_batch(self, experience: TrainingBatch, part: Sequence[Piece]) -> dict:
        """A pass: the inputs of its prompts, and the rows of its samples. An empty part computes the cheapest sample with
        weight zero, which adds exactly nothing."""
        prompts = sorted({piece.group for piece in part}) or [_shortest(experience)]
        inputs = self._inputs(experience, prompts)
        chosen = experience.select(prompts)
        places = chosen.rows_of
        samples = sorted(places[prompts.index(piece.group)][sample] for piece in part for sample in piece.samples)
        counted = torch.zeros(places[-1].stop, 1)
        counted[samples] = 1.0
        counted = counted.to(self.accelerator.device, non_blocking=True)
        for name in self.per_sample:
            if name in inputs:
                inputs[name] = inputs[name] * counted
        inputs["rows"] = self._rows(chosen, samples or [0])
        return inputs | self._compared(inputs, chosen, samples or [0])

    def _compared(self, inputs: dict, batch: TrainingBatch, samples: Sequence[int]) -> dict:
        """Scores by other models that the loss compares the policy with, of the given samples of a batch."""
        return {} if self.beta == 0.0 else {"ref_per_token_logps": self._reference_logprobs(inputs)}

    def _inputs(self, experience: TrainingBatch, prompts: Sequence[int]) -> dict:
        """The inputs of the loss of these prompts, by TRL's names, for all their samples."""
        tokens = experience.completion_mask.sum().clamp(min=1).float()
        part = experience.select(prompts)
        inputs = {
            "prompt_ids": part.prompt_ids,
            "prompt_mask": part.prompt_mask,
            "completion_ids": part.completion_ids,
            "completion_mask": part.completion_mask,
            "advantages": part.advantages,
            # TRL divides by the number of items: scaled so that weights of a token average to one over the step.
            "tool_mask": part.weights * tokens,
            "num_items_in_batch": tokens,
            "sampling_logps": part.sampling_logprobs,
        }
        if part.off_policy or (self.num_iterations > 1 and not self.correction.active):
            inputs["old_per_token_logps"] = part.sampling_logprobs
        if part.kept_token_ids is not None:
            inputs["support"] = part.kept_token_ids
        if part.fed_ids is not None:
            inputs["fed_ids"] = part.fed_ids
        return {name: value.to(self.accelerator.device, non_blocking=True) for name, value in inputs.items()}

    def _rows(self, batch: TrainingBatch, samples: Sequence[int]) -> ModelRows:
        """The given samples of a batch, which is on the host, as the model's inputs."""
        prompts = unpadded(batch.prompt_ids, batch.prompt_mask, samples)
        completions = unpadded(batch.completion_ids, batch.completion_mask, samples)
        fed = None if batch.fed_ids is None else unpadded(batch.fed_ids, batch.completion_mask, samples)
        owner_of = [prompt for prompt, rows in enumerate(batch.rows_of) for _ in rows]
        owners = [owner_of[sample] for sample in samples]
        made = self._model_rows(prompts, completions, owners, batch.completion_ids.shape[1], fed)
        return made.of(samples, len(batch.completion_ids))

    def _model_rows(
        self,
        prompts: Any,
        completions: Any,
        owners: Sequence[int],
        width: int,
        fed: Any = None,
        given: Sequence[int] | None = None,
        shared: bool | None = None,
    ) -> ModelRows:
        rows = (
            packed(prompts, completions, owners, width, fed)
            if (self._shared if shared is None else shared)
            else row_by_row(prompts, completions, width, fed)
        )
        rows = rows if given is None else rows.after(given)
        return filled_on_cpu(rows.to(self.accelerator.device))

    def _score(
        self,
        model: Any,
        rows: ModelRows,
        kept_token_ids: torch.Tensor | None = None,
        entropy: bool = False,
        **options: Any,
    ) -> Scores:
        """One forward pass. `kept_token_ids`: (samples, T, K) ids that were kept when each token was drawn."""
        kept = None if kept_token_ids is None else rows.chosen(kept_token_ids)
        # With a gradient `passing` has switched it, for the backward pass as well.
        fast = nullcontext() if torch.is_grad_enabled() else self.computing(model)
        with self.accelerator.autocast(), fast:
            return score(
                model, rows, self.temperature, kept, entropy, self._way or SDPA_PACKED, fused=self._fused, **options
            )

    @torch.no_grad()
    def scored(
        self, prompts: Sequence[list[int]], completions: Sequence[list[int]], owners: Sequence[int]
    ) -> torch.Tensor:
        """(samples, T) log-probabilities of completions of equal length, the way that training computes them.

        Args:
            prompts: of each sample.
            owners: the index of each sample's prompt; samples of the same prompt are neighbours.
        """
        model = self.model_wrapped
        if self._choice is None:
            self._begin(model)
        was_training = model.training
        model.eval()
        try:
            rows = self._model_rows(prompts, completions, owners, len(completions[0]))
            return rows.placed(self._score(model, rows).logprobs)
        finally:
            model.train(was_training)

    def _compute_loss(self, model: nn.Module, inputs: dict) -> torch.Tensor:
        """TRL's loss, and the entropy bonus with the same token weights as the loss.

        TRL's own bonus, metrics and loss of a router are means over each micro-batch, so that they would change with the
        number of these.
        """
        self._pass, kept = inputs, self._metrics
        self._metrics = {"train": defaultdict(list)}
        try:
            with skip_metric_gather(self.accelerator):
                loss = super()._compute_loss(model, inputs)
        finally:
            self._metrics, self.use_vllm = kept, False
        if self.aux_loss_enabled:
            others = 1 - 1 / len(self.passes()[0])
            loss = loss - others * self.router_aux_loss_coef * self._scores.output.aux_loss
        if self._entropy.active:
            # Gradients are averaged over processes, as TRL's loss allows for.
            items = inputs["num_items_in_batch"] / self.accelerator.num_processes
            bonus = (inputs["tool_mask"] * self._entropies).sum() / items
            loss = loss - self._entropy.coef * bonus
        self._token_means.add(inputs["tool_mask"] / inputs["num_items_in_batch"], self._token_metrics(inputs))
        return loss

    def _token_metrics(self, inputs: dict) -> dict[str, torch.Tensor]:
        """(samples, T) each: whether the clip takes the gradient, the entropy, and the distances from the policy that sampled (on
        fresh samples: the gap between sampler and trainer) and from the reference."""
        logprobs, drawn = inputs["rows"].placed(self._scores.logprobs.detach()), inputs["sampling_logps"]
        old, weights = inputs.get("old_per_token_logps", logprobs), inputs["tool_mask"] * inputs["completion_mask"]
        ratios = logprobs - old
        if self.importance_sampling_level == "sequence":
            ratios = ((ratios * weights).sum(1, True) / weights.sum(1, True).clamp(min=1e-12)).expand_as(ratios)
        # TRL's CISPO has no lower bound, and its upper one is of the ratio itself.
        cap = self.epsilon_high - 1.0 if self.loss_type == "cispo" else self.epsilon_high
        low, high = clipped(ratios, torch.zeros_like(ratios), inputs["advantages"], self.epsilon_low, cap)
        found = {"entropy": self._entropies, "kl/old": kl_estimate(drawn, logprobs), "clip_ratio/high_mean": high}
        if self.loss_type != "cispo":
            found["clip_ratio/low_mean"] = low
        if self.beta != 0.0:
            found["kl"] = kl_estimate(logprobs, inputs["ref_per_token_logps"])
        return found

    def _reference_logprobs(self, inputs: dict) -> torch.Tensor:
        """(samples, T) under the reference; the reference of a policy with an adapter is its base, not a second copy."""
        model = self.model if self.ref_model is None else self.ref_model
        with torch.no_grad(), adapters_off(self.accelerator.unwrap_model(model)):
            scores = self._score(model, inputs["rows"], inputs.get("support"))
        return inputs["rows"].placed(scores.logprobs)

    def _get_per_token_logps_and_entropies(
        self, model: nn.Module, *_: Any, compute_entropy: bool = False, compute_aux_loss: bool = False, **__: Any
    ) -> tuple[torch.Tensor, torch.Tensor, Any]:
        """Scores of the micro-batch of `_compute_loss`; TRL's padded copies of it are not read."""
        rows = self._pass["rows"]
        wanted = compute_entropy and self._entropy.active
        options = {"output_router_logits": True} if compute_aux_loss else {}
        scores = self._scores = self._scores_of_pass(model, rows, wanted, **options)
        logprobs = rows.placed(scores.logprobs)
        if self.correction.active:
            self._correct(logprobs.detach())
        # Where the loss does not use it, the metric uses an estimate: E[-log p] is the entropy.
        self._entropies = rows.placed(scores.entropies) if wanted else -logprobs.detach()
        return logprobs, self._entropies, scores.output.aux_loss if compute_aux_loss else None

    def _scores_of_pass(self, model: nn.Module, rows: ModelRows, entropy: bool, **options: Any) -> Scores:
        """The scores that the loss is computed from."""
        return self._score(model, rows, self._pass.get("support"), entropy, **options)

    def _correct(self, logprobs: torch.Tensor) -> None:
        """In the first update on fresh samples, compare the engine with the trainer. Samples drawn before the last update are
        compared by the ratio that is clipped."""
        inputs = self._pass
        if "old_per_token_logps" not in inputs:
            counted = inputs["tool_mask"] * inputs["completion_mask"] != 0
            weights = self.correction.weights(logprobs, inputs["sampling_logps"], counted)
            inputs |= {"old_per_token_logps": logprobs, "importance_sampling_ratio": weights}
        self.use_vllm = "importance_sampling_ratio" in inputs  # TRL's loss then multiplies by it.


def _shortest(experience: TrainingBatch) -> int:
    """The prompt with the fewest tokens."""
    row = int(experience.prompt_mask.sum(1).argmin())
    return next(prompt for prompt, rows in enumerate(experience.rows_of) if row in rows)


def _judged_elsewhere(**_: object) -> list[float]:
    """TRL requires a reward function; this trainer never calls it."""
    raise RuntimeError("rewards come with the training batch")


FILE = Path("training") / "reference.safetensors"


class Reference(nn.Module):
    """Saves and loads a model's weights in their own dtypes."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def save(self, folder: Path) -> None:
        save_file({name: value.detach().contiguous() for name, value in self.named_parameters()}, folder / FILE)

    @torch.no_grad()
    def load(self, folder: Path) -> None:
        """Raises KeyError if the file belongs to another model."""
        kept = load_file(folder / FILE)
        for name, value in self.named_parameters():
            value.copy_(kept[name])


@contextmanager
def skip_metric_gather(accelerator: Accelerator) -> Iterator[None]:
    """Inside the block `gather` returns its argument.

    TRL's loss gathers only the least and the largest clipped share of a sample, which no row of metrics logs; means are
    reduced, which still works across ranks.
    """
    accelerator.gather = lambda value: value
    try:
        yield
    finally:
        del accelerator.gather
