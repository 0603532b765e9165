"""Two roles in sequence: a writer writes a body, an annotator adds annotations until Dafny proves it.

A body is judged twice: with the annotator's annotations, against the program with the hole and the written code, which is
the cascade's verdict; and, if that is no proof, with the reference annotations grafted onto it, which shows whether the
body itself is correct. The two verdicts decide which role a failure is attributed to.

In training a writer's group is the bodies of one task, an annotator's the annotations of one body. Equal bodies of a task
are annotated once.

Credits are pure functions of one task's rewards. R(b, a) is the reward of body b annotated by a; one task has G bodies with
H annotations each.

The annotator is always credited with R(b, a). Its group is one body, so its baseline, the mean over the annotations of
that body, is COMA's counterfactual one: its own action varies, the writer's stays as it is (Foerster et al. 2018,
"Counterfactual Multi-Agent Policy Gradients", arXiv 1705.08926, eq. 4).

The writer is credited with
- `shared`: Q(b) = mean over a of R(b, a), the reward of the cascades that b is part of;
- `counterfactual`: D(b) = V(b) - mean over the other bodies b' of V(b'). V(b) is R of b under an annotator that is not
  trained on it: the reference annotations, grafted onto b, or newly sampled annotations. This removes the luck of the
  annotator with b, and the difficulty of the task. It is a difference reward (Wolpert and Tumer 2001, "Optimal Payoff
  Functions for Members of Collectives", section 3): the team's reward less its reward had this member acted otherwise,
  here as its own policy acts, which is COMA's baseline estimated from the group.

`CascadePlay` brings the cascade into the stages: its environments, the engine of +stage=infer, and the sections of an evaluation
(rates by role and by length of the reference body, failures by role and kind, similarity of the writer's bodies to the references).
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

from rlvr_exp.config.load import build
from rlvr_exp.config.schema import Config
from rlvr_exp.domains.dafny.guards import body_violation
from rlvr_exp.domains.dafny.options import ANNOTATOR, ROLES, WRITER, attempts
from rlvr_exp.domains.dafny.tasks import TwoStage
from rlvr_exp.episodes.environment import Environment, Run
from rlvr_exp.episodes.environments import AGAIN, follows, too_long
from rlvr_exp.episodes.episode import Episode, Judge, Sample, SampleKey, Turn, all_turns
from rlvr_exp.episodes.types import PENDING, Completion, RewardBreakdown, TokenCount, rank
from rlvr_exp.evaluation.metrics import METRICS, of_role, rates_from
from rlvr_exp.evaluation.text_similarity import metrics_by_role
from rlvr_exp.records.rollout_files import EvalSample
from rlvr_exp.stages.shared.components import Play
from rlvr_exp.tasks.base import Domain, Task
from rlvr_exp.tasks.completion import without_thoughts
from rlvr_exp.verifiers.base import PROMPT_TOO_LONG, Verdict

OptionalReward = float | None
"""None: no verdict."""

FAILURES = {
    "parse": "syntax",
    "resolve": "syntax",
    "timeout": "timeout",
    "out_of_resource": "timeout",
    "verify": "semantic",
}
"""Buckets of a verdict in three kinds; every other bucket is its own kind."""

TOO_LONG = Verdict("failed", PROMPT_TOO_LONG, log="the prompt with the body is longer than the annotator accepts")

GOLD = "annotator of gold"
"""Label of the draws of annotations of the data's own bodies."""


@dataclass(frozen=True)
class Widths:
    """How an episode branches. It has as many bodies as samples; without samples the gold's body is annotated.

    Args:
        annotations: samples for each body.
        attempts: the most attempts of each role, each after the first with the feedback on the previous one.
        resamples: annotations of each body that no role learns from, for the writer's credit.
        graft_all: also judge bodies that an annotation proves with the gold's annotations.
    """

    annotations: int = 1
    attempts: int = 1
    resamples: int = 0
    graft_all: bool = False


@dataclass(frozen=True)
class WrittenBody:
    """The environment's note on a writer's turn: the body in its completion, if any. A faulty one cannot be annotated."""

    text: str | None
    faulty: bool
    """The turn's verdict has the reason."""


@dataclass(frozen=True)
class Body:
    """A body of an episode with its annotations."""

    written: tuple[int, ...]
    """Turns of the writer: one for each attempt. Empty: the gold's body."""
    turn: Turn | None
    """The last of these turns."""
    text: str
    """Empty if the turn has no body."""
    chains: tuple[tuple[int, ...], ...]
    """Turns of each annotation of it, or of an equal body: one for each attempt."""
    others: tuple[tuple[int, ...], ...]
    """Likewise under the other annotator."""
    own: bool
    """The annotations are of this body, not of an equal one before it."""
    proved: bool
    """Some sampled annotations, or the gold's, prove it."""

    @property
    def index(self) -> int:
        """Index of its first turn, from which the writer learns; -1 without a turn."""
        return self.written[0] if self.written else -1

    @property
    def fault(self) -> Verdict | None:
        """The verdict on a body that cannot be annotated."""
        if self.turn is None:
            return None if self.chains else TOO_LONG
        return self.turn.completion.verdict if self.turn.note.faulty else None


class Cascade(Environment):
    """
    Args:
        counterfactual: credit the writer with the difference that its body makes under another annotator, otherwise
            with the mean reward of its cascades.
    """

    name = "cascade"
    roles = ROLES

    def __init__(self, domain: TwoStage, widths: Widths, counterfactual: bool = False):
        self._domain, self._widths, self._counterfactual = domain, widths, counterfactual

    def domain(self, role: str) -> Domain:
        return self._domain.writer if role == WRITER else self._domain.annotator

    def run(self, episode: Episode) -> Run:
        """Bodies, annotations of them, retries, verdicts of bodies that nothing proves."""
        task = episode.task
        if episode.samples:
            [written] = yield [episode.ask(self._domain.writer.task_prompt(task), WRITER, pending=True)]
            yield from self._write(episode, written)
        yield [*self._annotate(episode)]
        for body in self.bodies(episode):
            if body.turn is not None and body.fault is None and not body.chains:
                self._fault(episode, body.turn, TOO_LONG)
        for attempt in range(1, self._widths.attempts):
            yield [*self._retry(episode, attempt)]
        yield [*self._judge(episode)]

    def _write(self, episode: Episode, turns: Sequence[Turn]) -> Run:
        """Read the bodies. The writer retries those that cannot be annotated, or that Dafny does not parse or resolve."""
        for attempt in range(1, self._widths.attempts + 1):
            for turn in turns:
                self._read(episode, turn)
            if self._widths.attempts == 1:
                return
            read = [episode.turns[turn.index] for turn in turns]
            sound = [one for one in read if one.completion.verdict == PENDING]
            yield [Judge(WRITER, one.completion.task, one.completion.candidate, one.index) for one in sound]
            for one in (episode.turns[turn.index] for turn in sound):
                if failure(one.completion.verdict) == "syntax":
                    self._fault(episode, one, one.completion.verdict)
            if attempt < self._widths.attempts:
                wrong = [one for turn in turns if (one := episode.turns[turn.index]).note.faulty]
                turns = all_turns(
                    (yield [self._again(episode, one, attempt) for one in wrong if follows(one.completion)])
                )

    def _fault(self, episode: Episode, turn: Turn, verdict: Verdict) -> None:
        """Note that a body cannot be annotated."""
        note = replace(turn.note, faulty=True)
        episode.change(turn.index, completion=replace(turn.completion, verdict=verdict), note=note)

    def _again(self, episode: Episode, last: Turn, attempt: int) -> Sample:
        """Request another attempt after a turn that failed."""
        first, verdict = last, last.completion.verdict
        while first.parent is not None and episode.turns[first.parent].role == last.role:
            first = episode.turns[first.parent]
        previous = without_thoughts(last.completion.text)
        domain, task = self.domain(last.role), last.completion.task
        prompt = domain.retry_prompt(task, previous, domain.feedback(task, verdict))
        keys = [None if first.key is None else (*first.key, AGAIN, attempt)]
        return episode.ask(prompt, last.role, parent=last, keys=keys, learn=False, pending=last.role == WRITER)

    def _read(self, episode: Episode, turn: Turn) -> None:
        """Note the body of a writer's turn, and its fault as its verdict."""
        completion, task = turn.completion, turn.completion.task
        body = self._domain.body(completion.text, task).text
        faulty = completion.truncated or body is None or too_long(completion)
        if not faulty and (
            violation := body_violation(self._domain.program(task, None), self._domain.program(task, body))
        ):
            faulty = True
            completion = replace(completion, verdict=Verdict("rejected", rule=violation.rule, log=violation.log))
        episode.change(turn.index, completion=completion, note=WrittenBody(body, faulty))

    def _annotate(self, episode: Episode) -> Iterator[Sample]:
        draws, task, widths = episode.draws, episode.task, self._widths
        if not episode.samples:
            keys = [draws.key(task, 0, number, label=GOLD) for number in range(widths.annotations)]
            yield self._annotation(episode, self._domain.gold_body(task), None, keys)
            return
        for body in self.bodies(episode):
            if not body.own or body.fault is not None or body.turn is None:
                continue
            index = episode.samples[episode.turns[body.index].completion.sample]
            keys = [draws.key(task, index, number, label=ANNOTATOR) for number in range(widths.annotations)]
            if widths.annotations == 1:  # A chain of single turns needs no number.
                keys = [draws.key(task, index, label=ANNOTATOR)]
            yield self._annotation(episode, body.text, body.turn, keys)
            if widths.resamples:
                keys = [draws.key(task, index, number, label="counterfactual") for number in range(widths.resamples)]
                yield self._annotation(episode, body.text, body.turn, keys, learn=False)

    def _annotation(
        self, episode: Episode, body: str, parent: Turn | None, keys: Sequence[SampleKey], learn: bool = True
    ) -> Sample:
        kept = replace(episode.task.problem, keep=self._domain.program(episode.task, body))
        derived = self._domain.annotation(episode.task, body, kept)
        prompt = self._domain.annotator.task_prompt(derived)
        return episode.ask(prompt, ANNOTATOR, task=derived, parent=parent, keys=keys, learn=learn)

    def _retry(self, episode: Episode, attempt: int) -> Iterator[Sample]:
        for body in self.bodies(episode):
            for chain in (*body.chains, *body.others) if body.own else ():
                last = episode.turns[chain[-1]]
                if len(chain) == attempt and follows(last.completion):
                    yield self._again(episode, last, attempt)

    def _judge(self, episode: Episode) -> Iterator[Judge]:
        for body in self.bodies(episode):
            written = body.turn.completion if body.turn is not None else None
            if written and written.verdict == PENDING and (self._widths.graft_all or not body.proved):
                yield Judge(WRITER, written.task, written.candidate, body.written[-1])

    # Results.

    def bodies(self, episode: Episode) -> list[Body]:
        """The bodies of an episode, in the order of their turns; without a writer only the gold's."""
        chains = [_chain(episode, at) for at in episode.children(None) if episode.turns[at].role == WRITER]
        if not chains:
            return [self._body(episode, (), None)] if episode.turns else []
        notes = [episode.turns[chain[-1]].note for chain in chains]
        firsts = [chains[notes.index(note)] for note in notes]
        return [self._body(episode, chain, first) for chain, first in zip(chains, firsts, strict=True)]

    def _body(self, episode: Episode, written: tuple[int, ...], first: tuple[int, ...] | None) -> Body:
        """
        Args:
            first: the turns of the first equal body, which is annotated.
        """
        turn = episode.turns[written[-1]] if written else None
        text = self._domain.gold_body(episode.task) if turn is None else turn.note.text or ""
        faulty = turn is not None and turn.note.faulty
        children = episode.children(first[-1] if first else None)
        annotated = [place for place in children if episode.turns[place].role == ANNOTATOR]
        roots = [] if faulty else [place for place in annotated if not _too_long(episode.turns[place])]
        chains, others = (
            tuple(_chain(episode, root) for root in roots if episode.turns[root].learn is learn)
            for learn in (True, False)
        )
        passed = turn is None or turn.completion.verdict.outcome == "passed"
        proved = passed or any(_verdict(episode, chain).outcome == "passed" for chain in chains)
        return Body(written, turn, text, chains, others, not written or written == first, proved and not faulty)

    def result(self, episode: Episode) -> Completion:
        """The annotator's last attempt; tokens and seconds are those of all turns."""
        (body,) = self.bodies(episode)
        last = episode.turns[body.chains[0][-1]].completion if body.chains else None
        turns = [turn.completion for turn in episode.turns if not _too_long(turn)]
        seconds = sum(one.drawn if one is (body.turn and body.turn.completion) else one.seconds for one in turns)
        base = last or replace(episode.turns[0].completion, text="")
        sampled = TokenCount(sum(one.tokens for one in turns), base.truncated)
        return replace(base, task=episode.task, sampled=sampled, verdict=_result(episode, body, 0), seconds=seconds)

    def answers(self, episode: Episode) -> list[tuple[int, Turn]]:
        """All attempts at all annotations. A body that cannot be annotated is an answer that fails."""
        return [
            (number, episode.turns[index])
            for body in self.bodies(episode)
            for chain in body.chains or (body.written,)
            for number, index in enumerate(chain, 1)
        ]

    def pick(self, answers: Sequence[tuple[int, Turn]]) -> tuple[int, Turn]:
        """The best."""
        return max(answers, key=lambda one: rank(one[1].completion))

    def outcome(self, episode: Episode) -> Mapping[str, Any]:
        (body,) = self.bodies(episode)
        return {
            "written": body.turn.completion.text if body.turn else "",
            "body": _text(body),
            "body_proved": body.proved,
            "failed_by": failed_by(episode, body, 0),
            "failure": failure(_result(episode, body, 0)),
            "attempts": len(body.chains[0]) if body.chains else 0,
            "lines": self._domain.gold_body(episode.task).strip().count("\n") + 1,
        }

    # Learning.

    def supplement(self, episodes: Sequence[Episode]) -> Sequence[Episode]:
        """Annotations of the golds' bodies, if no body of the step can be annotated."""
        if any(turn.role == ANNOTATOR and not _too_long(turn) for episode in episodes for turn in episode.turns):
            return ()
        return [Episode(episode.task, episode.draws, samples=()) for episode in episodes]

    def groups(self, episode: Episode) -> Sequence[Sequence[int]]:
        bodies = self.bodies(episode)
        written = [[body.index for body in bodies if body.turn is not None]]
        annotated = [[chain[0] for chain in body.chains] for body in bodies if body.own]
        return [group for group in written + annotated if group]

    def rewarded(self, episode: Episode) -> Sequence[int]:
        """Annotations, at their first and last attempt, and bodies without annotations, or that are compared under the gold's
        annotations."""
        found: dict[int, None] = {}
        for body in self.bodies(episode):
            alone = [] if body.turn is None else [body.turn.index]
            found |= dict.fromkeys([chain[-1] for chain in body.chains] or alone)
            found |= dict.fromkeys(self._other(body))
        for body in self.bodies(episode):
            found |= dict.fromkeys(chain[0] for chain in body.chains)
        return list(found)

    def _other(self, body: Body) -> list[int]:
        """Turns whose rewards are those of a body under the other annotator."""
        if not self._counterfactual or body.turn is None:
            return []
        return [chain[-1] for chain in body.others] or [body.turn.index]

    def credit(self, episode: Episode, rewards: Mapping[int, RewardBreakdown]) -> Mapping[int, RewardBreakdown]:
        bodies = [body for body in self.bodies(episode) if body.turn is not None]
        cascades = [
            [rewards[place] for place in [chain[-1] for chain in body.chains] or [body.written[-1]]] for body in bodies
        ]
        if self._counterfactual:
            others = [[rewards[place].total for place in self._other(body)] for body in bodies]
            credits = counterfactual(others)
        else:
            credits = shared([[one.total for one in each] for each in cascades])
        own = zip(bodies, cascades, credits, strict=True)
        return {**rewards, **{body.index: mean_reward(each, value) for body, each, value in own}}

    def shown(self, episode: Episode, index: int) -> Completion:
        """A body that annotations prove is shown with their verdict."""
        turn = episode.turns[index]
        if turn.role == ANNOTATOR or turn.note.faulty or turn.completion.verdict.outcome == "passed":
            return turn.completion
        body = next(one for one in self.bodies(episode) if one.index == index)
        proofs = (_verdict(episode, chain) for chain in body.chains)
        verdict = next((one for one in proofs if one.outcome == "passed"), turn.completion.verdict)
        return replace(turn.completion, verdict=verdict)

    def about(self, episode: Episode, index: int) -> Mapping[str, Any]:
        bodies, turn = self.bodies(episode), episode.turns[index]
        if turn.role == WRITER:
            body = next(one for one in bodies if one.index == index)
            verdicts = [_result(episode, body, place) for place in range(len(body.chains) or 1)]
            proved = sum(one.outcome == "passed" for one in verdicts)
            by = None if body.proved else WRITER
            return {"role": WRITER, "body": _text(body), "failed_by": by, "cascades": len(verdicts), "proved": proved}
        body = next(one for one in bodies if any(chain[0] == index for chain in one.chains))
        place = next(number for number, chain in enumerate(body.chains) if chain[0] == index)
        written = {"written": body.turn.completion.text} if body.turn else {}
        found = {"role": ANNOTATOR, "body": body.text, **written, "failed_by": failed_by(episode, body, place)}
        retries = [episode.turns[other].completion for other in body.chains[place][1:]]
        again = [
            {"completion": one.text, "outcome": one.verdict.outcome, "bucket": one.verdict.bucket} for one in retries
        ]
        return {**found, "failure": failure(_result(episode, body, place))} | ({"again": again} if again else {})

    def metrics(self, episodes: Sequence[Episode]) -> dict[str, float]:
        """Shares of cascades that are proved, and of failures by role and kind."""
        results = [
            (_result(episode, body, place), failed_by(episode, body, place))
            for episode in episodes
            for body in self.bodies(episode)
            for place in range(len(body.chains) or 1)
        ]
        judged = [one for one in results if one[0].outcome != "no_verdict"]
        row = {"cascade/no_verdict": float(len(results) - len(judged))}
        if judged:
            share = 1.0 / len(judged)
            row["cascade/success/mean"] = share * sum(verdict.outcome == "passed" for verdict, _ in judged)
            row |= {f"cascade/failed_by/{role}": share * sum(by == role for _, by in judged) for role in ROLES}
            kinds = Counter(kind for verdict, _ in judged if (kind := failure(verdict)))
            row |= {f"cascade/failure/{kind}": share * count for kind, count in kinds.items()}
        return row


def failure(verdict: Verdict) -> str | None:
    """Return syntax, timeout or semantic; otherwise the bucket, `rejected` or `no_verdict`; None for a proof."""
    if verdict.outcome == "passed":
        return None
    return FAILURES.get(verdict.bucket or "", verdict.bucket or verdict.outcome)


def failed_by(episode: Episode, body: Body, place: int) -> str | None:
    """The role at fault in a cascade; None for a proof and for no verdict.

    A body that cannot be annotated, or that is not valid Dafny by itself, is the writer's fault. So is a body that stays
    unproved and that the gold's annotations do not prove either, as far as these can show: another algorithm may need
    other annotations. Every other failure is the annotator's.
    """
    verdict = _result(episode, body, place)
    if verdict.outcome in ("passed", "no_verdict"):
        return None
    if body.fault is not None:
        return WRITER
    alone = None if body.turn is None else FAILURES.get(body.turn.completion.verdict.bucket or "")
    hopeless = alone == "syntax" or failure(verdict) in ("semantic", "timeout")
    return WRITER if hopeless and not body.proved else ANNOTATOR


def shared(rewards: Sequence[Sequence[OptionalReward]]) -> list[OptionalReward]:
    """(G, H) rewards of cascades -> (G,) the writer's credits."""
    return [mean(of_body) for of_body in rewards]


def counterfactual(values: Sequence[Sequence[OptionalReward]]) -> list[OptionalReward]:
    """(G, K) rewards of each body under the other annotator -> (G,) differences from the other bodies of the task."""
    own = shared(values)
    return [None if value is None else value - (_of_others(own, place) or 0.0) for place, value in enumerate(own)]


def _of_others(values: Sequence[OptionalReward], place: int) -> OptionalReward:
    """The only verified body of a task has no others: its value is its credit, and its group has zero variance anyway."""
    return mean([*values[:place], *values[place + 1 :]])


def mean(rewards: Sequence[OptionalReward]) -> OptionalReward:
    """The mean of the rewards with a verdict; None without any."""
    judged = [reward for reward in rewards if reward is not None]
    return fmean(judged) if judged else None


def mean_reward(paid: Sequence[RewardBreakdown], credit: float | None) -> RewardBreakdown:
    """The mean reward of a body's cascades; its total is the body's credit."""
    judged = [one for one in paid if one.sum is not None]
    if not judged or credit is None:
        return RewardBreakdown(None, None, {})
    terms = {name: fmean(one.terms[name] for one in judged) for name in judged[0].terms}
    return RewardBreakdown(credit, fmean(one.sum for one in judged if one.sum is not None), terms)


def _result(episode: Episode, body: Body, place: int) -> Verdict:
    """The verdict of a cascade: of the body with one of its annotations."""
    return body.fault if body.fault is not None else _verdict(episode, body.chains[place])


def _text(body: Body) -> str | None:
    """The body for files, or None."""
    return body.text if body.turn is None else body.turn.note.text


def _verdict(episode: Episode, chain: Sequence[int]) -> Verdict:
    return episode.turns[chain[-1]].completion.verdict


def _chain(episode: Episode, root: int) -> tuple[int, ...]:
    """A turn and its retries; a retry whose prompt was too long is none."""
    role = episode.turns[root].role
    following = [
        place
        for place in episode.children(root)
        if episode.turns[place].role == role and not _too_long(episode.turns[place])
    ]
    return (root, *_chain(episode, following[0])) if following else (root,)


def _too_long(turn: Turn) -> bool:
    return too_long(turn.completion)


ROLE_METRICS = tuple(f"{role}/{metric}" for role in ROLES for metric in ("pass_at_1", "pass_at_1_greedy"))
CASCADE_METRICS = (*METRICS, *ROLE_METRICS)
LENGTHS = (3, 6, 12)
"""Upper limits of the groups by length: lines of a gold's body."""


def cascade_sections(writer: Domain, results: Sequence[EvalSample]) -> dict[str, Any]:
    """Sections of an evaluation's file, as plain data."""
    by_lines: dict[int, list[EvalSample]] = defaultdict(list)
    failures: Counter[str] = Counter()
    for row in results:
        about = row.about
        assert about is not None, "the cascade's environment describes each sample"
        by_lines[next((most for most in LENGTHS if about["lines"] <= most), 0)].append(row)
        if about.get("failed_by") is not None:
            failures[f"{about['failed_by']}/{about['failure']}"] += 1
    lengths = {
        f"up to {most} lines" if most else f"more than {LENGTHS[-1]} lines": {
            metric: rate.to_dict() for metric, rate in rates_from(by_lines[most]).items()
        }
        for most in (*LENGTHS, 0)
        if most in by_lines
    }
    bodies = [
        replace(one, completion=replace(one.completion, text=(one.about or {})["written"]))
        for one in of_role(results, "writer")
    ]
    return {"lengths": lengths, "blame": dict(sorted(failures.items())), "roles": metrics_by_role(writer, bodies)}


class CascadePlay(Play):
    metrics = CASCADE_METRICS

    def __init__(self, config: Config, build_domain: Callable[[Config], Domain]):
        writer, annotator = (replace(config.data, role=role) for role in ROLES)
        self.stages = TwoStage(build_domain(replace(config, data=writer)), build(annotator))
        self.domain = self.stages.writer

    def training(self, config: Any) -> Cascade:
        options = config.cascade
        counterfactual = options.credit == "counterfactual"
        by_gold = counterfactual and options.counterfactual == "gold"
        resamples = options.resamples if counterfactual and not by_gold else 0
        widths = Widths(options.annotations, attempts(config), resamples, graft_all=by_gold)
        return Cascade(self.stages, widths, counterfactual)

    def evaluation(self, config: Any) -> Cascade:
        return Cascade(self.stages, Widths(attempts=attempts(config)))

    def prompts(self, role: str, tasks: Sequence[Task]) -> list[str]:
        two = self.stages
        if role == ANNOTATOR:
            return [two.annotator.task_prompt(two.annotation(task, two.gold_body(task), None)) for task in tasks]
        return [two.writer.task_prompt(task) for task in tasks]

    def gold(self, task: Task) -> str:
        return self.stages.example(task).annotated_body

    def sections(self, results: Sequence[EvalSample]) -> dict[str, Any]:
        return cascade_sections(self.domain, results)

    def inference(self, config: Config) -> Cascade:
        return self.evaluation(config)
