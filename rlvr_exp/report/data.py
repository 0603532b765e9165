"""The report's data: a run directory as far as it has been written, and the counts of each step's completions.

The counts are small however long the completions are, so that every step of a run can be kept.
"""

import fcntl
import json
import math
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import yaml

from rlvr_exp.config.algorithm import EQUAL_REWARDS
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.records.rollout_files import (
    EvalSample,
    RolloutRow,
    When,
    evaluation_path,
    read_evaluation,
    read_rollouts,
    rollout_steps,
)
from rlvr_exp.records.tracking import Row, read_metrics
from rlvr_exp.tasks.base import Task
from rlvr_exp.verifiers.base import PROMPT_TOO_LONG

WHENS: tuple[When, ...] = ("before", "after")
MOST_FILES, MOST_BYTES, MOST_KEPT = 300, 64 << 20, 24
"""Most rollout files that are counted, their most compressed bytes, and the most files whose rows are kept too; of
more, equally spaced ones including the first and the last, so that the report of a long run takes seconds and bounded
memory."""
KINDS = (
    "one_text", "dead_solved", "dead_failed", "mixed", "mixed_equal", "mixed_blind", "mixed_inverted", "mixed_reversed",
)  # fmt: skip
"""Kinds of groups that are counted."""


@dataclass(frozen=True)
class StepCounts:
    """A step's completions, counted. An evaluation is a step too: its tasks are its groups."""

    step: int
    samples: int
    verdicts: Mapping[str, int]
    """By bucket if there is one, else by outcome."""
    cheats: int
    """Rejected completions, except those that only failed to keep the given code."""
    truncated: int
    """Completions that reached their token limit."""
    empty: int
    """Completions without a character other than whitespace."""
    families: Mapping[str, tuple[int, int]]
    """(passed, judged) of each family."""
    tasks: Mapping[str, tuple[int, int]]
    """(passed, judged) of each task."""
    group_success: Sequence[float]
    """Share of passes in each group that has a verdict."""
    group_reward: Sequence[float]
    """Mean reward of each group with a reward, before the normaliser removes the level."""
    group_tokens: Sequence[float]
    """Mean length of each group's completions."""
    groups: int
    one_text: int
    """Groups of two and more whose completions are all the same text. Truncated texts do not count: short texts are alike."""
    dead_solved: int
    """Groups with equal rewards and a passed member."""
    dead_failed: int
    """Groups with equal rewards and no passed member."""
    mixed: int
    """Groups with a reward for a passed and for a failed member."""
    mixed_equal: int
    """Mixed groups with equal rewards."""
    mixed_blind: int
    """Mixed groups with unequal rewards. Each passed member has the reward of the best failed member."""
    mixed_inverted: int
    """Mixed groups with unequal rewards. The mean reward of failed members is at least that of passed ones."""
    mixed_reversed: int
    """The inverted groups with a higher reward for every failed member than for every passed member."""

    def met(self, *verdicts: str) -> int:
        """Completions with one of these verdicts."""
        return sum(self.verdicts.get(verdict, 0) for verdict in verdicts)

    def unread(self, *verdicts: str) -> int:
        """Completions with one of these verdicts or without any text."""
        return min(self.samples, self.met(*verdicts) + self.empty)


@dataclass(frozen=True)
class RunData:
    """A run directory, as far as it has been written."""

    name: str
    directory: Path
    running: bool
    """A process is running it."""
    config_text: str
    config: Mapping[str, Any]
    manifest: Mapping[str, Any]
    summary: Mapping[str, Any]
    metrics: Sequence[Row]
    numbers: Mapping[str, Mapping[str, Any]]
    """By when: rates, families, verdict counts and latency of an evaluation."""
    answers: Mapping[str, Sequence[EvalSample]]
    """By when, before first: the verified completions of an evaluation."""
    step_counts: Sequence[StepCounts]
    """Counts of the training completions, by step."""
    step_counts_every: int
    """One in how many rollout files was counted; 1 unless there are very many."""
    rollouts: Sequence[RolloutRow]
    """All completions of some of the steps."""
    last_rollouts: Sequence[RolloutRow]
    links: Sequence[str] = ()
    """Directories of the runs of a chain, below its own."""

    @property
    def seed(self) -> int:
        return int(self.config.get("seed") or 0)


def read_run(run_dir: Path) -> RunData:
    """Read the existing files.

    Raises:
        InputError: no such directory, or a file in it is damaged; names the file.
    """
    if not run_dir.is_dir():
        raise InputError(InputProblem(str(run_dir), "no such directory", remedy="name a run directory"))
    config = run_dir / "config.yaml"
    text = config.read_text(encoding="utf-8") if config.exists() else ""
    summary = _mapping(run_dir / "summary.json")
    step_counts, every, kept = _rollouts(run_dir)
    return RunData(
        name=run_dir.resolve().name,
        directory=run_dir,
        running=not summary and is_locked(run_dir / ".lock"),
        config_text=text,
        config=_mapping(config, yaml.safe_load),
        manifest=_mapping(run_dir / "manifest.json"),
        summary=summary,
        metrics=_parsed(run_dir / "metrics.jsonl", lambda path: read_metrics(path.parent)),
        numbers={when: found for when in WHENS if (found := _mapping(run_dir / "evaluation" / f"{when}.json"))},
        answers={when: read_evaluation(run_dir, when) for when in WHENS if evaluation_path(run_dir, when).exists()},
        step_counts=step_counts,
        step_counts_every=every,
        rollouts=kept,
        last_rollouts=[row for row in kept if row.step == kept[-1].step] if kept else [],
        links=[link["directory"] for link in _mapping(run_dir / "chain.json").get("links", ())],
    )


def _rollouts(run_dir: Path) -> tuple[list[StepCounts], int, list[RolloutRow]]:
    """Counts, the spacing of the counted files, and the rows that are kept."""
    files = list(rollout_steps(run_dir).items())
    size = sum(path.stat().st_size for _, path in files)
    every = max(1, math.ceil(len(files) / MOST_FILES), math.ceil(size / MOST_BYTES))
    counted = _spaced(files, every)
    kept_steps = {step for step, _ in _spaced(counted, max(1, math.ceil(len(counted) / MOST_KEPT)))}
    step_counts: list[StepCounts] = []
    kept: list[RolloutRow] = []
    for step, path in counted:
        # Of a cascade only the annotator's rows: a writer's row belongs to several cascades and has another criterion.
        rows = [row for row in read_rollouts(path) if "cascades" not in (row.about or {})]
        step_counts.append(count_step(step, rows))
        if step in kept_steps:
            kept += rows
    return step_counts, every, kept


def _spaced(files: Sequence[tuple[int, Path]], every: int) -> list[tuple[int, Path]]:
    """Every `every`-th, counted from the end, and the first."""
    return sorted({*files[::-1][::every], *files[:1]})


def is_locked(lock: Path) -> bool:
    """Whether a process has the lock of the run. The lock is released when the process ends, however it ends."""
    if not lock.is_file():
        return False
    handle = os.open(lock, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


def _parsed(path: Path, parse: Callable[[Path], Any]) -> Any:
    try:
        return parse(path)
    except (ValueError, yaml.YAMLError) as fault:
        problem = InputProblem(str(path), "cannot be read", got=str(fault), remedy="restore the file")
        raise InputError(problem) from fault


def _mapping(path: Path, parse: Callable[[str], Any] = json.loads) -> dict[str, Any]:
    """The mapping in a file; empty without the file."""
    value = _parsed(path, lambda path: parse(path.read_text(encoding="utf-8"))) if path.exists() else {}
    if not isinstance(value or {}, dict):
        raise InputError(InputProblem(str(path), "not a mapping", got=type(value).__name__, remedy="restore the file"))
    return value or {}


def is_empty(row: RolloutRow) -> bool:
    """Without a text, though the policy was asked."""
    return not row.completion.text.strip() and row.verdict.bucket != PROMPT_TOO_LONG


def is_cheat(row: RolloutRow) -> bool:
    """Rejected, and not for a changed program: an annotator gains nothing by changing the writer's code."""
    return row.verdict.outcome == "rejected" and row.verdict.rule != "program-changed"


def count_step(step: int, rows: Iterable[RolloutRow]) -> StepCounts:
    """Count the rows of a step. Rows of earlier steps were counted there."""
    own = [row for row in rows if not row.waited]
    groups: dict[int, list[RolloutRow]] = defaultdict(list)
    for row in own:
        groups[row.group].append(row)
    members = list(groups.values())
    kinds = Counter(kind for group in members for kind in _kinds(group))
    judged = [[row.completion.correct for row in group if row.verdict.outcome != "no_verdict"] for group in members]
    paid = [[paid_of(row) for row in group if row.reward is not None] for group in members]
    return StepCounts(
        step=step,
        samples=len(own),
        verdicts=Counter(row.verdict.bucket or row.verdict.outcome for row in own),
        cheats=sum(map(is_cheat, own)),
        truncated=sum(row.completion.truncated for row in own),
        empty=sum(is_empty(row) for row in own),
        families=_passed(own, lambda task: task.family),
        tasks=_passed(own, lambda task: task.id),
        group_success=[fmean(group) for group in judged if group],
        group_reward=[fmean(group) for group in paid if group],
        group_tokens=[fmean(row.completion.tokens for row in group) for group in members],
        groups=len(members),
        **{kind: kinds[kind] for kind in KINDS},
    )


def as_rollouts(step: int, answers: Iterable[EvalSample]) -> list[RolloutRow]:
    """The sampled answers of an evaluation as rows without a reward, each task a group. Greedy answers if there are
    no samples."""
    rows = []
    places: dict[str, int] = {}
    for one in sampled_answers(answers):
        group = places.setdefault(one.completion.task.id, len(places))
        rows.append(RolloutRow(one.completion, step, group, one.prompt, fate="measured"))
    return rows


def sampled_answers(answers: Iterable[EvalSample]) -> list[EvalSample]:
    """The sampled answers, or the greedy answers if there are no samples."""
    answers = list(answers)
    return [one for one in answers if one.mode == "sampled"] or answers


def paid_of(row: RolloutRow) -> float:
    """The reward before the normaliser."""
    return math.fsum(row.terms.values()) if row.terms else float(row.reward or 0.0)


def _passed(rows: Iterable[RolloutRow], key: Callable[[Task], str]) -> dict[str, tuple[int, int]]:
    counts: dict[str, list[int]] = {}
    for row in rows:
        if row.verdict.outcome != "no_verdict":
            count = counts.setdefault(key(row.completion.task), [0, 0])
            count[0] += row.completion.correct
            count[1] += 1
    return {name: (passed, judged) for name, (passed, judged) in counts.items()}


def _kinds(group: Sequence[RolloutRow]) -> Iterable[str]:
    if len(group) > 1 and len({row.completion.text for row in group}) == 1 and not group[0].completion.truncated:
        yield "one_text"
    right, wrong = ([row.reward for row in group if row.reward is not None and row.completion.correct is passed]
                    for passed in (True, False))  # fmt: skip
    if not right and not wrong:
        return
    spread = max(*right, *wrong, float("-inf")) - min(*right, *wrong, float("inf"))
    if spread <= EQUAL_REWARDS:
        yield "dead_solved" if right else "dead_failed"
    if right and wrong:
        yield "mixed"
        yield from _reward_order(right, wrong)


def _reward_order(right: Sequence[float], wrong: Sequence[float]) -> Iterable[str]:
    """How the rewards of passed and of failed members compare, if their order is wrong."""
    low, high = min(*right, *wrong), max(*right, *wrong)
    if high - low <= EQUAL_REWARDS:
        yield "mixed_equal"
        return
    best = max(wrong)
    if all(abs(reward - best) <= EQUAL_REWARDS for reward in right):
        yield "mixed_blind"
    if fmean(right) <= fmean(wrong):
        yield "mixed_inverted"
    if max(right) < min(wrong) - EQUAL_REWARDS:
        yield "mixed_reversed"
