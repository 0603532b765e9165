"""Engines around an engine: one that keeps completions in a journal, and one that shows the progress of a batch.

`Journaled` serves a batch that may take long. It writes each completion to the journal when it ends, and takes completions
from the journal instead of sampling them again. A draw depends on its key and not on its batch, so both ways give the same
completion. The journal leaves out the ids that filters kept, which only an update reads.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rlvr_exp.core.hashing import content_hash
from rlvr_exp.episodes.types import TokenCount, TokenSample
from rlvr_exp.models.policy import Policy
from rlvr_exp.records.resumable_jsonl import CompletionJournal
from rlvr_exp.rollouts.distributed import ranks
from rlvr_exp.rollouts.engines.base import Drawn, RolloutRequest, SamplingEngine
from rlvr_exp.rollouts.sampling_params import SamplingParams
from rlvr_exp.tasks.base import Domain
from rlvr_exp.verifiers.base import Verdict

Report = Callable[[int, int, float | None, float], None]
"""Called with (completions that have ended, all completions as far as is known, tokens per second, work done) while a batch is
sampled, in the thread that fetches them. The work done counts completions that have not ended by their share of the token limit.
A report may raise, which ends the batch."""
EVERY_S = 0.2
"""Seconds between two reports."""


class Journaled:
    """
    Args:
        engine: samples the completions.
        planned: first completions of all episodes; later turns add to them as they are asked for.
    """

    def __init__(self, engine: SamplingEngine, journal: CompletionJournal, planned: int, report: Report):
        self._engine, self._journal, self._report = engine, journal, report
        self._to_begin, self._asked, self._done = planned, 0, 0
        self._nth: Counter[str] = Counter()
        self._tokens = self._seconds = 0.0
        """Tokens of completions that were sampled by this process, and the time that sampling took."""
        self._begun_tokens, self._limit = 0, 1
        """Tokens of completions that have not ended, and the most tokens of a completion."""
        self._began: float | None = None
        self._shown = -EVERY_S

    def around(self, engine: SamplingEngine) -> "Journaled":
        """The same journal and progress with another engine."""
        self._engine = engine
        return self

    def skip(self, completions: int) -> None:
        """So many of the planned completions are not asked for: their episodes are over."""
        self._to_begin -= completions
        self._asked += completions
        self._done += completions

    @property
    def kept(self) -> int:
        """Completions in the journal that wait to be taken."""
        return len(self._journal.rows)

    @property
    def done(self) -> int:
        """Completions that have ended, in this process or an earlier one."""
        return self._done + self.kept

    def episodes_begin(self, completions: int) -> None:
        """Episodes with so many first completions begin."""
        self._to_begin -= completions

    def episodes_end(self) -> None:
        """The results of all episodes so far are in their own file."""
        self._journal.clear()

    def begin(self, note: Callable[[str], None]) -> Mapping[str, Any]:
        return self._engine.begin(note)

    def metrics(self) -> Mapping[str, float]:
        return self._engine.metrics()

    def draw(
        self, policy: Policy, domain: Domain, requests: Sequence[RolloutRequest], sampling: SamplingParams
    ) -> Iterator[Drawn]:
        keys = [self._keys(request, sampling) for request in requests]
        self._limit = sampling.max_new_tokens
        self._asked += sum(map(len, keys))
        rows = self._journal.rows
        known = [
            _read(rows.pop(key), at, sample)
            for at, own in enumerate(keys)
            for sample, key in enumerate(own)
            if key in rows
        ]
        self._done += len(known)
        self.show()
        yield from known
        found = {(one.request, one.sample) for one in known}
        batch = _Batch(
            self, keys, [[i for i in range(len(own)) if (at, i) not in found] for at, own in enumerate(keys)]
        )
        left = [
            replace(requests[at], keys=tuple(requests[at].keys[i] for i in batch.samples[at])) for at in batch.requests
        ]
        self._began = time.perf_counter()
        try:  # Also with nothing left: the ranks of an engine may have to meet.
            for one in self._engine.draw(policy, domain, left, replace(sampling, watch=batch)):
                batch.ended(one)
                self._show()
                yield batch.placed(one)
        finally:
            self._seconds, self._began = self._sampled_s, None

    def _keys(self, request: RolloutRequest, sampling: SamplingParams) -> list[str]:
        """A key for each completion of a request, unique in the batch."""
        about = (sampling.filters, sampling.max_new_tokens, sampling.eos_ids, sampling.stop)
        prompt = content_hash([request.task.id, list(request.prompt) or request.text, about])
        found = []
        for key in request.keys:
            name = content_hash([prompt, key])
            found.append(f"{name}-{self._nth[name]}")  # Greedy completions have no key.
            self._nth[name] += 1
        return found

    @property
    def _sampled_s(self) -> float:
        return self._seconds + (0.0 if self._began is None else time.perf_counter() - self._began)

    def _show(self) -> None:
        """Report now and then. The last report of a batch is the caller's, who knows its verdicts."""
        if time.perf_counter() - self._shown >= EVERY_S and self.done * ranks() < self._total:
            self.show()

    def show(self) -> None:
        """Report how far the batch is."""
        self._shown = time.perf_counter()
        tokens, seconds = self._tokens + self._begun_tokens, self._sampled_s
        rate = tokens * ranks() / seconds if tokens and seconds else None
        done = self.done * ranks()
        worked = (self.done + self._begun_tokens / self._limit) * ranks()
        self._report(min(done, self._total), self._total, rate, min(worked, self._total))

    @property
    def _total(self) -> int:
        """Each rank has about as many."""
        return max(self.done, self._asked * ranks() + self._to_begin)


class _Batch:
    """One call of `draw`: its completions to sample, and those that have ended.

    Args:
        keys: of each request's completions.
        samples: of each request, those that are not known.
    """

    def __init__(self, engine: Journaled, keys: Sequence[Sequence[str]], samples: Sequence[Sequence[int]]):
        self._engine, self._keys, self.samples = engine, keys, samples
        self.requests = [at for at, own in enumerate(samples) if own]
        self._lock, self._written = threading.Lock(), set[str]()
        self._began = time.perf_counter()

    def placed(self, one: Drawn) -> Drawn:
        """With its place among all requests."""
        at = self.requests[one.request]
        return replace(one, request=at, sample=self.samples[at][one.sample])

    def drew(self, tokens: int) -> None:
        self._engine._begun_tokens += tokens
        self._engine._show()

    def ended(self, one: Drawn) -> None:
        """Keep it, unless that was done when it arrived. A later run requests unanswered completions again."""
        at = self.placed(one)
        key = self._keys[at.request][at.sample]
        with self._lock:
            if key in self._written:
                return
            self._written.add(key)
            if one.verdict is None or one.verdict.outcome != "no_verdict":
                self._engine._journal.write(_row(key, one, time.perf_counter() - self._began))
            tokens = len(one.sampled)
            self._engine._done += 1
            self._engine._tokens += tokens
            self._engine._begun_tokens = max(0, self._engine._begun_tokens - tokens)


def _row(key: str, one: Drawn, seconds: float) -> dict[str, Any]:
    sampled = vars(one.sampled)
    sampled = {**sampled, "kept_token_ids": None} if isinstance(one.sampled, TokenSample) else sampled
    verdict = {} if one.verdict is None else {"verdict": {"bucket": one.verdict.bucket, "log": one.verdict.log}}
    return {"key": key, "text": one.text, "seconds": round(seconds, 6), "sampled": sampled, **verdict}


def _read(row: Mapping[str, Any], request: int, sample: int) -> Drawn:
    given: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in row["sampled"].items()
    }
    sampled = TokenSample(**given) if "ids" in given else TokenCount(**given)
    verdict = Verdict("failed", **row["verdict"]) if "verdict" in row else None
    return Drawn(request, sample, sampled, row["text"], verdict, row["seconds"])


SHOWN_AFTER_S, SHOWN_EVERY_S = 5.0, 1.0
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
        batch = _Progress(sum(len(one.keys) for one in requests), sampling.max_new_tokens, self._report)
        for one in self._engine.draw(policy, domain, requests, replace(sampling, watch=batch)):
            batch.finished(len(one.sampled))
            yield one


class _Progress:
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
        self._next = now + SHOWN_EVERY_S
        tokens = max(self._drawn_tokens, self._finished_tokens)
        worked = min(self._total, self._done + (tokens - self._finished_tokens) / self._limit)
        share = ranks()
        self._report(self._done * share, self._total * share, tokens * share / (now - self._began), worked * share)
