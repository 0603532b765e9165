"""Tasks as an OpenEnv environment. A client plays the policy: it receives a prompt and answers with a completion.

The reference answer, hidden cases and expected outputs stay in this process. A client sees the outcome of a verdict, and
its log only if the log says nothing of a case that the prompt hides (`visible`).
"""

import itertools
import sys
import traceback
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from openenv.core.env_server import Action, Observation, State
from openenv.core.env_server import Environment as OpenEnvironment
from openenv.core.env_server.types import EnvironmentMetadata
from pydantic import Field

from rlvr_exp.episodes.environment import Environment
from rlvr_exp.episodes.episode import Draws, Episode, Sample, Turn
from rlvr_exp.episodes.types import Completion, TokenCount
from rlvr_exp.serve.judge import Busy, Judge, Refused
from rlvr_exp.tasks.base import CASE, MOST_FEEDBACK, Domain, Task
from rlvr_exp.verifiers.base import Request, Verdict

STATIC = ("parse", "resolve", "verify")
"""Buckets of candidates that were not run, so that their log says nothing of a case."""
INTERNAL = "internal error; the log of the server has the reason"


class CompletionAction(Action):
    """A completion of the last prompt."""

    completion: str = Field(description="Text of the completion")


class TaskObservation(Observation):
    """A prompt, or the verdict on a completion. `reward` is 1 if the episode was solved, else 0; null without a verdict."""

    prompt: str = Field(default="", description="The prompt to complete; empty at the end of the episode")
    task: str = Field(default="", description="Identifier of the task")
    outcome: str | None = Field(default=None, description="passed, failed, rejected or no_verdict; null after a reset")
    bucket: str | None = Field(default=None, description="The reason of a failure")
    rule: str | None = Field(default=None, description="The rule of a rejection")
    score: float | None = Field(default=None, description="Share of cases passed; null after a reset")
    log: str = Field(default="", description="Log of the verdict, if it concerns visible cases")


class TaskState(State):
    """The state of a session."""

    task: str | None = Field(default=None, description="Identifier of the task; null before the first reset")
    index: int | None = Field(default=None, description="Index of the task in the split")
    done: bool = Field(default=False, description="Whether the episode has ended")


def visible(domain: Domain, task: Task, verdict: Verdict) -> Verdict:
    """The verdict with the part of its log that a client may see. A candidate may quote its arguments in an exception,
    also those of an earlier case, so the log is left out once a case was hidden, whatever the bucket."""
    case = CASE.match(verdict.log)
    shown = not any(domain.hides(task, at) for at in range(int(case[1]) + 1)) if case else verdict.bucket in STATIC
    return replace(verdict, log=verdict.log[:MOST_FEEDBACK] if shown else "")


class Play:
    """An episode whose completions come from a client.

    Args:
        judge: returns the verdict on a candidate.

    Raises:
        Refused: the environment requests something else than one completion.
    """

    def __init__(self, environment: Environment, task: Task, judge: Callable[[Request], Verdict]):
        self._environment, self._judge = environment, judge
        self.episode: Episode = environment.reset(task, Draws(0, "serve"))
        self._requests = environment.run(self.episode)
        self.asked: Sample | None = self._next(None)
        """The prompt that waits for a completion. None: the episode has ended."""

    def answer(self, text: str) -> Verdict:
        """The visible verdict on a completion. If the judge raises, the episode has not changed."""
        asked = self.asked
        if asked is None:
            raise Refused("the episode has ended: reset begins another")
        domain = self._environment.domain(asked.role)
        candidate = domain.parse(text, asked.task)
        verdict = visible(domain, asked.task, self._judge(Request(asked.task.problem, candidate)))
        completion = Completion(asked.task, 0, TokenCount(0, False), text, candidate, verdict)
        turn = Turn(asked.role, asked.prompt, (), completion, asked.keys[0], asked.parent)
        self.asked = self._next([self.episode.take(asked, [turn])])
        return verdict

    @property
    def reward(self) -> float | None:
        """The reward of the episode that has ended. None without a verdict."""
        outcome = self._environment.result(self.episode).verdict.outcome
        return None if outcome == "no_verdict" else float(outcome == "passed")

    def _next(self, answers: list[Any] | None) -> Sample | None:
        try:
            requests = next(self._requests) if answers is None else self._requests.send(answers)
            while not requests:
                requests = self._requests.send([])
        except StopIteration:
            return None
        one = requests[0]
        if len(requests) > 1 or not isinstance(one, Sample) or len(one.keys) > 1 or one.pending:
            raise Refused(f"environment {self._environment.name} requests more than one completion at a time")
        return one


@dataclass
class Served:
    """Everything that the sessions of a server share."""

    domain: Domain
    environment: Environment
    judge: Judge
    split: str
    tasks: Sequence[Task]
    _turn: Iterator[int] = field(default_factory=itertools.count)
    _episodes: Iterator[int] = field(default_factory=itertools.count)

    def index_of(self, index: Any, seed: Any, split: Any) -> int:
        """The index of the task that a reset names: by `index`, else by `seed`, else the next one in turn. Raises Refused."""
        if split not in (None, self.split):
            raise Refused(f"split: got {split!r:.80}, allowed {self.split!r}")
        for name, value in (("index", index), ("seed", seed)):
            if value is not None and (type(value) is not int or value < 0):
                raise Refused(f"{name}: got {value!r:.80}, allowed a whole number from 0")
        if index is not None and index >= len(self.tasks):
            raise Refused(f"index: got {index}, allowed 0 to {len(self.tasks) - 1}")
        return index if index is not None else (next(self._turn) if seed is None else seed) % len(self.tasks)

    def verdict(self, request: Request, timeout_s: float | None) -> Verdict:
        """The verdict on a candidate. Raises Busy: the queue is full, or there is no verdict after `timeout_s`."""
        [judged] = self.judge.submit([request])
        try:
            return judged.result(timeout_s)
        except TimeoutError:
            raise Busy(f"no verdict within timeout_s={timeout_s:g}") from None


@contextmanager
def _private() -> Iterator[None]:
    """Keep faults of the program from the client, since their texts may quote a task."""
    try:
        yield
    except (Refused, Busy):
        raise
    except Exception as fault:
        traceback.print_exception(fault, file=sys.stderr)
        raise Refused(INTERNAL, 500) from None


class TaskEnvironment(OpenEnvironment[CompletionAction, TaskObservation, TaskState]):
    """A session. Over HTTP each request has a new one, as the package defines it: a step then names its task as a reset
    does, and plays the first turn of the episode.
    """

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, served: Served):
        super().__init__()
        self._served = served
        self._play: Play | None = None
        self._state = TaskState()
        self._timeout_s: float | None = None

    def reset(
        self,
        seed: int | None = None,
        episode_id: str | None = None,
        split: str | None = None,
        index: int | None = None,
        **_: Any,
    ) -> TaskObservation:
        """The prompt of a task.

        Args:
            seed: chooses the task `seed` modulo the number of tasks, if no index is given.
            index: of the task in the split.
        """
        with _private():
            if episode_id is not None and not (isinstance(episode_id, str) and len(episode_id) <= 255):
                raise Refused("episode_id: not a text of at most 255 characters")
            place = self._served.index_of(index, seed, split)
            task = self._served.tasks[place]
            play = Play(self._served.environment, task, self._judged)
            self._play = play
            self._state = TaskState(episode_id=episode_id or str(uuid.uuid4()), task=task.id, index=place)
            return TaskObservation(prompt=play.asked.prompt if play.asked else "", task=task.id, done=not play.asked)

    def step(
        self,
        action: CompletionAction,
        timeout_s: float | None = None,
        seed: int | None = None,
        split: str | None = None,
        index: int | None = None,
        **_: Any,
    ) -> TaskObservation:
        """The verdict on a completion, and the next prompt if the episode continues."""
        with _private():
            if self._play is None:
                if seed is None and index is None:
                    raise Refused("no episode: reset first, or name the task of a step over HTTP by index or seed")
                self.reset(seed=seed, split=split, index=index)
            play, self._timeout_s = self._play, timeout_s
            assert play is not None  # The reset has made it.
            verdict = play.answer(action.completion)
            self._state.step_count += 1
            self._state.done = play.asked is None
            return TaskObservation(
                prompt=play.asked.prompt if play.asked else "",
                task=self._state.task or "",
                done=self._state.done,
                reward=play.reward if self._state.done else 0.0,
                outcome=verdict.outcome,
                bucket=verdict.bucket,
                rule=verdict.rule,
                score=verdict.score,
                log=verdict.log,
            )

    @property
    def state(self) -> TaskState:
        return self._state

    def get_metadata(self) -> EnvironmentMetadata:
        domain = self._served.domain
        return EnvironmentMetadata(name=domain.name, description=f"tasks of {domain.name} with a verifier")

    def list_splits(self) -> list[str]:
        return [self._served.split]

    def num_tasks(self, split: str) -> int:
        """Number of tasks. Raises Refused for another split."""
        self._served.index_of(None, 0, split)
        return len(self._served.tasks)

    def get_task(self, split: str, index: int) -> dict[str, Any]:
        """The identifier and the family of a task. Raises Refused."""
        task = self._served.tasks[self._served.index_of(index, None, split)]
        return {"id": task.id, "index": index, "family": task.family, "difficulty": task.difficulty}

    def _judged(self, request: Request) -> Verdict:
        return self._served.verdict(request, self._timeout_s)
