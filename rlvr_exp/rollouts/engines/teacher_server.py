"""A vLLM server that scores given tokens: the teacher of `+stage=distill`, with weights that are not here.

`vllm serve` answers `prompt_logprobs=K` with the K most probable tokens at each place of a prompt, and with the token that
stands there. A completion that follows its prompt in the request is scored like that. The values belong to temperature 1.

    vllm serve MODEL --max-logprobs 100
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from rlvr_exp.config.engine import Endpoint
from rlvr_exp.core.errors import GuardStop, InputError, InputProblem
from rlvr_exp.models.policy import Policy
from rlvr_exp.rollouts.engines.client import Client, Nonsense, PromptTooLong, Refused, Unanswered
from rlvr_exp.rollouts.engines.server import results_of

WHERE = "roles.teacher.engine"
Scored = tuple[list[list[int]], list[list[float]], list[float]]
"""Of one completion, by token: ids of the most probable tokens, their log-probabilities, that of the token itself."""


class TeacherServer:
    """
    Args:
        options: of the server.
        policy: whose completions are scored. The server has to read the same tokens.
        top_k: tokens of the teacher's distribution.
        longest: tokens of the longest prompt with its completion.
    """

    def __init__(self, options: Endpoint, policy: Policy, top_k: int, longest: int):
        self._options, self._policy, self._top_k, self._longest = options, policy, top_k, longest
        self._vocabulary = policy.model.config.get_text_config().vocab_size
        self._client = Client(options, Counter())
        self._model = options.model

    def encode_prompt(self, text: str) -> list[int]:
        """The tokens of the policy's own prompt."""
        return self._policy.encode_prompt(text)

    def begin(self, texts: Sequence[str]) -> Mapping[str, Any]:
        """Check the server.

        Args:
            texts: to compare the tokenizers with.

        Raises:
            InputError: it does not answer, reads other tokens, or does not score.
        """
        try:
            (self._model,) = self._answers(self._checked, [texts])
        except Unanswered as fault:
            remedy = f"start the server, or correct {WHERE}.url"
            raise InputError(
                InputProblem(f"{WHERE}.url", f"the server does not answer: {fault}", remedy=remedy)
            ) from fault
        except (Refused, PromptTooLong, Nonsense) as fault:
            what, remedy = f"the server does not score tokens: {fault}", f"vllm serve --max-logprobs {self._top_k}"
            raise InputError(InputProblem(f"{WHERE}.url", what, remedy=remedy)) from fault
        return {"url": self._options.url, "model": self._model}

    def scored(
        self, prompts: Sequence[Sequence[int]], completions: Sequence[Sequence[int]]
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """The teacher's distributions for the m tokens of all completions, in order.

        Returns:
            (m, K) ids of its most probable tokens, (m, K) their log-probabilities, (m,) that of each token itself.

        Raises:
            GuardStop: the server does not score any more.
        """
        asked = [(list(prompt), list(ids)) for prompt, ids in zip(prompts, completions, strict=True)]
        try:
            found = [*self._answers(self._score, asked)]
        except (Refused, PromptTooLong, Unanswered, Nonsense) as fault:
            remedy = "see the server's log, then run the same command again"
            raise GuardStop(f"the teacher at {self._options.url} does not score: {fault}. Remedy: {remedy}") from fault
        ids, logprobs, drawn = ([value for one in found for value in one[part]] for part in range(3))
        return torch.tensor(ids), torch.tensor(logprobs), torch.tensor(drawn)

    async def _checked(self, texts: Sequence[str]) -> str:
        """The name of the served model, which reads the policy's tokens and scores a sequence of the longest length."""
        listed = (await self._client.call("/v1/models"))["data"]
        model, names = self._options.model, [one["id"] for one in listed]
        if model not in names and (model or len(names) != 1):
            what, got = (
                "the server lists no such model" if model else "the server lists several models",
                model or "none",
            )
            raise InputError(
                InputProblem(f"{WHERE}.model", what, got, ", ".join(names[:10]), "", f"{WHERE}.model=NAME")
            )
        self._model, context = model or names[0], listed[0].get("max_model_len") or self._longest + 1
        if context <= self._longest:
            what, allowed = "the server takes fewer tokens than the policy", f"{self._longest + 1} or more"
            remedy = f"vllm serve --max-model-len {self._longest + 1}, or shorter prompts and completions"
            raise InputError(InputProblem(f"{WHERE}.url", what, str(context), allowed, "", remedy))
        for text in texts:
            own = self._policy.tokenizer(text, add_special_tokens=False).input_ids
            body = {"model": self._model, "prompt": text, "add_special_tokens": False}
            if (await self._client.call("/tokenize", body))["tokens"] != own:
                what, remedy = "the teacher has another tokenizer", "a teacher of the same family of models"
                shown = " ".join(text.split())[:60]
                allowed = "the tokenizer of the policy"
                raise InputError(
                    InputProblem(f"{WHERE}.model", what, f"other tokens for {shown!r}", allowed, "", remedy)
                )
        await self._score((own, own[:1]))
        return self._model

    async def _score(self, asked: tuple[Sequence[int], Sequence[int]]) -> Scored:
        prompt, completion = asked
        body = {"model": self._model, "prompt": [*prompt, *completion], "prompt_logprobs": self._top_k}
        answer = await self._client.call("/v1/completions", {**body, "max_tokens": 1, "temperature": 0.0})
        places = answer["choices"][0].get("prompt_logprobs")
        if not isinstance(places, list) or len(places) != len(prompt) + len(completion):
            raise Nonsense("an answer without prompt_logprobs")
        return self._read(places[len(prompt) :], completion)

    def _read(self, places: Sequence[Mapping[str, Mapping[str, Any]]], completion: Sequence[int]) -> Scored:
        """Tokens that a larger teacher has after those of the policy are left out."""
        ids, logprobs = list[list[int]](), list[list[float]]()
        for place in places:
            ranked = sorted((one["rank"], int(token), one["logprob"]) for token, one in place.items())
            known = [one for one in ranked if one[1] < self._vocabulary][: self._top_k]
            if len(known) < self._top_k:
                raise Nonsense(f"{len(known)} tokens of the policy among the {len(ranked)} most probable ones")
            ids.append([token for _, token, _ in known])
            logprobs.append([value for _, _, value in known])
        own = [place[str(token)]["logprob"] for place, token in zip(places, completion, strict=True)]
        return ids, logprobs, own

    def _answers(self, answer: Callable[[Any], Any], asked: Sequence[Any]) -> Iterator[Any]:
        """The answers to requests, in their order."""

        async def work(emit: Callable[[Any], None]) -> None:
            with _first_fault():
                async with self._client, asyncio.TaskGroup() as group:
                    tasks = [group.create_task(answer(one)) for one in asked]
            for task in tasks:
                emit(task.result())

        return results_of(work, lambda: False)  # A step is finished before the run stops.


@contextmanager
def _first_fault() -> Iterator[None]:
    try:
        yield
    except ExceptionGroup as several:
        raise several.exceptions[0] from several
