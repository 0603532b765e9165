"""What can be wrong between a verdict and an advantage: a reward without information, or a reward that contradicts the
verifier; groups with nothing to compare."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from statistics import fmean

from rlvr_exp.records.rollout_files import RolloutRow
from rlvr_exp.report.evidence import Evidence, Share, Trend, beginning, onset, recent, share, some, trend
from rlvr_exp.report.finding import Finding, Weight, weigh
from rlvr_exp.report.step_counts import EQUAL, StepCounts

CONSTANT, INVERTED, DEAD, REVERSED = (0.6, 0.3), (0.4, 0.15), (0.9, 0.75), (0.6, 0.4)
"""(blocks, holds back): shares of groups, by the low end of their interval. Four groups and all of them are 0.51."""
SMALL, DEAD_OF_FEW = 4, 0.6
"""Groups of fewer members have zero variance for that reason alone: the share of those that then holds back."""
NOISY = (0.4, 0.1)
"""The same for answers that occur more than once in a group."""
FEW = 3
"""Mixed groups from which on a result common to all is trusted, though an interval of so few is wide."""
GAIN = 0.25
"""Part of the value of a pass that a reward must have gained without success to be suspicious."""
ONE_ANSWER = 0.6
"""Share of the passes that a single text has, over several tasks, to be suspicious."""
TASKS = 5
SOLVED = 0.9
"""Share of passes, by the low end, from the first step on, that leaves nothing to learn."""
HARDER = (
    "Harder tasks; what is left to learn is in those that are not always solved (algorithm.zero_variance=resample). "
    "Where all pass from the first step, see whether the verifier is strict: +stage=validate."
)


def rewarding(seen: Evidence) -> Iterator[Finding]:
    yield from _constant(seen)
    yield from _noisy(seen)
    yield from (list(_reversed(seen)) or _hacked(seen))
    yield from _one_answer(seen)
    yield from _dead(seen)
    yield from _advantages(seen)


def _constant(seen: Evidence) -> Iterator[Finding]:
    """Right answers get the reward of the best wrong ones, or all get the same."""
    same = share(seen.step_counts, lambda one: one.mixed_equal + one.mixed_blind, "mixed")
    blind, apart = sum(one.mixed_blind for one in seen.step_counts), _one_value(seen)
    weight = _of_mixed_share(same, CONSTANT)
    if weight is None and not apart.of:
        return
    fact = f"{apart} completions are paid the same, passed or failed"
    if weight is not None:
        paid = "right answers are paid no more than the best paid wrong one" if blind else "all are paid the same"
        fact = f"in {same} groups with right and wrong answers {paid}"
    yield Finding(
        "reward_blind" if blind else "constant_reward",
        f"{'The reward does not tell right from wrong' if blind else 'Constant reward'}: {fact}",
        "The verifier tells the answers apart and the reward does not, so no right answer is better than a wrong one.",
        "Look at the weights of reward.terms and at reward.normalizer; an own reward must read the verdict.",
        weight or Weight.BLOCKS,
        onset(seen.step_counts, lambda one: one.mixed_equal + one.mixed_blind, CONSTANT[1], "mixed"),
        _of_mixed(seen.rollouts, lambda right, wrong: max(right) - max(wrong) <= EQUAL),
    )


def _of_mixed_share(found: Share, borders: tuple[float, float]) -> Weight | None:
    """Where so few groups have a wide interval, a result common to all of them is trusted."""
    return weigh(found.low, *borders) or (Weight.BLOCKS if found.of >= FEW and found.count == found.of else None)


def _reversed(seen: Evidence) -> Iterator[Finding]:
    found = share(seen.step_counts, lambda one: one.mixed_reversed, "mixed")
    weight = _of_mixed_share(found, REVERSED)
    if weight is not None:
        yield Finding(
            "reward_inverted",
            f"The reward is upside down: in {found} groups every wrong answer is paid more than every right one",
            "What is learned is to be wrong.",
            "Turn the sign of the term that pays wrong answers; passing has to outweigh all other terms.",
            weight,
            0,
            _of_mixed(seen.rollouts, lambda right, wrong: max(right) < min(wrong) - EQUAL),
        )


def _noisy(seen: Evidence) -> Iterator[Finding]:
    """Equal answers to a task in a step, with equal verdicts, get different rewards."""
    paid: dict[tuple, list[RolloutRow]] = defaultdict(list)
    for row in seen.rollouts:
        if row.reward is not None and not row.waited:
            text, tokens = row.completion.text, row.completion.tokens
            paid[row.step, row.group, text, tokens, row.verdict.outcome].append(row)
    repeated = [rows for rows in paid.values() if len(rows) > 1]
    torn = [rows for rows in repeated if _spread([row.reward for row in rows]) > EQUAL]
    found = Share(len(torn), len(repeated))
    weight = weigh(found.low, *NOISY)
    if weight is not None and found.count >= FEW:
        yield Finding(
            "reward_noise",
            f"The reward is noise: {found} answers given more than once in a group, judged alike, are paid differently",
            "The same text with the same verdict is worth more one time than another: what is learned from is chance.",
            "Look for random numbers, times and state in the terms of the reward.",
            weight,
            0,
            tuple(torn[0][:2] + [rows[0] for rows in torn[1:2]]),
        )


def _one_value(seen: Evidence) -> Share:
    """Completions that share the run's only reward, where some passed and some failed; none where rewards differ."""
    paid = [row for row in seen.rollouts if row.reward is not None]
    if len({row.completion.correct for row in paid}) < 2 or _spread([row.reward for row in paid]) > EQUAL:
        return Share(0, 0)
    return Share(len(paid), len(paid))


def _hacked(seen: Evidence) -> Iterator[Finding]:
    """Wrong answers get the reward of right ones, or the reward rises and success does not."""
    inverted = share(seen.step_counts, lambda one: one.mixed_inverted, "mixed")
    weight = _of_mixed_share(inverted, INVERTED)
    reward, success = (trend(seen.step_counts, read) for read in (_rewards, _successes))
    risen = _rises_alone(seen, reward, success)
    if weight is None and not risen:
        return
    facts = []
    if risen and reward and success:
        facts.append(
            f"Reward went from {reward.first:.3g} to {reward.last:.3g}, verified success from {success.first:.1%} to "
            f"{success.last:.1%}.{_terms(seen.rollouts)}"
        )
    if weight is not None:
        facts.append(
            f"In {inverted} groups with right and wrong answers the wrong ones are paid at least as much on average."
        )
    title = (
        "the reward rises and verified success does not"
        if risen
        else f"wrong answers out-earn right ones in {inverted} groups"
    )
    yield Finding(
        "reward_hacking",
        f"Reward hacking suspected: {title}",
        " ".join(facts),
        "Read the best paid samples that failed, take out or cap the term that pays them, and let passing outweigh "
        "all other terms.",
        Weight.BLOCKS if risen else weight or Weight.HOLDS_BACK,
        0 if weight is not None else onset_of_rise(seen.step_counts),
        _best_paid_failures(seen.rollouts),
    )


def _rewards(one: StepCounts) -> Sequence[float]:
    return one.group_reward


def _successes(one: StepCounts) -> Sequence[float]:
    return one.group_success


def _rises_alone(seen: Evidence, reward: Trend | None, success: Trend | None) -> bool:
    if reward is None or success is None or not reward.rose or success.rise > success.error:
        return False
    worth = _worth_of_a_pass(seen) or max(abs(reward.first), abs(reward.last))
    return reward.rise > GAIN * worth


def _worth_of_a_pass(seen: Evidence) -> float | None:
    """What passing adds to a reward on average, or by the weights of the terms; None where neither is known."""
    right, wrong = ([row.reward for row in seen.rollouts if row.reward is not None and row.completion.correct is passed]
                    for passed in (True, False))  # fmt: skip
    if right and wrong and fmean(right) > fmean(wrong):
        return fmean(right) - fmean(wrong)
    weight = seen.option("reward.terms.all_passed.weight")
    return float(weight) if weight else None


def onset_of_rise(step_counts: Sequence[StepCounts]) -> int:
    """The first step whose reward has made half of the total rise."""
    means = [(one.step, fmean(one.group_reward)) for one in step_counts if one.group_reward]
    if not means:
        return 0
    half = (means[0][1] + means[-1][1]) / 2
    return next((step for step, mean in means if mean >= half), means[-1][0])


def _terms(rows: Sequence[RolloutRow]) -> str:
    """Which terms of the reward rose most, between the first and the last rows."""
    paid = [row for row in rows if row.terms]
    if len(paid) < 2:
        return ""
    third = max(1, len(paid) // 3)
    first, last = ({name: fmean(row.terms.get(name, 0.0) for row in part) for name in paid[0].terms}
                   for part in (paid[:third], paid[-third:]))  # fmt: skip
    rises = sorted(((last[name] - first[name], name) for name in first), reverse=True)[:2]
    return " By term: " + ", ".join(f"{name} {rise:+.3g}" for rise, name in rises) + "."


def _best_paid_failures(rows: Sequence[RolloutRow]) -> tuple[RolloutRow, ...]:
    failed = [row for row in rows if row.reward is not None and not row.completion.correct]
    return some(sorted(failed, key=lambda row: (-(row.reward or 0.0), -row.step))[:50])


def _one_answer(seen: Evidence) -> Iterator[Finding]:
    """A text passes many tasks, though it is wrong for some or empty: the verifier can be fooled."""
    passes = [row for row in seen.samples if row.completion.correct]
    odd = [row for row in passes if not row.completion.text.strip() or row.verdict.passed < row.verdict.total]
    texts: dict[str, set[str]] = defaultdict(set)
    for row in passes:
        texts[row.completion.text].add(row.completion.task.id)
    common = max(texts, key=lambda text: len(texts[text]), default="")
    every = {row.completion.task.id for row in seen.samples}
    alone = Share(len(texts.get(common, ())), len(every))
    if len(texts.get(common, ())) >= TASKS and alone.low > ONE_ANSWER:
        yield Finding(
            "one_answer",
            f"Reward hacking suspected: one answer passes {alone} tasks",
            "Tasks that differ have answers that differ; a text that passes nearly all of them has found a hole in "
            "the verifier, or "
            "the tasks are all one.",
            "Judge the text by hand (+stage=verify), and +stage=validate: its hollow programs must not pass.",
            Weight.BLOCKS,
            min(row.step for row in passes if row.completion.text == common),
            some(row for row in passes if row.completion.text == common),
        )
    elif Share(len(odd), len(passes)).low > 0.05:
        yield Finding(
            "one_answer",
            f"Reward hacking suspected: {Share(len(odd), len(passes))} passes are empty or missed some of their cases",
            "A pass means all cases; these did not meet them.",
            "Verify the samples by hand (+stage=verify), and look at the verifier.",
            Weight.BLOCKS,
            min(row.step for row in odd),
            some(odd),
        )


def _dead(seen: Evidence) -> Iterator[Finding]:
    last = recent(seen.step_counts, "groups")
    dead = share(last, lambda one: one.dead_failed + one.dead_solved, "groups")
    failed, solved = (
        share(last, count, "groups") for count in (lambda one: one.dead_failed, lambda one: one.dead_solved)
    )
    small = int(seen.option("algorithm.group_size", SMALL) or SMALL) < SMALL
    weight = weigh(dead.low, DEAD[0], DEAD_OF_FEW if small else DEAD[1])
    if weight is None:
        yield from _solved_before(seen)
        return
    begun = onset(seen.step_counts, lambda one: one.dead_failed + one.dead_solved, DEAD[1], "groups")
    if failed.count >= solved.count:
        yield Finding(
            "dead_failed",
            f"Dead groups: in {failed} groups all answers fail and are paid the same",
            f"A group without a difference has no advantage. All failed {failed}, all solved {solved}.",
            "Easier tasks (curriculum=ordered, data.path), more draws for each "
            f"(algorithm.group_size={seen.option('algorithm.group_size')} now), supervised steps first (+stage=sft), "
            "or a reward that tells near misses apart.",
            weight,
            begun,
            some(row for row in seen.rollouts if row.verdict.outcome not in ("passed", "no_verdict")),
        )
    else:
        yield Finding(
            "dead_solved",
            f"Dead groups: in {solved} groups all answers pass",
            f"A group without a difference has no advantage. All solved {solved}, all failed {failed}.",
            HARDER,
            weight,
            begun,
            some(row for row in seen.rollouts if row.completion.correct),
        )


def _solved_before(seen: Evidence) -> Iterator[Finding]:
    """Nearly everything passes, from the first step to the last."""
    ends = beginning(seen.step_counts), recent(seen.step_counts)
    first, last = (share(part, lambda one: one.met("passed")) for part in ends)
    if min(first.low, last.low) >= SOLVED:
        yield Finding(
            "dead_solved",
            f"Nothing is left to learn: {first} completions of the first step pass, {last} of the last ones",
            "Nearly every group has nothing to compare.",
            HARDER,
            Weight.HOLDS_BACK,
            0,
            some(row for row in seen.rollouts if row.completion.correct),
        )


def _advantages(seen: Evidence) -> Iterator[Finding]:
    """Advantages point away from the reward, or are all zero where rewards differ."""
    groups: dict[tuple[int, int], list[RolloutRow]] = defaultdict(list)
    for row in seen.rollouts:
        if row.reward is not None and row.advantage is not None:
            groups[row.step, row.group].append(row)
    live = [rows for rows in groups.values() if len(rows) > 1 and _spread([row.reward for row in rows]) > EQUAL]
    zero = Share(sum(all(not row.advantage for row in rows) for rows in live), len(live))
    wrong = Share(sum(_moves_oppositely(rows) for rows in live), len(live))
    found, what = max(((zero, "are zero"), (wrong, "point against the reward")), key=lambda pair: pair[0].low)
    weight = weigh(found.low, 0.5, 0.3)
    if weight is not None:
        yield Finding(
            "advantages",
            f"Advantages {what} in {found} groups with differing rewards",
            "The update does not follow what was paid.",
            "Look at the algorithm's own advantages, and at algorithm.advantage_scale.",
            weight,
            0,
            some(live[0]),
        )


def _moves_oppositely(rows: Sequence[RolloutRow]) -> bool:
    """Reward and advantage move oppositely within a group."""
    mean = fmean(row.reward or 0.0 for row in rows)
    return sum(((row.reward or 0.0) - mean) * (row.advantage or 0.0) for row in rows) < -EQUAL * EQUAL


def _of_mixed(rows: Sequence[RolloutRow], holds: Callable[..., bool]) -> tuple[RolloutRow, ...]:
    """Rows of a group with right and wrong answers whose rewards meet a condition: a right and a wrong one first."""
    groups: dict[tuple[int, int], list[RolloutRow]] = defaultdict(list)
    for row in rows:
        if row.reward is not None:
            groups[row.step, row.group].append(row)
    for group in groups.values():
        right, wrong = ([row for row in group if row.completion.correct is passed] for passed in (True, False))
        if right and wrong and holds([row.reward for row in right], [row.reward for row in wrong]):
            return (right[0], *wrong[:1], *right[1:2], *wrong[1:2])[:3]
    return ()


def _spread(values: Sequence[float | None]) -> float:
    known = [value for value in values if value is not None]
    return max(known) - min(known) if known else 0.0
