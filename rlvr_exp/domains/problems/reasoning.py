"""A problem worked out in stages: each output is shown to later stages, and the last one, the code, is judged. Success is its success."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.domains.problems import options
from rlvr_exp.episodes.environment import Environment, Run
from rlvr_exp.episodes.environments import too_long
from rlvr_exp.episodes.episode import POLICY, Episode, Sample
from rlvr_exp.episodes.types import PENDING, VERDICT_OF, Completion, RewardBreakdown, TokenCount
from rlvr_exp.tasks.base import Domain, ReasonsInStages, Task


class InStages(Environment):
    """The common part of environments with a solver that works problems out in stages.

    An output that is cut or empty ends its chain. Every output has the credit of the code that follows from it.
    """

    solver = POLICY
    """The role that works problems out."""

    def work_on(self, domain: Domain) -> None:
        """Raises InputError if the domain's tasks have no stages."""
        if not isinstance(domain, ReasonsInStages):
            what = "these tasks are not worked out in stages"
            raise InputError(InputProblem("environment", what, domain.name, "data=problems"))
        self._domain = domain

    def domain(self, role: str) -> Domain:
        return self._domain

    def run(self, episode: Episode) -> Run:
        yield [self._first(episode)]
        while onward := self._onward(episode):
            yield onward

    def _first(self, episode: Episode) -> Sample:
        keys = [episode.draws.key(episode.task, index) for index in self.first_samples(episode)]
        return self._at(episode, self._domain.stages[0], None, keys=keys)

    def _onward(self, episode: Episode) -> list[Sample]:
        """The next outputs of all chains that are not at their end."""
        pending = [index for index in self.ends(episode) if episode.turns[index].completion.verdict == PENDING]
        return with_equal_tasks([self._next(episode, index) for index in pending])

    def first_samples(self, episode: Episode) -> Sequence[int]:
        """Indices of the outputs that are sampled at the first stage."""
        return episode.samples

    def branches(self, episode: Episode, depth: int) -> Sequence[int]:
        """Indices of the outputs that are sampled after an output, at this many turns; empty: one."""
        return ()

    def ends(self, episode: Episode) -> list[int]:
        """The last output of each chain so far."""
        built_on = {turn.parent for turn in episode.turns if turn.role == self.solver}
        return [index for index, turn in enumerate(episode.turns) if turn.role == self.solver and index not in built_on]

    def in_order(self, episode: Episode) -> list[int]:
        """The last output of each chain, in the order of sampling; of outputs that branch the first."""
        first = [index for index in episode.children(None) if episode.turns[index].role == self.solver]
        return [self.ends_after(episode, index)[0] for index in first]

    def groups(self, episode: Episode) -> Sequence[Sequence[int]]:
        """The outputs of each stage: those after the first have prompts of their own, and one problem's difficulty."""
        found: dict[int, list[int]] = {}
        for index, turn in enumerate(episode.turns):
            if turn.role == self.solver and not too_long(turn.completion):
                found.setdefault(episode.depth(index), []).append(index)
        return list(found.values())

    def rewarded(self, episode: Episode) -> Sequence[int]:
        return self.ends(episode)

    def credit(self, episode: Episode, rewards: Mapping[int, RewardBreakdown]) -> Mapping[int, RewardBreakdown]:
        above = {
            place: RewardBreakdown(paid.total) for index, paid in rewards.items() for place in before(episode, index)
        }
        return {**above, **rewards}

    def shown(self, episode: Episode, index: int) -> Completion:
        """With the verdict on the code that follows from it."""
        turn = episode.turns[index]
        return replace(turn.completion, verdict=episode.turns[self.ends_after(episode, index)[0]].completion.verdict)

    def about(self, episode: Episode, index: int) -> Mapping[str, Any]:
        """Its stage; of an output that is not judged itself also whose verdict it is shown with."""
        stage, last = self.stage_of(episode, index), self._domain.stages[-1]
        return {"stage": stage} if stage == last else {"stage": stage, VERDICT_OF: last}

    def result(self, episode: Episode) -> Completion:
        """The last output, with the tokens and seconds of all."""
        turns = [turn.completion for turn in episode.turns if turn.role == self.solver]
        sampled = TokenCount(sum(one.tokens for one in turns), turns[-1].truncated)
        return replace(turns[-1], task=episode.task, sampled=sampled, seconds=sum(one.seconds for one in turns))

    def outcome(self, episode: Episode) -> Mapping[str, Any]:
        return {"stages": self.chain(episode, self.ends(episode)[-1])}

    def metrics(self, episodes: Sequence[Episode]) -> dict[str, float]:
        """Share of chains that came to code."""
        ends = [(episode, index) for episode in episodes for index in self.ends(episode)]
        whole = [self.is_code(episode, index) for episode, index in ends]
        return {"episode/whole": sum(whole) / len(whole)} if whole else {}

    def is_code(self, episode: Episode, index: int) -> bool:
        """Whether a turn is a solver's at the last stage."""
        return episode.turns[index].role == self.solver and episode.depth(index) + 1 >= len(self._domain.stages)

    def stage_of(self, episode: Episode, index: int) -> str:
        """The stage of a solver's turn; further attempts are of the last one."""
        return self._domain.stages[: episode.depth(index) + 1][-1]

    def chain(self, episode: Episode, index: int) -> dict[str, str]:
        """The outputs up to a turn, by stage."""
        places = [*reversed(before(episode, index)), index]
        return {self.stage_of(episode, place): self.output_of(episode, place) for place in places}

    def output_of(self, episode: Episode, index: int) -> str:
        one = episode.turns[index].completion
        return self._domain.output(one.text, one.task)

    def ends_after(self, episode: Episode, index: int) -> list[int]:
        """The last turns of the chains that a turn is part of."""
        following = [place for place in episode.children(index) if episode.turns[place].role == self.solver]
        return [end for place in following for end in self.ends_after(episode, place)] or [index]

    def _next(self, episode: Episode, index: int) -> Sample:
        depth = episode.depth(index) + 1
        branches = self.branches(episode, depth) or None
        return self._at(episode, self._domain.stages[depth], index, path=("stage", depth), samples=branches)

    def _at(self, episode: Episode, stage: str, after: int | None, **draws: Any) -> Sample:
        task = self._domain.at_stage(episode.task, stage, {} if after is None else self.chain(episode, after))
        parent = None if after is None else episode.turns[after]
        pending = stage != self._domain.stages[-1]  # Only code is judged.
        prompt = self._domain.task_prompt(task)
        return episode.ask(prompt, self.solver, parent=parent, task=task, pending=pending, **draws)


class Reasoning(InStages, options.Reasoning):
    """A solver alone. Raises InputError as `work_on`."""

    name = "reasoning"

    def __init__(self, domain: Domain):
        super().__init__()
        self.work_on(domain)


def with_equal_tasks(asked: Sequence[Sample]) -> list[Sample]:
    """Requests that share one task if their tasks are equal: chains with the same outputs then share the work for their prompt."""
    first: dict[str, list[Task]] = {}
    found = []
    for one in asked:
        known = first.setdefault(one.prompt, [])
        same = next((task for task in known if task == one.task), one.task)
        if same is one.task:
            known.append(same)
        found.append(replace(one, task=same))
    return found


def before(episode: Episode, index: int) -> list[int]:
    """The turns that a turn builds on, the last one first."""
    parent = episode.turns[index].parent
    return [] if parent is None else [parent, *before(episode, parent)]
