"""One round of self-play: tasks are sampled, answers verified, failed ones refined, programs relabelled with the tasks that
they solve, and the rows chosen that are imitated.

A function of the weights, the seed and the rounds before: a round that is made again is the same round. Writes nothing.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any

from rlvr_exp.config.solutions import HINDSIGHT, KINDS, SelfPlay
from rlvr_exp.core.errors import check_state
from rlvr_exp.core.seeds import stream
from rlvr_exp.curriculum.base import Curriculum, Observation
from rlvr_exp.episodes.types import Completion
from rlvr_exp.models.policy import Policy
from rlvr_exp.records.rollout_files import RolloutRow
from rlvr_exp.rollouts.distributed import broadcast_object, rank
from rlvr_exp.rollouts.engines.base import RolloutRequest, SamplingEngine
from rlvr_exp.rollouts.run_episodes import generate_and_verify
from rlvr_exp.rollouts.sampling_params import SampleKey, SamplingParams
from rlvr_exp.self_play.found import Found, Hindsight, Transfer, deterministic, found, relabelled
from rlvr_exp.self_play.imitation import Limits, candidates, chosen, chosen_to_refine, corrections
from rlvr_exp.solutions.syntax import syntax_of
from rlvr_exp.tasks.base import Domain, RelabelsTasks, Task
from rlvr_exp.tasks.formats.python_io import expected_of
from rlvr_exp.verifiers.base import Executor, Verdict, Verifier

Progress = Callable[[int, int], None]
"""Called with (prompts sampled, all prompts)."""
REFINEMENTS = 4
"""Completions sampled of each refinement."""
EXPLOIT = 20.0
"""REx's C: the larger, the more an answer is refined for the pairs that it has right."""
KINDRED = 2
"""Golds of kindred tasks, in ARC those of its family and shape, that are tried on each sampled task."""


@dataclass(frozen=True)
class RoundSampler:
    """Samples and verifies the prompts of a round; verdicts carry the outputs of each program.

    Args:
        verifier: keeps outputs (rlvr_exp.verifiers.base.KeepsOutputs).
        max_prompt_tokens: longer prompts are not sampled.
    """

    policy: Policy
    domain: Domain
    verifier: Verifier
    sampling: SamplingParams
    engine: SamplingEngine
    max_prompt_tokens: int

    def request(self, task: Task, prompt: str, keys: tuple[SampleKey, ...]) -> RolloutRequest:
        return RolloutRequest(task, tuple(self.policy.encode_prompt(prompt)), keys, prompt)

    def generate(self, requests: Sequence[RolloutRequest], progress: Progress) -> list[tuple[Completion, ...]]:
        """The completions of each request, in order; none if the prompt is too long. All ranks call this together."""
        lengths = [len(one.prompt) for one in requests]
        fits = [place for place, length in enumerate(lengths) if length <= self.max_prompt_tokens]
        fits.sort(key=lengths.__getitem__)  # Prompts of similar length are sampled together.
        found: list[tuple[Completion, ...]] = [()] * len(requests)
        size = max(1, self.sampling.batch_size // max((len(one.keys) for one in requests), default=1))
        for start in range(0, len(fits), size):
            places = fits[start : start + size]
            batch = [requests[place] for place in places]
            result = generate_and_verify(
                self.policy, self.domain, self.verifier, batch, self.sampling, engine=self.engine
            )
            for place, completions in zip(places, result.completions, strict=True):
                found[place] = completions
            progress(start + len(places), len(fits))
        return found


def metrics_of(
    sampled: Sequence[Completion],
    refined: Sequence[Completion],
    seen: Sequence[Found],
    rows: Mapping[str, Sequence[Found]],
    refused: Mapping[str, int],
) -> dict[str, float]:
    """Success of first and of refined answers, how different programs are, rows by kind, refused outputs by reason."""
    row = {
        **_success("success", sampled),
        **_success("refined_success", refined),
        "answers": len(sampled) + len(refined),
        "solved_tasks": len({one.host.id for one in seen if one.correct}),
        "programs": len(seen),
        "behaviours": len({(one.host.id, one.solution.behaviour) for one in seen}),
        "correct_programs": len({one.solution.key for one in seen if one.correct}),
        **{f"rows_{kind}": len(own) for kind, own in rows.items()},
        **{f"refused_{reason}": count for reason, count in refused.items()},
    }
    return {f"self_play/{name}": float(value) for name, value in row.items()}


def _success(name: str, completions: Sequence[Completion]) -> dict[str, float]:
    """The share of the completions with a verdict that passed."""
    verified = [one.correct for one in completions if one.verdict.outcome != "no_verdict"]
    return {name: fmean(verified)} if verified else {}


@dataclass(frozen=True)
class Sampled:
    """A prompt of a round and its completions."""

    prompt: str
    completions: tuple[Completion, ...]
    """None if the prompt is too long."""
    parent: str = ""
    """Of a refinement the key of the solution that it refines."""


@dataclass(frozen=True)
class Round:
    """The results of a round."""

    number: int
    """Counted from 0."""
    step: int
    """Updates before it."""
    found: tuple[Found, ...]
    """Every program that was run."""
    rows: Mapping[str, Sequence[Found]]
    """The imitated rows, by kind."""
    sampled: tuple[Sampled, ...] = field(default=(), repr=False)
    observations: tuple[Observation, ...] = field(default=(), repr=False)
    metrics: Mapping[str, float] = field(default_factory=dict)


class RoundMaker:
    """
    Args:
        tasks: those that the curriculum picks from.
        held_out: every task that anything is measured on.
        run: names the run in the solutions that it finds.
    """

    def __init__(
        self,
        options: SelfPlay,
        domain: Domain,
        tasks: Sequence[Task],
        held_out: Iterable[Task],
        curriculum: Curriculum,
        executor: Executor,
        seed: int,
        run: str,
    ):
        self.options, self.curriculum = options, curriculum
        self._domain, self.tasks, self._seed, self.run = domain, tasks, seed, run
        self._executor = executor
        self.hindsight = (
            Hindsight(domain, held_out, options.per_behaviour) if isinstance(domain, RelabelsTasks) else None
        )
        """None: the domain relabels no tasks."""
        self._transfer = Transfer(domain, tasks, executor, seed) if options.transferred else None
        self._answered: set[str] = set()
        """Keys of the answers that are imitated."""
        self._n_requested = 0
        """Tasks requested so far in the run."""
        self._refined: Counter[str] = Counter()
        """How often answers were refined, by the key of their solution."""

    def make(self, number: int, step: int, sampler: RoundSampler, progress: Progress) -> Round:
        """The next round, of tasks that the curriculum picks; it observes how they went."""
        if self.hindsight is not None:
            self.hindsight.begin()
        self.curriculum.begin(step)
        tasks = self.curriculum.pick(self._n_requested, self.options.tasks or len(self.tasks))
        self._n_requested += len(tasks)
        sampled = self._sample(number, tasks, sampler, progress)
        observations = tuple(_observation(one) for one in sampled if one.completions)
        self.curriculum.observe(observations)
        seen = [program for one in sampled for program in self._programs(one, step)]
        refined: list[Sampled] = []
        for wave in range(self.options.refine):
            refined += (drawn := self._refine(number, wave, seen, sampler, progress))
            seen += [program for one in drawn for program in self._programs(one, step)]
        rows = broadcast_object(self._rows(number, step, tasks, seen) if rank() == 0 else {})
        self.keep(rows)
        refused = {} if self.hindsight is None else self.hindsight.refused
        measured = metrics_of(_completions(sampled), _completions(refined), seen, rows, refused)
        return Round(number, step, tuple(seen), rows, (*sampled, *refined), observations, measured)

    @property
    def mix(self) -> Mapping[str, int]:
        """Tasks requested so far from each source of a mixture; empty without one."""
        return self.curriculum.sources(self._n_requested)

    def keep(self, rows: Mapping[str, Sequence[Found]]) -> None:
        """No later round makes these rows again."""
        if self.hindsight is not None:
            self.hindsight.keep(row.solution.task for kind in HINDSIGHT for row in rows[kind])
        self._answered.update(row.solution.key for row in rows["correct"])

    def _sample(self, number: int, tasks: Sequence[Task], sampler: RoundSampler, progress: Progress) -> list[Sampled]:
        requests = [
            sampler.request(task, self._domain.task_prompt(task), self._keys(self.options.samples, number, task))
            for task in tasks
        ]
        completions = sampler.generate(requests, progress)
        return [Sampled(one.text, own) for one, own in zip(requests, completions, strict=True)]

    def _refine(
        self, number: int, wave: int, seen: Sequence[Found], sampler: RoundSampler, progress: Progress
    ) -> list[Sampled]:
        """Refine an answer of each task that is not solved, with the prompt of environment=retry."""
        parents = []
        for task, own in candidates(seen).items():
            rng = stream(self._seed, "self_play", "refine", number, wave, task)
            parent = chosen_to_refine(own, self._refined, EXPLOIT, rng)
            self._refined[parent.solution.key] += 1
            parents.append(parent)
        requests = [
            sampler.request(
                one.host,
                self._domain.retry_prompt(one.host, one.text, self._domain.feedback(one.host, one.solution.verdict)),
                self._keys(REFINEMENTS, number, one.host, "refined", wave),
            )
            for one in parents
        ]
        completions = sampler.generate(requests, progress)
        return [
            Sampled(one.text, own, parent.solution.key)
            for parent, one, own in zip(parents, requests, completions, strict=True)
        ]

    def _keys(self, count: int, number: int, task: Task, *more: Any) -> tuple[tuple[Any, ...], ...]:
        return tuple((self._seed, "self_play", number, task.id, *more, index) for index in range(count))

    def _programs(self, sampled: Sampled, step: int) -> list[Found]:
        """Each distinct program of a prompt's completions that was run to a verdict."""
        run = [one for one in sampled.completions if one.verdict.outputs is not None]
        distinct = {one.candidate.text: one for one in reversed(run)}
        known = {"parent": sampled.parent, "run": self.run, "step": step}
        return [
            found(
                one.task,
                one.candidate.text or "",
                replace(one.verdict, outputs=None),
                one.verdict.outputs or (),
                "refined" if sampled.parent else "sampled",
                one.text,
                **known,
            )
            for one in reversed(distinct.values())
            if one.verdict.outcome in ("passed", "failed")
        ]

    def _rows(self, number: int, step: int, tasks: Sequence[Task], seen: Sequence[Found]) -> dict[str, Sequence[Found]]:
        """The imitated rows, by kind."""
        options, made = self.options, dict[str, Sequence[Found]]()
        if options.correct:
            new = [one for one in seen if one.correct and one.solution.key not in self._answered]
            made["correct"] = [replace(one, kind="correct") for one in new if not _is_gold(one)]
        if options.refined:
            golds = {task.id: gold for task in tasks for gold in [self._gold(task)] if gold is not None}
            made["refined"] = corrections(seen, golds, self._domain, self._seed, number)
        hindsight = self.hindsight
        if hindsight is not None and options.relabelled:
            made["relabelled"] = relabelled((one for one in seen if not one.correct), hindsight, "relabelled")
        if hindsight is not None and self._transfer is not None:
            tried = self._transfer.tried(tasks, KINDRED, number, run=self.run, step=step)
            made["transferred"] = relabelled(tried, hindsight, "transferred")
        limits = Limits(options.choose, options.per_task, options.per_family, options.per_round)
        rows: dict[str, Sequence[Found]] = {
            kind: chosen(made.get(kind, ()), limits, self._seed, number) for kind in KINDS
        }
        if hindsight is not None:
            rows |= {kind: deterministic(rows[kind], self._executor, hindsight) for kind in HINDSIGHT}
        return rows

    def _gold(self, task: Task) -> Found | None:
        gold = self._domain.gold_completion(task)
        program = None if gold is None else self._domain.parse(gold, task).text
        if program is None:
            return None
        expected = tuple(map(expected_of, task.problem.cases))
        return found(task, program, Verdict("passed", passed=len(expected), total=len(expected)), expected, "gold")

    def state_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {"requested": self._n_requested, "refined": dict(self._refined)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Raises InputError for other keys."""
        check_state(self, state, self.state_dict())
        self._n_requested, self._refined = state["requested"], Counter(state["refined"])


def _completions(sampled: Iterable[Sampled]) -> list[Completion]:
    return [completion for one in sampled for completion in one.completions]


def _observation(one: Sampled) -> Observation:
    """The reward of an answer is whether it passed."""
    judged = [each.correct for each in one.completions if each.verdict.outcome != "no_verdict"]
    return Observation(one.completions[0].task.id, sum(judged), len(judged), 0 < sum(judged) < len(judged))


def _is_gold(one: Found) -> bool:
    return one.host.gold is not None and syntax_of(one.host.gold).hash == one.solution.syntax.hash


def rollout_rows(made: Round) -> list[RolloutRow]:
    """One row per completion, in the order of the prompts."""
    imitated = {(row.host.id, row.solution.program) for rows in made.rows.values() for row in rows}
    rows = []
    for group, one in enumerate(one for one in made.sampled if one.completions):
        for completion in one.completions:
            judged = completion.verdict.outcome != "no_verdict"
            trained = (completion.task.id, completion.candidate.text) in imitated
            rows.append(
                RolloutRow(
                    completion,
                    step=made.step + 1,
                    group=group,
                    prompt=one.prompt,
                    reward=float(completion.correct) if judged else None,
                    fate="no_verdict" if not judged else "trained" if trained else "filtered",
                )
            )
    return rows
