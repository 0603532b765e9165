"""vLLM on the devices that train, built and given its weights by TRL's own class.

Weights are handed over before each call of `draw`, whatever was trained since: they are never those of an earlier step. An
adapter that vLLM can hold stays beside its base; any other is merged into the weights that are handed over. Each completion has the
seed of its key. The sync probe compares `scored` with the trainer. Checked here by plans and refusals alone: no test runs it.
"""

import math
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib import metadata
from pathlib import Path
from tempfile import mkdtemp
from types import SimpleNamespace
from typing import Any
from weakref import finalize

import torch
import torch.distributed as dist
from peft import PeftModel
from trl.generation import vllm_generation

from rlvr_exp.config import engine as options
from rlvr_exp.config.cross_checks import RANKS_OF_VLLM
from rlvr_exp.core.errors import GuardStop, InputError, InputProblem
from rlvr_exp.core.seeds import derive
from rlvr_exp.episodes.types import TokenSample
from rlvr_exp.models.policy import Policy
from rlvr_exp.rollouts.distributed import rank, ranks
from rlvr_exp.rollouts.engines.base import Drawn, RolloutRequest
from rlvr_exp.rollouts.sampling_params import SampleKey, SamplingParams
from rlvr_exp.tasks.base import Domain

SEEDS = 2**31


class VLLMEngine(options.VLLM):
    """
    Args:
        config: of the run, for the longest sequence.
    """

    def __init__(self, config: Any, **given: Any):
        super().__init__(**given)
        self._longest = config.model.max_prompt_tokens + config.model.max_completion_tokens
        self._held: Handover | None = None

    def begin(self, note: Callable[[str], None]) -> Mapping[str, Any]:
        """Raises InputError if there is no vLLM or no CUDA device."""
        if not torch.cuda.is_available() or not hasattr(vllm_generation, "LLM"):
            what, remedy = "needs a CUDA device and the package vllm", "pip install 'vllm>=0.31,<0.32', or engine=local"
            raise InputError(InputProblem("engine", what, "vllm", remedy=remedy))
        return {"name": "vllm", "version": metadata.version("vllm"), "memory_share": self.memory_share}

    def draw(
        self, policy: Policy, domain: Domain, requests: Sequence[RolloutRequest], sampling: SamplingParams
    ) -> Iterator[Drawn]:
        generation = self._current(policy)  # Also with nothing to draw: the ranks build it together.
        asked = [(place, sample) for place, one in enumerate(requests) for sample in range(len(one.keys))]
        prompts = [requests[place].prompt for place, _ in asked]
        parameters = [_parameters(requests[place].keys[sample], sampling) for place, sample in asked]
        for (place, sample), output in zip(asked, generation.outputs(prompts, parameters), strict=True):
            sampled = sample_of(output.outputs[0], sampling)
            yield Drawn(place, sample, sampled, policy.decode(sampled.ids))

    def scored(
        self,
        policy: Policy,
        prompts: Sequence[Sequence[int]],
        completions: Sequence[Sequence[Sequence[int]]],
    ) -> torch.Tensor:
        """(completions, tokens) log-probabilities of given completions at temperature 1, by the weights that sample now."""
        from vllm import SamplingParams as VLLMParams

        rows = [(prompt, ids) for prompt, own in zip(prompts, completions, strict=True) for ids in own]
        parameters = [VLLMParams(max_tokens=1, temperature=1.0, prompt_logprobs=0) for _ in rows]
        outputs = self._current(policy).outputs([[*prompt, *ids] for prompt, ids in rows], parameters)
        return torch.tensor(
            [
                [step[token].logprob for token, step in zip(ids, output.prompt_logprobs[len(prompt) :], strict=True)]
                for (prompt, ids), output in zip(rows, outputs, strict=True)
            ]
        )

    def metrics(self) -> Mapping[str, float]:
        return {}

    def _current(self, policy: Policy) -> "Handover":
        """vLLM with the weights that the policy has now."""
        if self._held is None:
            self._held = Handover(policy, self.memory_share, self._longest)
        self._held.sync_weights()
        return self._held


class Handover(vllm_generation.VLLMGeneration):
    """TRL's class, extended: it hands over an adapter unmerged and takes parameters for each completion."""

    def __init__(self, policy: Policy, memory_share: float, longest: int):
        self._rank_of_adapter = adapter_rank(policy.model)
        self._requests = 0
        self._lora: Any = None
        self._folder = Path(mkdtemp(prefix="adapter-for-vllm-"))
        finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        makes, rank_of = vllm_generation.LLM, self._rank_of_adapter
        lora = {"enable_lora": True, "max_lora_rank": max(8, rank_of)} if rank_of else {}
        vllm_generation.LLM = partial(makes, **lora)  # TRL's class has no option for it.
        try:
            super().__init__(
                policy.model,
                _processes(),
                policy.tokenizer,
                mode="colocate",
                gpu_memory_utilization=memory_share,
                max_model_length=longest,
            )
        finally:
            vllm_generation.LLM = makes

    def sync_weights(self) -> None:
        if not self._rank_of_adapter:
            super().sync_weights()
            return
        from vllm.lora.request import LoRARequest

        self._requests += 1  # vLLM keeps an adapter by its number: a new one is read anew.
        folder = self._folder / str(self._requests)
        self.model.save_pretrained(folder, selected_adapters=[self.model.active_adapter])
        shutil.rmtree(self._folder / str(self._requests - 1), ignore_errors=True)
        self._lora = LoRARequest(f"adapter {self._requests}", self._requests, str(folder))
        self.llm.reset_prefix_cache()

    def outputs(self, prompts: Sequence[Sequence[int]], parameters: Sequence[Any]) -> list[Any]:
        """vLLM's own outputs, one for each prompt."""
        given = [{"prompt_token_ids": list(ids)} for ids in prompts]
        if not given:
            return []
        return self.llm.generate(given, sampling_params=list(parameters), use_tqdm=False, lora_request=self._lora)


def adapter_rank(model: Any) -> int:
    """The rank of an adapter that vLLM holds beside its base; 0: there is none, or weights have to be merged."""
    if not isinstance(model, PeftModel):
        return 0
    form = model.peft_config[model.active_adapter]
    plain = not form.use_dora and not form.modules_to_save and not form.rank_pattern and form.bias == "none"
    return form.r if plain and form.r in RANKS_OF_VLLM else 0


def _parameters(key: SampleKey, sampling: SamplingParams) -> Any:
    from vllm import SamplingParams as VLLMParams

    filters = sampling.filters
    drawn = dict(temperature=0.0) if key is None else dict(temperature=filters.temperature, seed=derive(*key) % SEEDS)
    if key is not None:
        drawn |= dict(top_p=filters.top_p, top_k=filters.top_k or -1, min_p=filters.min_p)
    return VLLMParams(
        max_tokens=sampling.max_new_tokens,
        logprobs=0,
        stop=list(sampling.stop),
        include_stop_str_in_output=True,
        stop_token_ids=list(sampling.eos_ids),
        **drawn,
    )


def sample_of(output: Any, sampling: SamplingParams) -> TokenSample:
    """One of vLLM's completions, up to the token at which its domain calls it complete.

    Raises:
        GuardStop: a log-probability is no number.
    """
    ids = tuple(output.token_ids)
    logprobs = tuple(step[token].logprob for token, step in zip(ids, output.logprobs, strict=True))
    if any(map(math.isnan, logprobs)):
        raise GuardStop("the policy's logits are no numbers: its weights are not sound, or overflow in their type")
    check, end = sampling.completion_check, None
    for place in (place for place, token in enumerate(ids, 1) if check is not None and token in check.tokens):
        if end is None and sampling.completes(ids[:place]):
            end = place
    return TokenSample(ids[:end], logprobs[:end], truncated=end is None and output.finish_reason != "stop")


def _processes() -> SimpleNamespace:
    """The fields of an Accelerator that TRL's class reads: a real one would fix settings before the trainer makes its own."""
    return SimpleNamespace(
        state=SimpleNamespace(deepspeed_plugin=None, fsdp_plugin=None),
        num_processes=ranks(),
        process_index=rank(),
        local_process_index=int(os.environ.get("LOCAL_RANK", "0")),
        is_main_process=rank() == 0,
        device=torch.device("cuda", torch.cuda.current_device()),
        wait_for_everyone=dist.barrier if dist.is_initialized() else lambda: None,
    )
