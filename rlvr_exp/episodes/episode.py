"""An episode: everything sampled for one task in one step, as a tree of turns, and the requests of an environment.

Plain data, without torch. An environment makes requests (rlvr_exp.episodes.environment). The runner
(rlvr_exp.rollouts.run_episodes) answers them and adds the turns to the episode.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rlvr_exp.episodes.types import Completion
from rlvr_exp.tasks.base import Candidate, Task
from rlvr_exp.verifiers.base import Execution, Verdict
from rlvr_exp.verifiers.base import Request as VerifierRequest

SampleKey = tuple[Any, ...] | None
"""The source of a completion's random numbers; None: greedy."""
POLICY = "policy"
"""The role of a policy that acts alone."""


@dataclass(frozen=True)
class Draws:
    """The random keys of an episode. Random numbers depend on the keys only, not on batches or on other episodes."""

    seed: int
    purpose: str
    """Training, evaluation and inference have different purposes, so they draw different numbers."""
    place: tuple[Any, ...] = ()
    """Its place in the run, e.g. (step, index in the step)."""
    greedy: bool = False

    def key(self, task: Task, *path: Any, label: str = "") -> SampleKey:
        """The key of a sample.

        Args:
            path: the sample's indices from the root of the tree.
            label: distinguishes samples at the same path, e.g. of several roles.
        """
        return None if self.greedy else (self.seed, self.purpose, *filter(None, [label]), *self.place, task.id, *path)


@dataclass(frozen=True)
class Turn:
    """A sampled completion with its place in an episode."""

    role: str
    prompt: str
    prompt_ids: tuple[int, ...]
    completion: Completion
    """The completion has the task of the turn, which may be derived from the task of the episode."""
    key: SampleKey
    parent: int | None = None
    """Index of the turn that the prompt builds on. None: the prompt builds on the task only."""
    learn: bool = True
    """Whether the role may learn from the turn."""
    note: Any = None
    """Data of the environment. They are dropped with the episode."""
    index: int = 0
    """Index among the turns of the episode."""


@dataclass(frozen=True)
class Sample:
    """A request for completions of one prompt by a role. A prompt that is too long for the policy is never cut: its
    completions fail with bucket `prompt_too_long`."""

    role: str
    task: Task
    prompt: str
    keys: tuple[SampleKey, ...]
    parent: int | None = None
    learn: bool = True
    pending: bool = False
    """Candidates are not verified until a `Judge` requests it. Completions without a candidate fail at once."""
    goes_on: bool = False
    """The prompt is the result of a tool that the parent has called: it stands after the parent's tokens."""


@dataclass(frozen=True)
class Judge:
    """A request for a verdict without sampling. The candidate comes from an earlier turn or from the environment, such
    as a program that runs on another program's tests."""

    role: str
    """The role that the seconds of verification count for."""
    task: Task
    candidate: Candidate
    turn: int | None = None
    """Index of the turn that gets the verdict. None: only the environment gets it."""


@dataclass(frozen=True)
class Execute:
    """A request for what a program returns or prints. It makes no turn and is no verdict."""

    role: str
    """The role that the seconds of its run count for."""
    request: VerifierRequest


Request = Sample | Judge | Execute
Answer = list[Turn] | Verdict | Execution
"""The turns of a `Sample`, the verdict of a `Judge`, or the execution of an `Execute`."""


@dataclass
class Episode:
    """The tree of turns grown from a task."""

    task: Task
    draws: Draws
    samples: tuple[int, ...] = (0,)
    """Indices of the completions of its first prompt."""
    given: Any = None
    """Data of the environment besides the turns."""
    turns: list[Turn] = field(default_factory=list)
    requests: int = 0
    """Requests made by `ask` so far."""

    def ask(
        self,
        prompt: str,
        role: str = POLICY,
        *,
        parent: Turn | None = None,
        task: Task | None = None,
        samples: Iterable[int] | None = None,
        path: tuple[Any, ...] | None = None,
        keys: Iterable[SampleKey] | None = None,
        learn: bool = True,
        pending: bool = False,
        goes_on: bool = False,
    ) -> Sample:
        """Make a request for completions of a prompt.

        Args:
            parent: the turn that the prompt builds on.
            task: the task of the completions. None: the task of the parent, or of the episode.
            samples: indices of the completions. None: those of the episode, or one completion that follows the parent.
            path: distinguishes, in the keys, requests with the same parent. None: the number of the request.
            keys: replace the keys that follow from role, parent, path and samples.
            goes_on: the prompt is the result of a tool, to stand after the tokens of the parent.
        """
        if task is None:
            task = self.task if parent is None else parent.completion.task
        if path is None:
            path = ("request", self.requests) if self.requests else ()
        self.requests += 1
        if keys is None and parent is None:
            label = "" if role == POLICY else role
            numbers = self.samples if samples is None else samples
            keys = [self.draws.key(task, *path, index, label=label) for index in numbers]
        elif keys is None and parent is not None:
            ways: list[tuple[int, ...]] = [()] if samples is None else [(index,) for index in samples]
            keys = [None if parent.key is None else (*parent.key, *path, *way) for way in ways]
        place = None if parent is None else parent.index
        return Sample(role, task, prompt, tuple(keys or ()), place, learn, pending, goes_on)

    def take(self, request: Request, answer: Answer) -> Answer:
        """Add sampled turns, or replace the verdict of a judged turn. Returns the answer with the added turns."""
        if isinstance(answer, Verdict):
            if isinstance(request, Judge) and request.turn is not None:
                completion = self.turns[request.turn].completion
                self.change(request.turn, completion=replace(completion, verdict=answer))
            return answer
        if isinstance(answer, Execution):
            return answer
        added = [replace(turn, index=place) for place, turn in enumerate(answer, len(self.turns))]
        self.turns += added
        return added

    def change(self, index: int, **fields: Any) -> None:
        """Replace fields of a turn."""
        self.turns[index] = replace(self.turns[index], **fields)

    def children(self, index: int | None) -> list[int]:
        """Indices of the turns that build on a turn. None: indices of the first turns."""
        return [place for place, turn in enumerate(self.turns) if turn.parent == index]

    def depth(self, index: int) -> int:
        """Number of turns before a turn on its branch."""
        parent = self.turns[index].parent
        return 0 if parent is None else 1 + self.depth(parent)


def all_turns(answers: Sequence[Sequence[Turn]]) -> list[Turn]:
    """The turns of several answers, in their order."""
    return [turn for turns in answers for turn in turns]
