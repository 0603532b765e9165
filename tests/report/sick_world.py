"""A run as rows in memory: healthy unless a test makes it sick. Answers and verdicts are drawn here."""

import dataclasses
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from completions import completion

from rlvr_exp.records.rollout_files import RolloutRow, from_row, to_row
from rlvr_exp.report.data import count_step
from rlvr_exp.report.evidence import Evidence, Share

Change = Callable[[SimpleNamespace], dict[str, Any]]
"""From a row, by the keys of its file, to what changes of it."""
CONFIG = {
    "stage": "grpo",
    "model": {"max_completion_tokens": 64},
    "algorithm": {"temperature": 1.0, "max_steps": 30, "iterations": 1, "clip_high": 0.2, "kl_coef": 0.0},
    "evaluation": {"temperature": 1.0},
    "optimizer": {"_target_": "rlvr_exp.algorithms.optimizers.AdamW", "lr": 6e-4, "max_grad_norm": 1.0},
    "scheduler": {"warmup_steps": 3},
    "reward": {"terms": {"all_passed": {"weight": 1.0}}},
}


@dataclass
class World:
    """A run of so many steps.

    Args:
        rate: share of the answers that pass, rising by `gain` over the run.
        change: changes each completion, after its verdict.
        row: changes each step's metrics.
    """

    steps: int = 30
    groups: int = 8
    size: int = 8
    rate: float = 0.3
    gain: float = 0.1
    seed: int = 0
    change: Change = lambda row: {}
    row: Callable[[int], dict[str, Any]] = lambda step: {}
    config: dict[str, Any] = field(default_factory=dict)
    summary: dict[str, Any] = field(default_factory=lambda: {"status": "completed", "reason": ""})
    changed: Share = Share(500, 800)
    change_held_out: dict[str, Any] = field(default_factory=dict)
    gold: str = ""
    """Golds of every task; empty: none is known."""
    garbled: Change = lambda row: {}
    """Of each completion measured before training."""
    manifest: dict[str, Any] = field(default_factory=dict)

    def evidence(self) -> Evidence:
        drawn = [self._step(step) for step in range(1, self.steps + 1)]
        unpaid = {"step": 0, "reward": None, "advantage": None, "fate": "measured"}
        before = [changed(row, lambda row: {**self.garbled(row), **unpaid}) for row in self._plain(0)]
        return Evidence(
            metrics=[self._metrics(step, rows) for step, rows in enumerate(drawn, 1)],
            step_counts=[count_step(step, rows) for step, rows in enumerate(drawn, 1)],
            rollouts=[row for rows in drawn for row in rows],
            before=count_step(0, before),
            measured=before,
            changed=self.changed,
            change=self.change_held_out,
            golds={row.completion.task.id: self.gold for rows in drawn for row in rows} if self.gold else {},
            config=merged(CONFIG, self.config),
            summary={"steps": self.steps, **self.summary},
            manifest=self.manifest,
        )

    def _step(self, step: int) -> list[RolloutRow]:
        rows = [changed(row, self.change) for row in self._plain(step)]
        return [self._learned(row, [other for other in rows if other.group == row.group]) for row in rows]

    def _plain(self, step: int) -> list[RolloutRow]:
        rng = random.Random(f"{self.seed} {step}")
        return [self._one(rng, step, group, sample) for group in range(self.groups) for sample in range(self.size)]

    def _one(self, rng: random.Random, step: int, group: int, sample: int) -> RolloutRow:
        hard = random.Random(f"{self.seed} {step} {group}").random()
        rate = self.rate + self.gain * step / self.steps
        # From groups that nearly always fail to groups that nearly always pass, as real tasks are.
        passed = rng.random() < min(1.0, max(0.0, rate + 1.2 * (hard - 0.5)))
        task, number = f"t{step}_{group}", rng.randrange(40)
        text = f"def solve(g):\n    return {'right' if passed else 'wrong'}(g, {number})  # {task}"
        bucket = None if passed else rng.choice(["wrong_answer"] * 9 + ["runtime_error", "parse"])
        log = "" if passed else f"case {number}: {bucket}"
        reward = 1.0 + 0.001 * number if passed else -0.02 - 0.0002 * number
        more = dict(family=f"family{group % 3}", sample=sample, completion=text, tokens=10 + number % 7, log=log)
        found = completion(task, "passed" if passed else "failed", bucket, passed=int(passed), total=1, **more)
        return RolloutRow(found, step, group, f"prompt of {task}", reward, {"all_passed": reward})

    def _learned(self, row: RolloutRow, group: list[RolloutRow]) -> RolloutRow:
        paid = [other.reward for other in group if other.reward is not None]
        if row.reward is None or max(paid) - min(paid) < 1e-6:
            return dataclasses.replace(row, fate="filtered" if row.reward is not None else "no_verdict")
        if row.advantage is not None:
            return row
        return dataclasses.replace(row, advantage=row.reward - sum(paid) / len(paid))

    def _metrics(self, step: int, rows: list[RolloutRow]) -> dict[str, Any]:
        judged = [row for row in rows if row.verdict.outcome != "no_verdict"]
        paid = [row.reward for row in rows if row.reward is not None]
        trained = sum(row.fate == "trained" for row in rows)
        metrics = {
            "step": step, "loss": 1e-8, "grad_norm": 0.2 if trained else 0.0, "grad_norm/after": 0.2 if trained else 0.0,
            "learning_rate": 6e-4 * min(1.0, (step - 1) / 3), "kl/old": 2e-13, "clip/low": 0.0, "clip/high": 0.0,
            "entropy": 0.4 - 0.2 * step / self.steps, "tokens/completion_mean": 12.0, "samples/trained": float(trained),
            "time/step": 2.0, "time/generate": 1.0, "time/verify": 0.1, "time/update": 0.9,
        }  # fmt: skip
        if paid:
            metrics["reward/mean"] = sum(paid) / len(paid)
        if judged:
            metrics["success/mean"] = sum(row.completion.correct for row in judged) / len(judged)
        return metrics | self.row(step)


def changed(row: RolloutRow, change: Change) -> RolloutRow:
    plain = to_row(row)
    return from_row(RolloutRow, {**plain, **change(SimpleNamespace(**plain))})


def merged(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """Nested dicts merged."""
    both = {
        key: merged(base[key], value) if isinstance(value, dict) and key in base else value
        for key, value in over.items()
    }
    return base | both
