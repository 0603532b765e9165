"""What a step of reinforcement learning leaves behind: rows of rollouts and the step's own metrics.

Keeps the books: every sample of a step is trained on, filtered (its group had nothing to learn from) or without a
verdict, and the three add up to what was sampled.
"""

import math
import time
from collections import Counter
from collections.abc import Mapping
from statistics import fmean, pstdev

import torch

from rlvr_exp.algorithms.experience import Experience
from rlvr_exp.core.errors import GuardStop
from rlvr_exp.rollouts.collect import Groups
from rlvr_exp.run.rollout_files import Rollout
from rlvr_exp.verifiers.base import BUCKETS

SOLVED, FAILED, SILENT, MIXED = "solved", "failed", "no_verdict", "mixed"


class StepLog:
    """Turns steps' groups into rows of metrics.

    Args:
        regularised: the loss has terms beside the reward's (KL, entropy), so that groups without an advantage are
            learned from as well.
    """

    def __init__(self, regularised: bool) -> None:
        self._regularised = regularised
        self.steps_with_signal = 0
        """Steps in which any sample had something to teach."""
        self._rows: list[dict[str, float]] = []
        """Of the steps since the last row was logged."""
        self._updates: list[float] = []
        self._collected_at = time.perf_counter()

    def record(self, groups: Groups, learned: Experience) -> None:
        """Note what was sampled; called once a step, before its update.

        Raises:
            GuardStop: the books do not add up.
        """
        outcomes = Counter(answer.verdict.outcome for group in groups.answers for answer in group)
        sampled = sum(outcomes.values())
        silent = outcomes["no_verdict"]
        trained = int(trained_rows(learned, self._regularised).sum())
        self.steps_with_signal += trained > 0
        row = {
            "samples/sampled": sampled,
            "samples/trained": trained,
            "samples/no_verdict": silent,
            "samples/filtered": sampled - trained - silent,
        }
        if row["samples/filtered"] < 0:
            raise GuardStop(f"step {groups.step + 1}: {trained} trained + {silent} without verdict > {sampled} sampled")
        row |= _rewards(groups) | _verdicts(groups) | _groups(groups) | _lengths(groups)
        row |= {f"time/{phase}": seconds for phase, seconds in groups.seconds.items()}
        self._rows.append(row)
        self._collected_at = time.perf_counter()

    def updated(self) -> None:
        """Note the end of an update, before anything else of its step (a checkpoint) takes time."""
        now = time.perf_counter()
        self._updates.append(now - self._collected_at)
        self._collected_at = now

    def metrics(self) -> Mapping[str, float]:
        """What happened since the last call: counts of samples added up, everything else as the mean over steps."""
        names = dict.fromkeys(name for row in self._rows for name in row)
        total = {name: math.fsum(row.get(name, 0.0) for row in self._rows) for name in names}
        row = {name: value if name.startswith("samples/") else value / len(self._rows) for name, value in total.items()}
        if self._updates:
            row["time/update"] = fmean(self._updates)
        self._rows, self._updates = [], []
        return row


def trained_rows(learned: Experience, regularised: bool) -> torch.Tensor:
    """(N,) which samples were trained on: judged, and of a group that had something to teach."""
    counted = learned.weights.sum(1) > 0
    return counted if regularised else counted & learned.live().repeat_interleave(learned.group_size)


def _rewards(groups: Groups) -> dict[str, float]:
    judged = [one for group in groups.rewarded for one in group if one.total is not None]
    if not judged:
        return {}
    # Before the normaliser, which takes the level out that this curve is to show.
    totals = [one.sum for one in judged]
    row = {"reward/mean": fmean(totals), "reward/std": pstdev(totals)}
    for name in judged[0].terms:
        row[f"reward/{name}"] = fmean(one.terms[name] for one in judged)
    return row


def _verdicts(groups: Groups) -> dict[str, float]:
    verdicts = [answer.verdict for group in groups.answers for answer in group]
    judged = [verdict for verdict in verdicts if verdict.outcome != "no_verdict"]
    counts = Counter(verdict.bucket for verdict in judged if verdict.bucket)
    row = {f"verdict/{bucket}": counts[bucket] / len(verdicts) for bucket in BUCKETS if counts[bucket]}
    row["verdict/rejected"] = sum(verdict.outcome == "rejected" for verdict in verdicts) / len(verdicts)
    if judged:
        row["success/mean"] = sum(verdict.outcome == "passed" for verdict in judged) / len(judged)
    return row


def _groups(groups: Groups) -> dict[str, float]:
    """Groups by what they can teach: all passed, none passed, nothing judged, or some of each."""
    kinds = Counter(_kind([answer.verdict.outcome for answer in group]) for group in groups.answers)
    return {f"groups/{kind}": kinds[kind] / len(groups.answers) for kind in (SOLVED, FAILED, SILENT, MIXED)}


def _kind(outcomes: list[str]) -> str:
    judged = [outcome == "passed" for outcome in outcomes if outcome != "no_verdict"]
    if not judged:
        return SILENT
    return SOLVED if all(judged) else MIXED if any(judged) else FAILED


def _lengths(groups: Groups) -> dict[str, float]:
    sampled = [answer.sampled for group in groups.answers for answer in group]
    return {
        "tokens/completion_mean": fmean(len(one.ids) for one in sampled),
        # Unbiased for the mean entropy of a token, over all that was sampled and not only what is learned from.
        "entropy": -fmean(score for one in sampled for score in one.logprobs),
        "tokens/completion_max": max(len(one.ids) for one in sampled),
        "tokens/truncated": sum(one.truncated for one in sampled) / len(sampled),
    }


def rollout_rows(groups: Groups, learned: Experience, regularised: bool) -> list[Rollout]:
    """One row a sample, for `rollouts/`; steps are counted from 1 there, as in the metrics."""
    trained = trained_rows(learned, regularised).tolist()
    advantages = learned.advantages[:, 0].tolist()
    rows = []
    for place, group in enumerate(groups.answers):
        for answer, rewarded in zip(group, groups.rewarded[place], strict=True):
            index = len(rows)
            verdict = answer.verdict
            rows.append(
                Rollout(
                    step=groups.step + 1,
                    task=answer.task.id,
                    family=answer.task.family,
                    group=place,
                    sample=answer.sample,
                    prompt=groups.prompts[place][0],
                    completion=answer.text,
                    tokens=len(answer.sampled.ids),
                    truncated=answer.sampled.truncated,
                    outcome=verdict.outcome,
                    bucket=verdict.bucket,
                    rule=verdict.rule,
                    passed=verdict.passed,
                    total=verdict.total,
                    reward=rewarded.total,
                    terms=rewarded.terms,
                    advantage=advantages[index] if trained[index] else None,
                    log=verdict.log,
                )
            )
    return rows
