"""Repeat a step of a run from its rollouts, for debugging: verify, reward and compare with the logged values.

Verdicts, rewards, advantages and the fate of each sample are recomputed by the same code, and every field that differs
is reported. Earlier steps' rollouts restore the state of the reward's normaliser. Values that need a model (PPO's
values, RLOO's penalty) are not in the rollouts, and are reported as left out. Samples nothing and writes nothing into
the run.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from rlvr_exp.algorithms.base import Algorithm
from rlvr_exp.algorithms.group import GroupAlgorithm
from rlvr_exp.algorithms.rloo import RLOO
from rlvr_exp.config.load import build
from rlvr_exp.config.schema import Config
from rlvr_exp.core.files import write_json, write_text
from rlvr_exp.episodes.types import Completion, RewardBreakdown, TokenSample
from rlvr_exp.records import manifest
from rlvr_exp.records.context import RunContext, StageResult
from rlvr_exp.records.rollout_files import RolloutRow, to_row
from rlvr_exp.records.run_reader import RunReader
from rlvr_exp.rewards.compose import Reward
from rlvr_exp.rollouts.groups import Group, Groups
from rlvr_exp.rollouts.rollout_loop import verified
from rlvr_exp.stages.shared.domain import build_domain
from rlvr_exp.stages.shared.replay_update import UpdateReplay, replay_update
from rlvr_exp.stages.shared.stage_checks import check_replayed
from rlvr_exp.stages.shared.verifier_match import all_tasks, check_verifier_match
from rlvr_exp.stages.shared.verifier_setup import build_verifier, checked_description
from rlvr_exp.tasks.base import Domain, Task
from rlvr_exp.training.rollout_rows import rollout_rows

COMPARED = ("outcome", "bucket", "rule", "passed", "total", "reward", "terms", "advantage", "fate")
"""Fields of a rollout that are recomputed."""
TOLERANCE = 1e-6
"""Relative: rewards are sums of floats, written and read in full."""
WITH_UPDATE = "they are compared where the update is repeated, from a checkpoint before the step"
SHOWN = 20
"""Differences printed for a person; replay.json has all."""


@dataclass(frozen=True)
class FieldDifference:
    """A field of a sample that differs."""

    group: int
    sample: int
    task: str
    field: str
    logged: Any
    now: Any


def run(config: Config, context: RunContext) -> StageResult:
    source, options = RunReader(Path(config.replay.run)), config.replay
    logged = source.step(options.step)
    domain = build_domain(config, context)
    tasks = {task.id: task for task in all_tasks(domain)}
    check_replayed(logged, tasks)
    algorithm: Algorithm = build(config.algorithm, max_completion_tokens=config.model.max_completion_tokens)
    reward: Reward = build(config.reward)
    left_out = left_out_of(algorithm)
    with build_verifier(config) as verifier:
        check_verifier_match(verifier, tasks.values())
        manifest.update(
            context.directory,
            verifier=checked_description(verifier, context),
            input={"run": options.run, "step": options.step},
        )
        context.progress(kind="phase", name="judge", done=0, total=len(logged))
        completions = verified(verifier, [_parsed(row.completion, domain, tasks) for row in logged])
        context.progress(kind="phase", name="judge", done=len(logged), total=len(logged))
        warm(reward, source, options.step)
        groups = groups_of(logged, completions, reward, algorithm)
        experience = algorithm.experience(groups, pad_id=0)
        rows = rollout_rows(groups, experience, algorithm.regularised)
        differences = compared(logged, rows, left_out)
        if options.breakpoint:
            breakpoint()  # The logged rows, the recomputed ones and what computed them are the variables here.
    update = UpdateReplay("", "replay.update=false")
    if options.update:
        update = replay_update(source.directory, options.step, context)
    return _write_result(context, options.step, logged, differences, left_out, update)


def left_out_of(algorithm: Algorithm) -> dict[str, str]:
    """Field -> why it cannot be recomputed from rollouts alone."""
    if not isinstance(algorithm, GroupAlgorithm):
        why = f"advantages come from a value that the rollouts do not hold; {WITH_UPDATE}"
    elif isinstance(algorithm, RLOO) and algorithm.kl_coef:
        why = f"the penalty in the advantages comes from the reference that the rollouts do not hold; {WITH_UPDATE}"
    elif algorithm.unlikeliness:
        why = f"advantages depend on the probabilities of completions, which the rollouts do not hold; {WITH_UPDATE}"
    else:
        return {}
    return {"advantage": why, "fate": why}


def _parsed(logged: Completion, domain: Domain, tasks: dict[str, Task]) -> Completion:
    """With its task and its candidate. Tokens are counted and not known: no advantage here reads them."""
    task, count = tasks[logged.task.id], logged.tokens
    unknown = TokenSample((0,) * count, (0.0,) * count, logged.truncated)
    return replace(logged, task=task, sampled=unknown, candidate=domain.parse(logged.text, task))


def warm(reward: Reward, source: RunReader, step: int) -> None:
    """Restore the normaliser's state before the step from the rewards of earlier steps."""
    for earlier in (number for number in source.files if number < step):
        rows = [row for row in source.step(earlier) if not row.waited and row.reward is not None]
        reward.normalizer([sum(row.terms.values()) for row in rows], [row.completion.task.id for row in rows])


def groups_of(
    rows: Sequence[RolloutRow], completions: Sequence[Completion], reward: Reward, algorithm: Algorithm
) -> Groups:
    """The step's groups before its update."""
    paid = _paid(rows, completions, reward)
    members: dict[int, list[int]] = {}
    for place, row in enumerate(rows):
        members.setdefault(row.group, []).append(place)
    groups = [
        _group(number, *([part[i] for i in places] for part in (rows, completions, paid)), algorithm)
        for number, places in members.items()
    ]
    pending = {number for number, places in members.items() if rows[places[0]].fate == "pending"}
    step = rows[0].step - 1
    filter_ = algorithm.group_filter()
    return Groups(
        step=step,
        batch=tuple(group for number, group in zip(members, groups, strict=True) if number not in pending),
        sampled=tuple(group for group in groups if group.step == step),
        carried_in=tuple(group for group in groups if group.step != step),
        carried_over=tuple(group for number, group in zip(members, groups, strict=True) if number in pending),
        zero_variance={group.id: kind for group in groups if (kind := filter_.zero_variance_kind(group))},
        seconds={},
    )


def _paid(rows: Sequence[RolloutRow], completions: Sequence[Completion], reward: Reward) -> list[RewardBreakdown]:
    """Samples of the step are rewarded together, as in the run; those of earlier steps keep their rewards."""
    fresh = [place for place, row in enumerate(rows) if not row.waited]
    now = dict(zip(fresh, reward([completions[place] for place in fresh]), strict=True))
    return [now[place] if place in now else _kept(row) for place, row in enumerate(rows)]


def _kept(row: RolloutRow) -> RewardBreakdown:
    return RewardBreakdown(row.reward, None if row.reward is None else sum(row.terms.values()), dict(row.terms))


def _group(
    number: int,
    rows: Sequence[RolloutRow],
    completions: Sequence[Completion],
    paid: Sequence[RewardBreakdown],
    algorithm: Algorithm,
) -> Group:
    rewards = algorithm.shaped_group([one.total for one in paid], completions)
    first = rows[0]
    prompts, ids = (first.prompt,) * len(rows), ((0,),) * len(rows)
    return Group(first.step - 1 - first.waited, number, prompts, ids, tuple(completions), tuple(paid), rewards)


def compared(
    logged: Sequence[RolloutRow], now: Sequence[RolloutRow], left_out: dict[str, str]
) -> list[FieldDifference]:
    """Every field that differs, in the order of the file."""
    by_place = {(row["group"], row["sample"]): row for row in map(to_row, now)}
    found = []
    for old in map(to_row, logged):
        group, sample = old["group"], old["sample"]
        new = by_place[group, sample]
        for name in COMPARED:
            if name not in left_out and not _same(old[name], new[name]):
                found.append(FieldDifference(group, sample, old["task"], name, old[name], new[name]))
    return found


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[name], other[name]) for name in one)
    if isinstance(one, float) and isinstance(other, float):
        return abs(one - other) <= TOLERANCE * max(1.0, abs(one), abs(other))
    return one == other


def _write_result(
    context: RunContext,
    step: int,
    logged: Sequence[RolloutRow],
    differences: Sequence[FieldDifference],
    left_out: dict[str, str],
    update: UpdateReplay,
) -> StageResult:
    counts = Counter(one.field for one in differences)
    metrics = {"samples": len(logged), "differences": len(differences) + update.differences}
    metrics |= {"update/samples": update.samples, "update/metrics": len(update.metrics)} if update.checkpoint else {}
    metrics |= {f"differences/{name}": counts[name] for name in COMPARED if name not in left_out}
    text = "\n".join([_text(step, logged, differences, left_out), *_of_update(step, update)])
    data = {"step": step, "metrics": metrics, "left_out": left_out, "update": asdict(update)}
    write_json(context.directory / "replay.json", {**data, "differences": [asdict(one) for one in differences]})
    write_text(context.directory / "replay.md", text + "\n")
    context.progress(kind="note", text=text)
    return StageResult(metrics=metrics)


def _text(
    step: int, logged: Sequence[RolloutRow], differences: Sequence[FieldDifference], left_out: dict[str, str]
) -> str:
    fields = [name for name in COMPARED if name not in left_out]
    head = f"step {step}: {len(logged)} samples recomputed, compared in {', '.join(fields)}: {len(differences)} differ"
    lines = [
        f"  group {one.group} sample {one.sample} ({one.task}): {one.field} was {one.logged!r}, is {one.now!r}"
        for one in differences[:SHOWN]
    ]
    more = [f"  and {len(differences) - SHOWN} more in replay.json"] if len(differences) > SHOWN else []
    why = [f"  not compared: {', '.join(left_out)}: {next(iter(left_out.values()))}"] if left_out else []
    return "\n".join([head, *lines, *more, *why])


def _of_update(step: int, update: UpdateReplay) -> list[str]:
    if not update.checkpoint:
        return [f"the update was not repeated: {update.why}"]
    found = f"{update.samples} samples and {len(update.metrics)} metrics differ"
    head = f"sampled and updated from {Path(update.checkpoint).name} to step {step}: {found}"
    return [head, *(f"  {name} was {old!r}, is {new!r}" for name, (old, new) in list(update.metrics.items())[:SHOWN])]
