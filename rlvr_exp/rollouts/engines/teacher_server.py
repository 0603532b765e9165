"""A vLLM server as the teacher of `+stage=distill`: it scores given tokens with its own weights.

A request has a prompt and a completion as one text of tokens. With `prompt_logprobs=K`, `vllm serve` returns the log-probabilities
of the K most probable tokens at each place, and of the token at that place, at temperature 1.

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
        """Check the server, and describe it for the manifest.

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
        """The name of the served model. It reads the policy's tokens, takes its longest sequence, and scores a short one."""
        with _read():
            listed = {one["id"]: one for one in (await self._client.call("/v1/models"))["data"]}
        model, names = self._options.model, [*listed]
        if model not in names and (model or len(names) != 1):
            what, got = (
                "the server lists no such model" if model else "the server lists several models",
                model or "none",
            )
            raise InputError(
                InputProblem(f"{WHERE}.model", what, got, ", ".join(names[:10]), "", f"{WHERE}.model=NAME")
            )
        self._model = model or names[0]
        context = listed[self._model].get("max_model_len") or self._longest + 1
        if context <= self._longest:
            what, allowed = "the server takes fewer tokens than the policy", f"{self._longest + 1} or more"
            remedy = f"vllm serve --max-model-len {self._longest + 1}, or shorter prompts and completions"
            raise InputError(InputProblem(f"{WHERE}.url", what, str(context), allowed, "", remedy))
        for text in texts:
            own = self._policy.tokenizer(text, add_special_tokens=False).input_ids
            body = {"model": self._model, "prompt": text, "add_special_tokens": False}
            with _read():
                theirs = (await self._client.call("/tokenize", body))["tokens"]
            if theirs != own:
                what, remedy = "the teacher has another tokenizer", "a teacher of the same family of models"
                shown = " ".join(text.split())[:60]
                allowed = "the tokenizer of the policy"
                raise InputError(
                    InputProblem(f"{WHERE}.model", what, f"other tokens for {shown!r}", allowed, "", remedy)
                )
        await self._score((own[:1], own[:1]))
        return self._model

    async def _score(self, asked: tuple[Sequence[int], Sequence[int]]) -> Scored:
        prompt, completion = asked
        body = {"model": self._model, "prompt": [*prompt, *completion], "prompt_logprobs": self._top_k}
        answer = await self._client.call("/v1/completions", {**body, "max_tokens": 1, "temperature": 0.0})
        return scored_of(answer, completion, self._top_k, self._vocabulary)

    def _answers(self, answer: Callable[[Any], Any], asked: Sequence[Any]) -> Iterator[Any]:
        """The answers to requests, in their order."""

        async def work(emit: Callable[[Any], None]) -> None:
            with _first_fault():
                async with self._client, asyncio.TaskGroup() as group:
                    tasks = [group.create_task(answer(one)) for one in asked]
            for task in tasks:
                emit(task.result())

        return results_of(work, lambda: False)  # A step is finished before the run stops.


def scored_of(answer: Any, completion: Sequence[int], top_k: int, vocabulary: int) -> Scored:
    """The scores of a completion, which ends the text of an answer. Tokens that a larger teacher has after the vocabulary are
    left out.

    Raises:
        Nonsense: they are not in the answer.
    """
    ids, logprobs, own = list[list[int]](), list[list[float]](), list[float]()
    with _read():
        places = answer["choices"][0]["prompt_logprobs"]
        for place, token in zip(places[len(places) - len(completion) :], completion, strict=True):
            ranked = sorted((one["rank"], int(other), float(one["logprob"])) for other, one in place.items())
            known = [one for one in ranked if one[1] < vocabulary][:top_k]
            if len(known) < top_k:
                raise Nonsense(f"{len(known)} tokens of the policy among the {len(ranked)} most probable ones")
            ids.append([other for _, other, _ in known])
            logprobs.append([value for _, _, value in known])
            own.append(float(place[str(token)]["logprob"]))
    return ids, logprobs, own


@contextmanager
def _read() -> Iterator[None]:
    """Raises Nonsense if an answer has another form than it is read with."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError) as fault:
        raise Nonsense(f"an answer of another form ({type(fault).__name__}: {fault})") from fault


@contextmanager
def _first_fault() -> Iterator[None]:
    try:
        yield
    except ExceptionGroup as several:
        raise several.exceptions[0] from several
