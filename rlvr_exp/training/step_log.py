"""The log of a step: metrics, rows of rollouts and the checked sample accounting of reinforcement learning; the resources of a run.

Rates of verdicts and rewards are those of the samples of the step; a step that trains only on groups sampled earlier has
none. `ResourceTrends`, `StepClock` and `EnergyMeter` measure memory, open files and disk with a forecast, the seconds of each
part of a step, and energy.
"""

import math
import os
import resource
import shutil
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from itertools import count, groupby
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

import torch

from rlvr_exp.algorithms.training_batch import TrainingBatch, sampled
from rlvr_exp.core import machine
from rlvr_exp.core.errors import GuardStop
from rlvr_exp.core.statistics import slope
from rlvr_exp.episodes.types import TokenSample
from rlvr_exp.records.rollout_files import RolloutRow
from rlvr_exp.rollouts.distributed import any_rank
from rlvr_exp.rollouts.groups import ZERO_VARIANCE_KINDS, Group, Groups, members
from rlvr_exp.verifiers.base import BUCKETS

SOLVED, FAILED, SILENT, MIXED = "solved", "failed", "no_verdict", "mixed"
COUNTS = ("samples/", "dead/")
"""Metrics that are summed over the steps of a row; all others are averaged."""


class StepLog:
    """Turns the groups of steps into rows of metrics.

    Args:
        regularised: the loss has terms other than the reward's (KL, entropy, a value), so that groups without an
            advantage are trained on as well, unless they are masked.
        masked: groups with zero variance stay out of the loss.
    """

    def __init__(self, regularised: bool, masked: bool) -> None:
        self._regularised, self._masked = regularised, masked
        self.steps_with_signal = 0
        """Steps in which any sample had something to learn from."""
        self._rows: list[dict[str, float]] = []
        """Metrics of the steps since the last row was logged."""
        self._updates: list[float] = []
        self._collected_at = time.perf_counter()

    def record(self, groups: Groups, learned: TrainingBatch) -> None:
        """Record the samples; called once a step, before its update.

        Raises:
            GuardStop: the sample accounting does not add up.
        """
        trained = int(trained_rows(learned, self._regularised).sum())
        accounting = SampleAccounting.of(groups, trained, self._filtered(groups))
        accounting.check(groups.step + 1)
        self.steps_with_signal += trained > 0 and learned.informative()
        kinds = Counter(groups.zero_variance.get(group.id) for group in groups.sampled)
        dead = {f"dead/{kind}": kinds[kind] for kind in ZERO_VARIANCE_KINDS}
        row: dict[str, float] = {**accounting.metrics(), **dead, **_lengths(groups)}
        if groups.sampled:
            row |= _rewards(groups.sampled) | _verdicts(groups.sampled) | _kinds(groups.sampled)
        row |= {f"time/{phase}": seconds for phase, seconds in groups.seconds.items()}
        if groups.sampled and groups.seconds.get("generate"):
            tokens = sum(answer.tokens for group in groups.sampled for answer in group.completions)
            row["time/tokens_per_second"] = tokens / groups.seconds["generate"]
        self._rows.append(row)
        self._collected_at = time.perf_counter()

    def _filtered(self, groups: Groups) -> set[int]:
        """Ids of the groups that the update leaves out: those with zero variance, unless other terms of the loss use
        them."""
        taken = {group.id for group in groups.batch}
        kept = self._regularised and not self._masked
        return {
            group.id
            for group in groups.settled
            if group.id in groups.zero_variance and not (kept and group.id in taken)
        }

    def updated(self) -> None:
        """Record the end of an update, before anything else of its step (a checkpoint) takes time."""
        now = time.perf_counter()
        self._updates.append(now - self._collected_at)
        self._collected_at = now

    def state_dict(self) -> dict[str, Any]:
        """Plain values: the data of the next row, and the number of steps with something to learn from."""
        return {"rows": self._rows, "time/update": self._updates, "steps_with_signal": self.steps_with_signal}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._rows, self._updates = list(state["rows"]), list(state["time/update"])
        self.steps_with_signal = state["steps_with_signal"]

    def metrics(self) -> Mapping[str, float]:
        """Metrics since the last call: counts are summed, all others averaged over the steps that have them."""
        names = dict.fromkeys(name for row in self._rows for name in row)
        values = {name: [row[name] for row in self._rows if name in row] for name in names}
        row = {name: math.fsum(each) if name.startswith(COUNTS) else fmean(each) for name, each in values.items()}
        if self._updates:
            row["time/update"] = fmean(self._updates)
        self._rows, self._updates = [], []
        return row


def trained_rows(learned: TrainingBatch, regularised: bool) -> torch.Tensor:
    """(N,) which samples were trained on: verified, and of a group with something to learn from."""
    counted = learned.weights.sum(1) > 0
    return counted if regularised else counted & learned.live()


def _rewards(groups: Sequence[Group]) -> dict[str, float]:
    judged = [one for group in groups for one in group.rewarded if one.total is not None]
    if not judged:
        return {}
    # Before the normaliser, which removes the level that this curve shows.
    shown = (one.total if one.sum is None else one.sum for one in judged)
    totals = [total for total in shown if total is not None]
    row = {"reward/mean": fmean(totals), "reward/std": pstdev(totals)}
    for name in dict.fromkeys(name for one in judged for name in one.terms):
        row[f"reward/{name}"] = fmean(one.terms[name] for one in judged if name in one.terms)
    # The algorithm's own addition to the rewards.
    pairs = [pair for group in groups for pair in zip(group.rewards, group.rewarded, strict=True)]
    added = [seen - paid.total for seen, paid in pairs if seen is not None and paid.total is not None]
    return row | ({"reward/shaping": fmean(added)} if any(added) else {})


def _verdicts(groups: Sequence[Group]) -> dict[str, float]:
    verdicts = [answer.verdict for group in groups for answer in group.completions]
    judged = [verdict for verdict in verdicts if verdict.outcome != "no_verdict"]
    counts = Counter(verdict.bucket for verdict in judged if verdict.bucket)
    row = {f"verdict/{bucket}": counts[bucket] / len(verdicts) for bucket in BUCKETS if counts[bucket]}
    row["verdict/rejected"] = sum(verdict.outcome == "rejected" for verdict in verdicts) / len(verdicts)
    if judged:
        row["success/mean"] = sum(verdict.outcome == "passed" for verdict in judged) / len(judged)
    return row


def _kinds(groups: Sequence[Group]) -> dict[str, float]:
    """Groups by their outcomes: all passed, none passed, none verified, or mixed; and the difficulty of their tasks."""
    kinds: Counter[str] = Counter()
    for group in groups:
        judged = [one.correct for one in group.completions if one.verdict.outcome != "no_verdict"]
        kinds[SILENT if not judged else SOLVED if all(judged) else MIXED if any(judged) else FAILED] += 1
    shares = {f"groups/{kind}": kinds[kind] / len(groups) for kind in (SOLVED, FAILED, SILENT, MIXED)}
    return {**shares, "tasks/difficulty": fmean(group.completions[0].task.difficulty for group in groups)}


def _lengths(groups: Groups) -> dict[str, float]:
    drawn = [one for group in groups.at_hand for one in sampled(group)]
    return {
        "tokens/completion_mean": fmean(len(one.ids) for one in drawn),
        **_entropy(drawn),
        "tokens/completion_max": max(len(one.ids) for one in drawn),
        "tokens/truncated": sum(one.truncated for one in drawn) / len(drawn),
    }


def _entropy(drawn: Sequence[TokenSample]) -> dict[str, float]:
    """The mean entropy of a token, over all that was sampled and not only over trained samples: exact if the sampler has
    computed it, else an estimate under a name of its own, E[-log p]."""
    known = [one.entropy * len(one) for one in drawn if one.entropy is not None]
    if len(known) == len(drawn):
        return {"entropy": math.fsum(known) / sum(map(len, drawn))}
    return {"entropy/estimate": -fmean(score for one in drawn for score in one.logprobs)}


def rollout_rows(groups: Groups, learned: TrainingBatch | None, regularised: bool) -> list[RolloutRow]:
    """One row per sample of the step: first samples carried in from earlier steps, then those sampled in it.

    Args:
        learned: None if no policy is trained on them.
    """
    advantages = {} if learned is None else _advantages(learned, regularised)
    waiting = {group.id for group in groups.carried_over}
    places = count()
    return [
        RolloutRow(
            replace(
                group.completions[member], sample=sample
            ),  # Of turns with one prompt, each may be the first of its own.
            step=groups.step + 1,
            group=place,
            prompt=group.prompts[member],
            reward=group.rewarded[member].total,
            terms=group.rewarded[member].terms,
            advantage=(advantage := advantages.get((group.id, member))),
            fate="pending" if group.id in waiting else _fate(group, member, advantage),
            waited=groups.step - group.step,
            about=group.about[member] if group.about else None,
        )
        for group in groups.at_hand
        for _, same in groupby(range(len(group.completions)), key=group.prompt_ids.__getitem__)
        for place in [next(places)]  # Rows of one number have one prompt.
        for sample, member in enumerate(same)
    ]


def _advantages(learned: TrainingBatch, regularised: bool) -> dict[tuple[int, int], float]:
    """Advantages of the samples trained on, by group id and index in the group."""
    trained = trained_rows(learned, regularised).tolist()
    first = learned.advantages[:, 0].tolist()
    places = [(group, member) for group, same in groupby(learned.group_ids.tolist()) for member, _ in enumerate(same)]
    return {place: value for place, value, counts in zip(places, first, trained, strict=True) if counts}


def _fate(group: Group, member: int, advantage: float | None) -> str:
    if group.rewards[member] is None:
        return "no_verdict"
    return "filtered" if advantage is None else "trained"


@dataclass(frozen=True)
class SampleAccounting:
    """Counts of the samples of one step: each is trained on, filtered, pending for a later step, or without a verdict.

        sampled = trained + filtered + pending + no_verdict

    Each side is counted from its own source: sampled and pending samples from the groups, trained samples from the
    tensors that the update receives. If the sides disagree, samples were lost or trained on twice, and the run stops.
    """

    sampled: int
    trained: int
    filtered: int
    """Verified, in a group with nothing to learn from."""
    pending: int
    """Carried over to later steps, minus those carried in from earlier steps: negative where more were carried in."""
    no_verdict: int

    @classmethod
    def of(cls, groups: Groups, trained: int, filtered: set[int]) -> "SampleAccounting":
        """
        Args:
            trained: samples that the update counts.
            filtered: ids of the groups that it leaves out.
        """
        return cls(
            sampled=members(groups.sampled),
            trained=trained,
            filtered=sum(_verified(group) for group in groups.settled if group.id in filtered),
            pending=members(groups.carried_over) - members(groups.carried_in),
            no_verdict=sum(group.n_no_verdict for group in groups.settled),
        )

    def check(self, step: int) -> None:
        """Raises GuardStop if the counts do not add up."""
        if self.sampled != self.trained + self.filtered + self.pending + self.no_verdict:
            parts = ", ".join(f"{name} {count}" for name, count in asdict(self).items())
            raise GuardStop(
                f"step {step}: the books do not add up: {parts}; sampled must be the sum of the others. Samples were lost or "
                "counted twice, so the step was not trained on. Resume from the last checkpoint, and report it with config.yaml"
            )

    def metrics(self) -> Mapping[str, int]:
        return {f"samples/{name}": count for name, count in asdict(self).items()}


def _verified(group: Group) -> int:
    return len(group.completions) - group.n_no_verdict


MB = 1 << 20


@dataclass(frozen=True)
class Use:
    """One resource at one moment, in one unit."""

    used: float
    left: float
    """The rest until it is used up."""


class ResourceTrends:
    """The use of a process's resources over its last steps. Warns before memory, open files or disk run out.

    The forecast is the median of all pairwise slopes (Theil 1950, Sen 1968), which a few outlying steps do not move. Growth
    that has stopped gives no warning: the smaller of the slopes over the complete window and over its later half counts.
    Warns once for each resource and never stops a run.

    Args:
        directory: of the run; its disk is watched.
        window: steps that a slope is taken over; nothing is forecast before there are so many, and never if it is 0.
    """

    def __init__(self, directory: Path, window: int = 40):
        self._directory, self._window = directory, window
        self._seen: dict[str, deque[float]] = {}
        self._warned: set[str] = set()
        self._row: dict[str, float] = {}

    def step(self, done: int, total: int) -> list[str]:
        """Measure after a step; returns a line for each resource that would run out, once per resource and run."""
        return self.take(measure(self._directory), done, total)

    def take(self, uses: Mapping[str, Use], done: int, total: int) -> list[str]:
        """The same for measurements taken elsewhere."""
        self._row = {f"system/{NAMES[name]}": use.used for name, use in uses.items()}
        warnings = []
        for name, use in uses.items():
            seen = self._seen.setdefault(name, deque(maxlen=max(1, self._window)))
            seen.append(use.used)
            growth = sustained(seen) if 0 < self._window <= len(seen) else 0.0
            if growth > 0 and use.left < growth * (total - done):
                self._row[f"system/steps_left/{name}"] = use.left / growth
                if name not in self._warned:
                    self._warned.add(name)
                    warnings.append(_line(name, use, growth, done, total))
        return warnings

    def metrics(self) -> dict[str, float]:
        """Metrics of the last step: the use, and the remaining steps of a resource that would run out."""
        return self._row


NAMES = {"memory": "rss_mb", "files": "open_files", "disk": "disk_used_mb"}
"""Resource -> its metric."""
REMEDIES = {
    "memory": "look for what keeps growing, or give it a machine with more, and resume from a checkpoint there",
    "files": "raise `ulimit -n`, and look for what is opened and never closed",
    "disk": "make room, or lower run.checkpoint.keep or raise run.checkpoint.every_steps",
}
UNITS = {"memory": "MB", "files": "open files", "disk": "MB"}


def _line(name: str, use: Use, growth: float, done: int, total: int) -> str:
    steps = use.left / growth
    return (
        f"warning: {name} will be used up in about {steps:.0f} steps, at step {done + steps:.0f} of {total}: "
        f"{use.used:.0f} {UNITS[name]} are used, {use.left:.0f} are left, {growth:.3g} more a step. Remedy: "
        f"{REMEDIES[name]}"
    )


def sustained(values: Sequence[float]) -> float:
    """Growth per step that has been sustained to the end of the window."""
    values = list(values)
    return min(slope(values), slope(values[len(values) // 2 :]))


def measure(directory: Path) -> dict[str, Use]:
    """The current use of this process, and of the disk that holds a folder."""
    disk = shutil.disk_usage(directory)
    files, most = len(os.listdir("/proc/self/fd")), resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return {
        "memory": Use(pages * os.sysconf("SC_PAGE_SIZE") / MB, machine.available() / MB),
        "files": Use(files, (most if most != resource.RLIM_INFINITY else float("inf")) - files),
        "disk": Use(disk.used / MB, disk.free / MB),
    }


UPDATING, MEASURING, SAVING = "update", "measure", "save"
FEWEST = 2
"""Steps of a trial that count."""


class StepClock:
    """
    Args:
        limit_s: seconds of updates, after the first, which warms up, that end a trial; 0: none.
        now: a clock that never goes back, in seconds.
        after: called after each part, such as to read a meter.
    """

    def __init__(
        self,
        limit_s: float = 0.0,
        now: Callable[[], float] = time.perf_counter,
        after: Callable[[], None] = lambda: None,
    ):
        self._limit, self._now, self._after = limit_s, now, after
        self.seconds: dict[str, list[float]] = defaultdict(list)
        """Of every time that a part was done, by its name."""

    @contextmanager
    def timed(self, part: str) -> Iterator[None]:
        start = self._now()
        yield
        self.seconds[part].append(self._now() - start)
        self._after()

    @property
    def counted(self) -> list[float]:
        """Seconds of the updates after the first; of a run of one step, of that."""
        updates = self.seconds[UPDATING]
        return updates[1:] or updates

    def over(self) -> bool:
        """Whether a trial has seen enough; the same on all ranks, which all ask."""
        if not self._limit:
            return False
        return any_rank(len(self.seconds[UPDATING]) > FEWEST and sum(self.counted) >= self._limit)


COUNTERS = Path("/sys/class/powercap")


class EnergyMeter:
    """Energy since it was created: packages of the processor by their counters (RAPL), GPUs by their power draw.

    `sample` reads the power of GPUs while they work; the counters are read at both ends.

    Args:
        counters: folder of the kernel's powercap zones.
        now: a clock in seconds.
    """

    def __init__(self, counters: Path = COUNTERS, now: Callable[[], float] = time.perf_counter):
        self._zones, self._now = sorted(counters.glob("*rapl:?")), now
        self._start, self._first = now(), self._read()
        self._watts: list[float] = []

    def sample(self) -> None:
        """Read the power of every GPU."""
        if (watts := gpu_watts()) is not None:
            self._watts.append(watts)

    def kilowatts(self) -> dict[str, float]:
        """Mean power by part, in kW; only parts that can be read."""
        seconds, found = self._now() - self._start, {}
        last = self._read()
        if self._first is not None and last is not None and seconds > 0:
            used = [after - before for before, after in zip(self._first, last, strict=True)]
            if min(used) >= 0:  # A counter that has started over says nothing.
                found["processor"] = sum(used) / 1e6 / seconds / 1e3
        if self._watts:
            found["GPUs"] = fmean(self._watts) / 1e3
        return found

    def _read(self) -> list[int] | None:
        """Microjoules of each package; None if they cannot be read, as for anyone but root."""
        try:
            return [int((zone / "energy_uj").read_text()) for zone in self._zones] or None
        except (OSError, ValueError):
            return None


def gpu_watts() -> float | None:
    """The power of all GPUs together; None without one, or without NVIDIA's library (`pip install nvidia-ml-py`)."""
    if not torch.cuda.is_available() or find_spec("pynvml") is None:
        return None
    try:
        return sum(torch.cuda.power_draw(index) for index in range(torch.cuda.device_count())) / 1e3
    except (RuntimeError, import_module("pynvml").NVMLError):  # A device, or a share of one, that tells no power.
        return None
