"""vLLM in the process that trains, as an engine: on the training GPUs, or on a CPU.

Every rollout samples with the policy's current weights (rlvr_exp.rollouts.engines.vllm_weights). Each completion has the seed of
its key. Completions end as our own sampler ends them, and leave vLLM as soon as they end. The probe compares `scored` with the
trainer.
"""

import itertools
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

import torch

from rlvr_exp.config import engine as options
from rlvr_exp.config.roles import longest_sequence
from rlvr_exp.core.errors import GuardStop, InputError, InputProblem
from rlvr_exp.core.seeds import derive
from rlvr_exp.episodes.types import TokenSample
from rlvr_exp.models.policy import Policy
from rlvr_exp.rollouts.engines.base import Drawn, RolloutRequest
from rlvr_exp.rollouts.engines.vllm_weights import VLLMModel, kind_of
from rlvr_exp.rollouts.sampling_params import SampleKey, SamplingParams, StopStringMatcher, Watch
from rlvr_exp.tasks.base import Domain

SEEDS = 2**31
ENVIRONMENT = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",  # The model is in this process, which copies weights into it.
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_LOGGING_LEVEL": "ERROR",
}
"""Settings of vLLM, unless the user's environment has others. vLLM reads them when it is imported."""


class VLLMEngine(options.VLLM):
    """
    Args:
        config: of the run, for the longest sequence of its roles.
    """

    def __init__(self, config: Any, **given: Any):
        super().__init__(**given)
        self._longest = longest_sequence(config)
        self._models: dict[tuple[str, int], VLLMModel] = {}
        """By `kind_of`. Policies of one kind share a model, since each rollout copies its weights."""
        self._numbers = itertools.count()

    def begin(self, note: Callable[[str], None]) -> Mapping[str, Any]:
        """Raises InputError if vLLM is not installed, or was built for other devices than those of this process."""
        where, remedy = "cuda" if torch.cuda.is_available() else "cpu", "engine=local"
        if find_spec("vllm") is None:
            raise InputError(InputProblem("engine", "the package vllm is not installed", "vllm", remedy=remedy))
        for name, value in ENVIRONMENT.items():
            os.environ.setdefault(name, value)
        import vllm
        from vllm.platforms import current_platform

        if current_platform.device_type != where:
            got, remedy = current_platform.device_type or "no device", f"a vLLM for {where}, or engine=local"
            problem = InputProblem("engine", "vLLM was built for another device", got, where, "", remedy)
            raise InputError(problem)
        return {"name": "vllm", "version": vllm.__version__, "memory_share": self.memory_share, "dtype": self.dtype}

    def weights_dtype(self, policy: Policy) -> torch.dtype:
        """The type of the weights that sample."""
        return policy.model.dtype if self.dtype == "auto" else getattr(torch, self.dtype)

    def draw(
        self, policy: Policy, domain: Domain, requests: Sequence[RolloutRequest], sampling: SamplingParams
    ) -> Iterator[Drawn]:
        asked, completions = [], []
        for place, request in enumerate(requests):
            for sample, key in enumerate(request.keys):
                asked.append((request.prompt, _parameters(key, sampling)))
                completions.append(Growing(place, sample, sampling))
        for number in self._run(policy, asked, lambda number, new: completions[number].add(new), sampling.watch):
            one = completions[number]
            yield Drawn(one.request, one.sample, one.sampled(), policy.decode(one.ids))

    def scored(
        self,
        policy: Policy,
        prompts: Sequence[Sequence[int]],
        completions: Sequence[Sequence[Sequence[int]]],
        temperature: float,
    ) -> torch.Tensor:
        """(completions, tokens) log-probabilities of given completions by the weights that sample now.

        A request for each token, as the next token of those before it: vLLM on a CPU does not score prompts with an adapter.
        """
        from vllm import SamplingParams as VLLMParams

        rows = [(prompt, ids) for prompt, own in zip(prompts, completions, strict=True) for ids in own]
        settings: dict[str, Any] = dict(max_tokens=1, temperature=temperature, seed=0, detokenize=False)
        tokens = [token for _, ids in rows for token in ids]
        asked = [
            ([*prompt, *ids[:place]], VLLMParams(logprob_token_ids=[ids[place]], **settings))
            for prompt, ids in rows
            for place in range(len(ids))
        ]
        found = torch.zeros(len(tokens))

        def take(number: int, new: Any) -> bool:
            found[number] = new.logprobs[0][tokens[number]].logprob
            return True

        for _ in self._run(policy, asked, take):
            pass
        return found.view(len(rows), -1)

    def metrics(self) -> Mapping[str, float]:
        return {}

    def _run(
        self,
        policy: Policy,
        asked: Sequence[tuple[Sequence[int], Any]],
        take: Callable[[int, Any], bool],
        watch: Watch | None = None,
    ) -> Iterator[int]:
        """Sample completions with the policy's weights. Yield the number of each completion when it ends.

        Args:
            asked: prompt and vLLM's parameters of each completion.
            take: (number, output) -> whether its new tokens end the completion.
        """
        kind = kind_of(policy)
        if kind not in self._models:  # Also with nothing to sample: all ranks build it together.
            self._models[kind] = VLLMModel(policy, self.weights_dtype(policy), self.memory_share, self._longest)
        model, live = self._models[kind], dict[str, int]()
        with model.awake(policy) as adapter:
            try:
                for number, (prompt, parameters) in enumerate(asked):
                    name = str(next(self._numbers))
                    live[name] = number
                    model.engine.add_request(name, {"prompt_token_ids": list(prompt)}, parameters, lora_request=adapter)
                while live:
                    with torch.random.fork_rng(devices=()):  # vLLM on a CPU draws from torch's generator as well.
                        outputs = model.engine.step()
                    for output in outputs:
                        if output.request_id not in live:  # A token that was under way when its completion ended.
                            continue
                        number, (new,) = live[output.request_id], output.outputs
                        ended = take(number, new)
                        if watch is not None:
                            watch.drew(len(new.token_ids))
                        if ended or output.finished:
                            del live[output.request_id]
                            if not output.finished:
                                model.engine.abort_request([output.request_id])
                            yield number
            finally:
                model.engine.abort_request(list(live))


class Growing:
    """A completion that is being sampled: sample `sample` of request `request`."""

    def __init__(self, request: int, sample: int, sampling: SamplingParams):
        self.request, self.sample, self._sampling = request, sample, sampling
        self.ids: list[int] = []
        self._logprobs: list[float] = []
        self._ended = False
        self._stops: StopStringMatcher | None = None
        if sampling.stop:
            assert sampling.decode is not None, "stop strings are compared with text"
            self._stops = StopStringMatcher(sampling.stop, sampling.decode)

    def add(self, output: Any) -> bool:
        """Add vLLM's new tokens. Return whether they end the completion.

        Raises:
            GuardStop: a log-probability is no number.
        """
        for token, scores in zip(output.token_ids, output.logprobs, strict=True):
            self.ids.append(token)
            self._logprobs.append(scores[token].logprob)
            if math.isnan(self._logprobs[-1]):
                raise GuardStop(
                    "the policy's logits are no numbers: its weights are not sound, or overflow in their type"
                )
            if self._ends(token):
                self._ended = True
                break
        return self._ended

    def _ends(self, token: int) -> bool:
        check = self._sampling.completion_check
        return (
            token in self._sampling.eos_ids
            or (self._stops is not None and self._stops.ends(token))
            or (check is not None and token in check.tokens and self._sampling.completes(self.ids))
        )

    def sampled(self) -> TokenSample:
        return TokenSample(tuple(self.ids), tuple(self._logprobs), truncated=not self._ended)


def _parameters(key: SampleKey, sampling: SamplingParams) -> Any:
    """vLLM's parameters of one completion. All ends but those of `eos_ids` are ours.

    Every completion has a seed, greedy ones too: vLLM 0.31 on a CPU ignores all seeds of a batch in which one is missing.
    """
    from vllm import SamplingParams as VLLMParams
    from vllm.sampling_params import RequestOutputKind

    filters = sampling.filters
    drawn: dict[str, Any] = dict(top_k=1, seed=0)
    if key is not None:
        drawn = dict(temperature=filters.temperature, seed=derive(*key) % SEEDS)
        drawn |= dict(top_p=filters.top_p, top_k=filters.top_k, min_p=filters.min_p)
    return VLLMParams(
        max_tokens=sampling.max_new_tokens,
        logprobs=0,
        ignore_eos=True,
        stop_token_ids=list(sampling.eos_ids),
        detokenize=False,
        output_kind=RequestOutputKind.DELTA,
        **drawn,
    )
