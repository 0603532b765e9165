"""Verdicts of an OpenEnv server. Each answer is played in a new session: reset with the seed of the task, the answers before it, then
the answer itself.

So no session lives longer than a verdict, and a lost connection costs a repetition. A server that does not repeat an
episode for the same seed gives no verdict on later turns. A failure of the server is never a failure of the answer.
"""

import asyncio
import math
import threading
from concurrent.futures import Future
from typing import Any

from rlvr_exp.domains.remote import options
from rlvr_exp.domains.remote.client import RemoteServer, Unfit, canonical
from rlvr_exp.domains.remote.tasks import RemoteProblem
from rlvr_exp.verifiers.base import Request, Verdict, Verifier
from rlvr_exp.verifiers.futures import completed_future

REWARD = "environment_reward"
"""The measure of a verdict that holds the sum of the rewards."""
FIRST_S, LONGEST_S = 0.05, 2.0
"""Seconds before the first repetition, and most seconds before a later one."""
REFUSED = "(code: VALIDATION_ERROR)"
"""Ends the package's error for an answer that is no action of the server."""


class Unrepeatable(Exception):
    """The server did not repeat an episode."""


class RemoteJudge(Verifier, options.RemoteJudge):
    """Sessions run in one thread with an event loop, which begins with the first answer."""

    name, version = "remote", "1"

    def __init__(self, **given: Any):
        super().__init__(**given)
        self._server = RemoteServer(self.url, self.api_key_env)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="openenv sessions", daemon=True)
        self._free = asyncio.Semaphore(self.concurrency)

    def submit(self, request: Request) -> Future[Verdict]:
        if request.candidate.text is None:
            return completed_future(_unfit(request.problem, request.candidate.fault))
        if not self._thread.ident:
            self._thread.start()
        return asyncio.run_coroutine_threadsafe(self._judged(request.problem, request.candidate.text), self._loop)

    def isolation(self) -> dict[str, Any]:
        return {"level": "server", "isolated": [], "not_isolated": []}

    def close(self) -> None:
        if self._thread.ident:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
        self._loop.close()

    async def _judged(self, place: RemoteProblem, text: str) -> Verdict:
        fault: BaseException | str = "no answer"
        try:
            async with asyncio.timeout(self.timeout_s), self._free:
                pause = FIRST_S
                while True:
                    try:
                        return await self._played(place, text)
                    except Unfit as unfit:
                        return _unfit(place, str(unfit))
                    except Unrepeatable as found:
                        return Verdict("no_verdict", log=str(found))
                    except Exception as found:  # The package raises errors of its own and of its transports.
                        if REFUSED in str(found):
                            return _unfit(place, str(found))
                        fault = found
                    await asyncio.sleep(pause)
                    pause = min(2 * pause, LONGEST_S)
        except TimeoutError:
            return Verdict("no_verdict", log=f"no verdict of the server in {self.timeout_s:g} s: {fault}"[:1000])

    async def _played(self, place: RemoteProblem, text: str) -> Verdict:
        await asyncio.to_thread(lambda: self._server.action)  # The schema, once.
        action = self._server.action_of(text)
        async with self._server.session(self.timeout_s) as session:
            result = await session.reset(seed=place.seed)
            for answer, before, after in zip(place.answers, place.seen, place.seen[1:], strict=False):
                _same(result, before)
                result = await session.step(self._server.action_of(answer))
                _same(result, after)
            _same(result, place.seen[-1])
            result = await session.step(action)
        if result.reward is None and result.done:
            return Verdict("no_verdict", log="the server gave no reward")
        earned = place.earned + float(result.reward or 0.0)
        if not math.isfinite(earned):
            return Verdict("no_verdict", log=f"the server gave the reward {result.reward}")
        passed = earned >= self.success
        return Verdict(
            "passed" if passed else "failed",
            None if passed else "wrong_answer",
            passed=int(passed),
            total=1,
            measures={REWARD: earned},
            outputs=None if result.done else (canonical(result.observation),),
        )


def _same(result: Any, expected: str) -> None:
    if canonical(result.observation) != expected:
        raise Unrepeatable("the server did not repeat the episode for the same seed and answers")


def _unfit(place: RemoteProblem, log: str) -> Verdict:
    return Verdict("failed", "parse", total=1, log=log[:1000], measures={REWARD: place.earned})
