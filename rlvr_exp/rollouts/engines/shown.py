"""An engine that shows the progress of a batch of rollouts that takes longer than a few seconds."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rlvr_exp.models.policy import Policy
from rlvr_exp.rollouts.distributed import ranks
from rlvr_exp.rollouts.engines.base import Drawn, RolloutRequest, SamplingEngine
from rlvr_exp.rollouts.engines.journaled import Report
from rlvr_exp.rollouts.sampling_params import SamplingParams
from rlvr_exp.tasks.base import Domain

SHOWN_AFTER_S, EVERY_S = 5.0, 1.0
"""Seconds of a batch before its first report, and between two reports."""


class Shown:
    """
    Args:
        engine: samples the completions.
        report: receives the progress. It must not raise: a training step is finished before the run stops.
    """

    def __init__(self, engine: SamplingEngine, report: Report):
        self._engine, self._report = engine, report

    def begin(self, note: Callable[[str], None]) -> Mapping[str, Any]:
        return self._engine.begin(note)

    def metrics(self) -> Mapping[str, float]:
        return self._engine.metrics()

    def draw(
        self, policy: Policy, domain: Domain, requests: Sequence[RolloutRequest], sampling: SamplingParams
    ) -> Iterator[Drawn]:
        batch = _Batch(sum(len(one.keys) for one in requests), sampling.max_new_tokens, self._report)
        for one in self._engine.draw(policy, domain, requests, replace(sampling, watch=batch)):
            batch.finished(len(one.sampled))
            yield one


class _Batch:
    """Progress of one batch. Each rank samples about as many completions."""

    def __init__(self, total: int, limit: int, report: Report):
        self._total, self._limit, self._report = total, limit, report
        self._done = self._finished_tokens = self._drawn_tokens = 0
        self._began = time.perf_counter()
        self._next, self._shown = self._began + SHOWN_AFTER_S, False

    def drew(self, tokens: int) -> None:
        self._drawn_tokens += tokens
        self._show()

    def ended(self, one: Drawn) -> None:
        """An engine in another process calls this from its own thread; the completion counts when it is fetched."""

    def finished(self, tokens: int) -> None:
        self._done += 1
        self._finished_tokens += tokens
        self._show()

    def _show(self) -> None:
        now = time.perf_counter()
        ends = self._shown and self._done == self._total
        if now < self._next and not ends:
            return
        self._shown = True
        self._next = now + EVERY_S
        tokens = max(self._drawn_tokens, self._finished_tokens)
        worked = min(self._total, self._done + (tokens - self._finished_tokens) / self._limit)
        share = ranks()
        self._report(self._done * share, self._total * share, tokens * share / (now - self._began), worked * share)
