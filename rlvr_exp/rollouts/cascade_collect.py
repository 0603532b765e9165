"""One step of a cascade: tasks chosen, bodies written, annotated, verified and rewarded; groups for each role that learns.

A writer's group is the bodies of one task, an annotator's group the annotations of one body, so that a role's algorithm
and trainer are the same as for a policy that learns alone. Equal bodies of a task are annotated once. Samples depend only
on (run seed, role, step, index, task, body, annotation). Credit assignment is the caller's
(rlvr_exp.algorithms.credit_assignment).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from rlvr_exp.config.cascade import Cascade as Options
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.curriculum.base import Curriculum
from rlvr_exp.episodes.types import Completion
from rlvr_exp.rewards.compose import Reward, RewardBreakdown
from rlvr_exp.rollouts.cascade import (
    ANNOTATOR,
    WRITER,
    Cascade,
    CascadeRequest,
    CascadeResult,
    Cascades,
    cascade_sample,
    resample_annotations,
)
from rlvr_exp.rollouts.group_filter import GroupFilter
from rlvr_exp.rollouts.groups import Group, Groups, check_groups
from rlvr_exp.tasks.base import Task

RewardShaping = Callable[[float, int], float]
Credit = Callable[["Paid"], list[float | None]]
"""From the rewards of a task to the writer's credit for each body."""


@dataclass(frozen=True)
class Paid:
    """The rewards of a task's cascades; None without a verdict."""

    cascades: tuple[tuple[float | None, ...], ...]
    """(G, H): each body under each of its annotations, after the last attempt; a single reward for a body without any."""
    others: tuple[tuple[float | None, ...], ...]
    """(G, K): each body under the other annotator: the gold's annotations, or newly sampled ones."""


@dataclass(frozen=True)
class Collected:
    """The samples of one step."""

    step: int
    made: tuple[Cascades, ...]
    """The cascades of each task."""
    groups: Mapping[str, Groups]
    """The groups of each role; a role that was not sampled is absent."""
    results: tuple[CascadeResult, ...]
    about: Mapping[str, list[Mapping[str, Any]]]
    """For each sample of a role's groups, in their order: fields that its rollout logs besides the role's own text."""

    def of(self, role: str) -> Groups:
        return self.groups[role]


class CascadeCollector:
    """Samples, verifies and rewards.

    Args:
        tasks_per_step, bodies: tasks of a step, and bodies sampled for each.
        filters, shapes: the group filter and the reward shaping of each role.
        credit: the writer's credit assignment.
        seed: of the run.
    """

    def __init__(
        self,
        cascade: Cascade,
        options: Options,
        reward: Reward,
        curriculum: Curriculum,
        tasks_per_step: int,
        bodies: int,
        filters: Mapping[str, GroupFilter],
        shapes: Mapping[str, RewardShaping],
        credit: Credit,
        seed: int,
    ):
        self.reward, self.curriculum = reward, curriculum
        self._cascade, self._options, self._credit, self._seed = cascade, options, credit, seed
        self._tasks_per_step, self._bodies = tasks_per_step, bodies
        self._filters, self._shapes = filters, shapes
        self._n_requested = 0
        """Tasks requested so far in the run."""

    def collect(self, step: int) -> Collected:
        """The cascades of a step, counted from 0. Steps must be collected in order."""
        tasks = self.curriculum.pick(self._n_requested, self._tasks_per_step)
        self._n_requested += len(tasks)
        seconds: dict[str, float] = {}
        made = cascade_sample(self._cascade, [self._request(step, *each) for each in enumerate(tasks)], seconds)
        others = self._others(step, made, seconds)
        learned = made if any(one.own() for one in made) else self._assisted(step, tasks, seconds)
        bodies = [self._judged(one, others[place] if others else None) for place, one in enumerate(made)]
        drafts = [(one, i, tuple(each[0] for each in one.annotated[i])) for one in learned for i in one.own()]
        paid = _paid(
            self.reward,
            [*(one for task in bodies for one in task.all()), *(one for *_, each in drafts for one in each)],
        )
        groups = {
            WRITER: [
                self._of_task(step, place, made[place], one, paid)
                for place, one in enumerate(bodies)
                if made[place].written
            ],
            ANNOTATOR: [self._of_body(step, place, *draft, paid) for place, draft in enumerate(drafts)],
        }
        results = tuple(result for one in made for i in range(len(one.bodies)) for result in one.results(i))
        whole = {role: self._groups(role, step, found, seconds) for role, found in groups.items() if found}
        about = {
            WRITER: [_about_body(one, i) for one in made for i in range(len(one.written))],
            ANNOTATOR: [_about_annotation(one, each) for one, i, _ in drafts for each in one.results(i)],
        }
        return Collected(step, tuple(made), whole, results, about)

    def _request(self, step: int, place: int, task: Task) -> CascadeRequest:
        if self._options.bodies == "gold":
            return self._of_gold(step, place, task)
        writer = tuple((self._seed, "rollout", WRITER, step, place, task.id, i) for i in range(self._bodies))
        return CascadeRequest(task, writer, self._keys(ANNOTATOR, step, place, task, self._options.annotations), shared=True)

    def _of_gold(self, step: int, place: int, task: Task) -> CascadeRequest:
        return CascadeRequest(task, (), self._keys("annotator of gold", step, place, task, self._options.annotations)[:1])

    def _keys(
        self, what: str, step: int, place: int, task: Task, count: int
    ) -> tuple[tuple[tuple[Any, ...], ...], ...]:
        key = (self._seed, "rollout", what, step, place, task.id)
        return tuple(tuple((*key, i, number) for number in range(count)) for i in range(self._bodies))

    def _others(self, step: int, made: Sequence[Cascades], seconds: dict[str, float]) -> list[Cascades]:
        """The same bodies under annotations that no role trains on, where the writer's credit needs them."""
        options = self._options
        if options.credit != "counterfactual" or options.counterfactual != "resampled":
            return []
        keys = [
            self._keys("counterfactual", step, place, one.request.task, options.resamples)
            for place, one in enumerate(made)
        ]
        return resample_annotations(self._cascade, made, keys, seconds)

    def _assisted(self, step: int, tasks: Sequence[Task], seconds: dict[str, float]) -> list[Cascades]:
        """Annotations of the golds' bodies: so the annotator trains even where no body of the step can be annotated."""
        return cascade_sample(self._cascade, [self._of_gold(step, i, task) for i, task in enumerate(tasks)], seconds)

    def _judged(self, made: Cascades, other: Cascades | None) -> "_Bodies":
        """The completions that decide the rewards of a task's bodies."""
        alone = [made.alone(i) for i in range(len(made.written))]
        cascades = [tuple(each[-1] for each in made.annotated[i]) or (one,) for i, one in enumerate(alone)]
        if self._options.credit != "counterfactual":
            return _Bodies(cascades, [])
        afresh = [other.annotated[i] for i in range(len(alone))] if other is not None else [()] * len(alone)
        return _Bodies(cascades, [tuple(each[-1] for each in afresh[i]) or (one,) for i, one in enumerate(alone)])

    def _of_task(self, step: int, place: int, made: Cascades, bodies: "_Bodies", paid: "Payments") -> Group:
        """The writer's group."""
        prompt = self._cascade.domain.writer.prompt(made.request.task)
        ids = tuple(self._cascade.policies[WRITER].encode_prompt(prompt))
        completions = tuple(made.alone(i, proved=True) for i in range(len(made.written)))
        totals, others = (
            tuple(tuple(paid[id(one)].total for one in each) for each in side)
            for side in (bodies.cascades, bodies.others)
        )
        credits = self._credit(Paid(totals, others))
        rewarded = [
            _mean([paid[id(one)] for one in each], own) for each, own in zip(bodies.cascades, credits, strict=True)
        ]
        return Group(step, place, prompt, ids, completions, tuple(rewarded), self._shaped(WRITER, completions, credits))

    def _of_body(
        self, step: int, place: int, made: Cascades, body: int, completions: tuple[Completion, ...], paid: "Payments"
    ) -> Group:
        """The annotator's group."""
        rewarded = tuple(paid[id(one)] for one in completions)
        shaped = self._shaped(ANNOTATOR, completions, [one.total for one in rewarded])
        return Group(step, place, *made.prompts[body], completions, rewarded, shaped)

    def _shaped(
        self, role: str, completions: Sequence[Completion], rewards: Sequence[float | None]
    ) -> tuple[float | None, ...]:
        shape = self._shapes[role]
        pairs = zip(completions, rewards, strict=True)
        return tuple(None if reward is None else shape(reward, who.tokens) for who, reward in pairs)

    def _groups(self, role: str, step: int, found: Sequence[Group], seconds: Mapping[str, float]) -> Groups:
        check_groups(found, len(found[0].completions))
        zero_variance = {group.id: kind for group in found if (kind := self._filters[role].zero_variance_kind(group))}
        own = {name.removeprefix(f"{role}/"): value for name, value in seconds.items() if name.startswith(f"{role}/")}
        return Groups(step, tuple(found), tuple(found), (), (), zero_variance, own)

    @property
    def parts(self) -> dict[str, Any]:
        """Objects whose state belongs to a checkpoint, by name: this collector, its reward and its curriculum."""
        given = {"reward": self.reward, "curriculum": self.curriculum}
        return {"collector": self} | {name: part for name, part in given.items() if hasattr(part, "state_dict")}

    def state_dict(self) -> dict[str, int]:
        return {"asked": self._n_requested}

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        """Raises InputError for unknown or missing keys."""
        if set(state) != {"asked"}:
            got = ", ".join(sorted(state)) or "no keys"
            remedy = "resume with the version that wrote the checkpoint"
            raise InputError(InputProblem("state of CascadeCollector", "has other keys", got, "asked", remedy=remedy))
        self._n_requested = state["asked"]

    def metrics(self) -> dict[str, float]:
        return {"asked": float(self._n_requested)}


def _about_body(made: Cascades, place: int) -> Mapping[str, Any]:
    results = made.results(place)
    return {
        "role": WRITER,
        "body": made.bodies[place],
        "failed_by": None if made.proved(place) else WRITER,
        "cascades": len(results),
        "proved": sum(one.verdict.outcome == "passed" for one in results),
    }


def _about_annotation(made: Cascades, one: CascadeResult) -> Mapping[str, Any]:
    again = [
        {"completion": each.text, "outcome": each.verdict.outcome, "bucket": each.verdict.bucket}
        for each in one.annotated[1:]
    ]
    written = {"written": one.writer_text} if made.written else {}
    about = {"role": ANNOTATOR, "body": one.body, **written, "failed_by": one.failed_by, "failure": one.failure}
    return {**about, "again": again} if again else about


Payments = Mapping[int, RewardBreakdown]
"""The reward of each completion, by its id()."""


@dataclass(frozen=True)
class _Bodies:
    """The completions that decide the rewards of the bodies of one task."""

    cascades: list[tuple[Completion, ...]]
    """The annotations of each body; for a body without any, its own completion."""
    others: list[tuple[Completion, ...]]
    """The annotations of each body by the other annotator; empty where the credit needs none."""

    def all(self) -> list[Completion]:
        return [one for side in (self.cascades, self.others) for each in side for one in each]


def _paid(reward: Reward, completions: Sequence[Completion]) -> Payments:
    """Reward each completion once, in one batch for the normaliser."""
    each = {id(one): one for one in completions}
    return dict(zip(each, reward(list(each.values())), strict=True))


def _mean(paid: Sequence[RewardBreakdown], credit: float | None) -> RewardBreakdown:
    """The mean reward of a body's cascades; its total is the body's credit."""
    judged = [one for one in paid if one.sum is not None]
    if not judged or credit is None:
        return RewardBreakdown(None, None, {})
    terms = {name: fmean(one.terms[name] for one in judged) for name in judged[0].terms}
    return RewardBreakdown(credit, fmean(one.sum for one in judged), terms)
