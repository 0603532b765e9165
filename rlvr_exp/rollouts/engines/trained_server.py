"""A vLLM server that samples with the weights that are trained here, as an engine: `engine=server` with `engine.weights`.

Prompts and completions are token ids. Every rollout begins with the policy's current weights
(rlvr_exp.rollouts.engines.server_weights). With `algorithm.lag` the weights are pinned: completions are sampled in another thread
with the weights of that moment, while the policy trains. The probe compares `scored` with the trainer.
"""

import asyncio
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

from rlvr_exp.config import engine as options
from rlvr_exp.config.roles import of_role, role_names
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.core.seeds import derive
from rlvr_exp.models.policy import Policy
from rlvr_exp.rollouts.engines.base import Drawn, RolloutRequest
from rlvr_exp.rollouts.engines.client import Choice, Client, PromptTooLong, Refused, Unanswered
from rlvr_exp.rollouts.engines.sampling_fields import EXTENDED, sampling_fields
from rlvr_exp.rollouts.engines.server import SEEDS, results_of
from rlvr_exp.rollouts.engines.server_weights import ServerWeights
from rlvr_exp.rollouts.engines.vllm import Growing
from rlvr_exp.rollouts.sampling_params import LogitFilters, SampleKey, SamplingParams
from rlvr_exp.tasks.base import Domain

GREEDY = LogitFilters(top_k=1)


class TrainedServer(options.Server):
    """
    Args:
        config: of the run, for the longest sequence of its roles.
        directory: of the run.
        interrupted: whether a stop is requested.
    """

    def __init__(self, config: Any, directory: Path, interrupted: Callable[[], bool] = lambda: False, **given: Any):
        super().__init__(**given)
        models = [config.model, *(of_role(config, role).model for role in role_names(config))]
        self._longest = max(one.max_prompt_tokens + one.max_completion_tokens for one in models)
        self._counts: Counter[str] = Counter(requests=0, completions=0, prompt_tokens=0, completion_tokens=0)
        self._client = Client(self, self._counts)
        self._weights = ServerWeights(self, self._client, directory, interrupted)
        self._free = threading.Event()
        """The weights are not pinned."""
        self._free.set()
        self.updates = 0
        """Updates of the policy so far, which completions record as the version of their weights. The trainer sets it."""

    def begin(self, note: Callable[[str], None]) -> Mapping[str, Any]:
        """Raises InputError if the server does not answer, or lacks an option that training needs."""

        async def work(emit: Callable[[str], None]) -> None:
            async with self._client:
                emit(await self._checked())

        try:
            (self._weights.base,) = results_of(work, lambda: False)
        except Unanswered as fault:
            remedy = "start the server, correct engine.url, or raise engine.retries and engine.timeout_s"
            raise InputError(
                InputProblem("engine.url", f"the server does not answer: {fault}", remedy=remedy)
            ) from fault
        except (Refused, PromptTooLong) as fault:
            remedy = "vllm serve with the options in rlvr_exp/docs/rollouts.md"
            raise InputError(InputProblem("engine.url", f"no vLLM server: {fault}", remedy=remedy)) from fault
        self._weights.note = note
        note(f"{self.url} samples with the weights that are trained (engine.weights={self.weights})")
        return {"name": "server", "url": self.url, "model": self._weights.base, "weights": self.weights}

    async def _checked(self) -> str:
        """The name of the served model."""
        listed = (await self._client.call("/v1/models"))["data"]
        bases = [one for one in listed if not one.get("parent") and self.model in ("", one["id"])]
        if len(bases) != 1:
            allowed = ", ".join(one["id"] for one in listed if not one.get("parent"))
            raise InputError(InputProblem("engine.model", "no such model", self.model or "nothing", allowed))
        base, longest = bases[0]["id"], bases[0].get("max_model_len") or self._longest
        if longest < self._longest:
            what, remedy = (
                "the server takes fewer tokens than the policy",
                f"--max-model-len {self._longest}, or less here",
            )
            raise InputError(InputProblem("engine.url", what, str(longest), f"{self._longest} or more", "", remedy))
        route, option = "/weight_info", "VLLM_SERVER_DEV_MODE=1"
        if self.weights == "lora":
            route, option = "/v1/load_lora_adapter", "VLLM_ALLOW_RUNTIME_LORA_UPDATING=1 and --enable-lora"
        try:
            await self._client.call(route, {} if self.weights == "lora" else None)
        except Refused as fault:
            if fault.status in (404, 405):
                what = f"the server has no {route}"
                remedy = f"start it with {option}"
                raise InputError(InputProblem("engine.weights", what, self.weights, "", "", remedy)) from fault
        body = self._body((0,), None, SamplingParams(LogitFilters(), 1, ()))
        (first,) = (await self._client.ask(False, {"model": base, **body}, "begin")).choices
        if first.ids is None or first.logprobs is None or abs(first.logprobs[0]) > 1e-3:
            what = "the server's log-probabilities are not those of the distribution that it draws from"
            remedy = "vllm serve --logprobs-mode processed_logprobs"
            raise InputError(InputProblem("engine.url", what, str(first.logprobs), "(0.0,) of one token", "", remedy))
        return str(base)

    def weights_dtype(self, policy: Policy) -> torch.dtype:
        """The type of the policy: the server does not say its own."""
        dtype: torch.dtype = policy.model.dtype
        return dtype

    def pin(self, policy: Policy, updates: int) -> None:
        """Hand the current weights over and keep them on the server until `release`."""
        self.updates = updates
        self._hand_over(policy)
        self._free.clear()

    def release(self) -> None:
        self._free.set()

    def draw(
        self, policy: Policy, domain: Domain, requests: Sequence[RolloutRequest], sampling: SamplingParams
    ) -> Iterator[Drawn]:
        if self._free.is_set():
            self._hand_over(policy)
        version = self.updates
        completions = [
            (place, sample, key) for place, one in enumerate(requests) for sample, key in enumerate(one.keys)
        ]

        async def answer(number: int) -> Drawn:
            place, sample, key = completions[number]
            body = self._body(requests[place].prompt, key, sampling)
            choice = await self._choice(body, requests[place].task.id, place, sample)
            growing = Growing(place, sample, sampling)
            assert choice.ids is not None and choice.logprobs is not None
            scores = [
                {token: SimpleNamespace(logprob=one)} for token, one in zip(choice.ids, choice.logprobs, strict=True)
            ]
            growing.add(SimpleNamespace(token_ids=choice.ids, logprobs=scores))
            self._counts["completions"] += 1
            self._counts["completion_tokens"] += len(choice.ids)
            self._counts["prompt_tokens"] += len(requests[place].prompt)
            one = Drawn(place, sample, growing.sampled(), policy.decode(growing.ids), version=version)
            if sampling.watch is not None:
                sampling.watch.ended(one)
            return one

        yield from self._together(answer, len(completions))

    def scored(
        self,
        policy: Policy,
        prompts: Sequence[Sequence[int]],
        completions: Sequence[Sequence[Sequence[int]]],
        temperature: float,
    ) -> torch.Tensor:
        """(completions, tokens) log-probabilities of given completions by the weights that sample now. A request for each
        token. Waits for pinned weights to be released."""
        self._free.wait()
        self._hand_over(policy)
        rows = [(prompt, ids) for prompt, own in zip(prompts, completions, strict=True) for ids in own]
        asked = [([*prompt, *ids[:place]], ids[place]) for prompt, ids in rows for place in range(len(ids))]
        sampling = SamplingParams(LogitFilters(temperature=temperature), 1, ())

        async def answer(number: int) -> tuple[int, float]:
            prompt, token = asked[number]
            body = self._body(prompt, ("probe",), sampling) | {"logprob_token_ids": [token]}
            return number, (await self._choice(body, "score", number)).first[token]

        found = torch.zeros(len(asked))
        for number, value in self._together(answer, len(asked)):
            found[number] = value
        return found.view(len(rows), -1)

    def metrics(self) -> Mapping[str, float]:
        return {f"system/engine_{name}": float(count) for name, count in sorted(self._counts.items())}

    async def _choice(self, body: Mapping[str, Any], *label: str | int) -> Choice:
        """The one choice of an answer, with token ids and log-probabilities."""
        (choice,) = (await self._weights.ask(body, *label)).choices
        if choice.ids is None or choice.logprobs is None or len(choice.ids) != len(choice.logprobs):
            raise self._weights.stop(f"an answer without token ids or finite log-probabilities: {choice}")
        return choice

    def _body(self, prompt: Sequence[int], key: SampleKey, sampling: SamplingParams) -> dict[str, Any]:
        """A request without its model. All ends but those of `eos_ids` are also ours (`Growing`)."""
        filters = GREEDY if key is None else sampling.filters
        body = {
            "prompt": list(prompt),
            "max_tokens": sampling.max_new_tokens,
            "logprobs": 0,
            "return_token_ids": True,
            "return_tokens_as_token_ids": True,
            "seed": 0 if key is None else derive(*key) % SEEDS,
            "ignore_eos": True,
            "stop_token_ids": list(sampling.eos_ids),
            "skip_special_tokens": False,
        }
        stop = {"stop": list(sampling.stop), "include_stop_str_in_output": True} if sampling.stop else {}
        return {**body, **stop, **sampling_fields(EXTENDED, filters)}

    def _hand_over(self, policy: Policy) -> None:
        if self._weights.write(policy):

            async def work(emit: Callable[[None], None]) -> None:
                async with self._weights:
                    await self._weights.load()

            for _ in results_of(work, lambda: False):
                pass

    def _together(self, answer: Callable[[int], Awaitable[Any]], count: int) -> Iterator[Any]:
        """The answers of so many requests, as they come."""

        async def work(emit: Callable[[Any], None]) -> None:
            async def one(number: int) -> None:
                emit(await answer(number))

            try:
                async with self._weights, asyncio.TaskGroup() as group:
                    for number in range(count):
                        group.create_task(one(number))
            except ExceptionGroup as several:
                raise several.exceptions[0] from several

        try:
            yield from results_of(work, lambda: False)  # A step is finished before the run stops.
        except (Refused, PromptTooLong) as fault:
            raise self._weights.stop(f"{fault}. Remedy: see the server's log") from fault
