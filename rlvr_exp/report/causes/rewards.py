"""Causes between a verdict and an advantage: rewards without information or against the verifier, groups without a difference."""

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from statistics import fmean

from rlvr_exp.config.algorithm import EQUAL_REWARDS
from rlvr_exp.records.rollout_files import RolloutRow
from rlvr_exp.report.cause import Cause, Sign, Weight, weigh
from rlvr_exp.report.causes.proposals import easier, fixed, larger_groups, signal, simple_reward, together
from rlvr_exp.report.data import StepCounts
from rlvr_exp.report.evidence import Evidence, Share, beginning, halfway, onset, recent, share, trend

CONSTANT, INVERTED, DEAD = (0.6, 0.3), (0.4, 0.15), (0.9, 0.75)
"""(blocks, holds back): shares of groups. Four groups and all of them are 0.51."""
SMALL, DEAD_OF_FEW = 4, 0.5
"""Groups of fewer members have zero variance for that reason alone: the share of those that then holds back."""
FEW = 3
"""Mixed groups from which on a result common to all is trusted, though an interval of so few is wide."""
GAIN = 0.25
"""Part of the value of a pass that a reward must have gained without success to be suspicious."""
JITTER = 0.1
"""Part of the value of a pass by which equal answers may be paid differently: less than that drowns nothing."""
ONE_ANSWER, TASKS, ODD = 0.6, 5, 0.05
"""Share of the passes that a single text has, over several tasks, to be suspicious; of passes that missed cases."""
MANY_SAMPLES = 64
"""Samples that can show a common sign of advantages."""
MISLED = 0.2
"""Size of the advantages with the wrong sign, as a part of the others, from which on they mislead."""
SOLVED = 0.9
"""Share of passes, by the low end, from the first step on, that leaves nothing to learn."""
READS_VERDICT = "Or check the weights of the reward's terms. A custom reward must read the verdict."
HARDER = "Use harder tasks. If all answers pass from the first step, check the verifier with +stage=validate."
EASIER = "Use easier tasks, imitate answers first (+stage=sft), or use a reward that distinguishes failures."


def _not_finite(seen: Evidence) -> Sign | None:
    rows = [int(row["step"] or 0) for row in seen.metrics if "reward/mean" in row and row["reward/mean"] is None]
    skipped = [(step, value) for step, value in seen.column("guard/reward") if value]
    if not rows and not skipped:
        return None
    first = min([*rows, *(step for step, _ in skipped)])
    facts = {"first": first, "rows": len(rows), "skipped": sum(value for _, value in skipped)}
    shown = [row for row in seen.rollouts if row.step >= first]
    return Sign(weight=Weight.BLOCKS, onset=first if first > 1 else 0, rows=shown, facts=facts)


def _same_pay(blind: bool) -> Callable[[Evidence], Sign | None]:
    """Right answers get the reward of wrong ones: all the same, or `blind`, in some groups that of the best wrong one."""

    def measure(seen: Evidence) -> Sign | None:
        same, only = share(seen.step_counts, _untold, "mixed"), _only_reward(seen)
        weight = _of_mixed(same, CONSTANT)
        if any(one.mixed_blind for one in seen.step_counts) is not blind or (weight is None and not only.of):
            return None
        fact = f"{only} completions, passed or failed, have the same reward"
        if weight is not None:
            paid = "correct answers earn no more than the best wrong one" if blind else "all rewards are equal"
            fact = f"in {same} groups with correct and wrong answers {paid}"
        rows = _rows_of_mixed(seen.rollouts, lambda right, wrong: max(right) - max(wrong) <= EQUAL_REWARDS)
        begun = onset(seen.step_counts, _untold, CONSTANT[1], "mixed")
        return Sign(same, weight or Weight.BLOCKS, begun, rows, {"fact": fact})

    return measure


def _untold(one: StepCounts) -> int:
    return one.mixed_equal + one.mixed_blind


def _of_mixed(found: Share, levels: tuple[float, float]) -> Weight | None:
    """Where so few groups have a wide interval, a result common to all of them is trusted."""
    return weigh(Sign(found), *levels) or (Weight.BLOCKS if found.of >= FEW and found.count == found.of else None)


def _only_reward(seen: Evidence) -> Share:
    """Completions that share the run's only reward, if some passed and some failed. None if rewards differ."""
    paid = [row for row in seen.rollouts if row.reward is not None]
    if len({row.completion.correct for row in paid}) < 2 or _spread([row.reward for row in paid]) > EQUAL_REWARDS:
        return Share(0, 0)
    return Share(len(paid), len(paid))


def _reversed(seen: Evidence) -> Sign | None:
    found = share(seen.step_counts, lambda one: one.mixed_reversed, "mixed")
    rows = _rows_of_mixed(seen.rollouts, lambda right, wrong: max(right) < min(wrong) - EQUAL_REWARDS)
    weight = _of_mixed(found, (0.6, 0.4))
    return Sign(found, weight, rows=rows) if weight else None


def _noisy(seen: Evidence) -> Sign | None:
    """Equal answers to a task in a step, with equal verdicts, get different rewards."""
    paid: dict[tuple, list[RolloutRow]] = defaultdict(list)
    for row in seen.rollouts:
        if row.reward is not None and not row.waited:
            text, tokens = row.completion.text, row.completion.tokens
            paid[row.step, row.group, text, tokens, row.verdict.outcome].append(row)
    repeated = [rows for rows in paid.values() if len(rows) > 1]
    least = max(EQUAL_REWARDS, JITTER * (_worth_of_a_pass(seen) or 0.0))
    torn = [rows for rows in repeated if _spread([row.reward for row in rows]) > least]
    if len(torn) < FEW:
        return None
    return Sign(Share(len(torn), len(repeated)), rows=torn[0][:2] + [rows[0] for rows in torn[1:2]])


def _rises_alone(seen: Evidence) -> Sign | None:
    """The reward rises and success does not."""
    if not seen.comparable:
        return None
    reward, success = (trend(seen.step_counts, read) for read in (_rewards, _successes))
    if reward is None or success is None or not reward.rose or success.rise > success.error:
        return None
    worth = _worth_of_a_pass(seen) or max(abs(reward.first), abs(reward.last))
    if reward.rise <= GAIN * worth:
        return None
    begun = 0 if _out_earned(seen) else halfway(seen.step_counts, _rewards)
    facts = {"reward": reward, "success": success, "terms": _terms(seen.rollouts)}
    return Sign(weight=Weight.BLOCKS, onset=begun, rows=_best_paid_failures(seen.rollouts), facts=facts)


def _out_earned(seen: Evidence) -> Sign | None:
    """Wrong answers get the reward of right ones."""
    inverted = share(seen.step_counts, lambda one: one.mixed_inverted, "mixed")
    weight = _of_mixed(inverted, INVERTED)
    return Sign(inverted, weight, rows=_best_paid_failures(seen.rollouts)) if weight else None


def _rewards(one: StepCounts) -> Sequence[float]:
    return one.group_reward


def _successes(one: StepCounts) -> Sequence[float]:
    return one.group_success


def _worth_of_a_pass(seen: Evidence) -> float | None:
    """What passing adds to a reward on average, or by the weights of the terms; None if neither is known."""
    right, wrong = ([row.reward for row in seen.rollouts if row.reward is not None and row.completion.correct is passed]
                    for passed in (True, False))  # fmt: skip
    if right and wrong and fmean(right) > fmean(wrong):
        return fmean(right) - fmean(wrong)
    weight = seen.option("reward.terms.all_passed.weight")
    return float(weight) if weight else None


def _terms(rows: Sequence[RolloutRow]) -> str:
    """Which terms of the reward rose most, between the first and the last rows."""
    paid = [row for row in rows if row.terms]
    if len(paid) < 2:
        return ""
    third = max(1, len(paid) // 3)
    first, last = ({name: fmean(row.terms.get(name, 0.0) for row in part) for name in paid[0].terms}
                   for part in (paid[:third], paid[-third:]))  # fmt: skip
    rises = sorted(((last[name] - first[name], name) for name in first), reverse=True)[:2]
    return "By term: " + ", ".join(f"{name} {rise:+.3g}" for rise, name in rises) + "."


def _best_paid_failures(rows: Sequence[RolloutRow]) -> list[RolloutRow]:
    failed = [row for row in rows if row.reward is not None and not row.completion.correct]
    return sorted(failed, key=lambda row: (-(row.reward or 0.0), -row.step))[:50]


def _one_answer(seen: Evidence) -> Sign | None:
    """A text passes many tasks, though they have answers that differ: the verifier can be fooled."""
    passes = [row for row in seen.samples if row.completion.correct]
    texts: dict[str, set[str]] = defaultdict(set)
    for row in passes:
        texts[row.completion.text].add(row.completion.task.id)
    common = max(texts, key=lambda text: len(texts[text]), default="")
    alone = Share(len(texts.get(common, ())), len({row.completion.task.id for row in seen.samples}))
    if alone.count < TASKS or alone.low <= ONE_ANSWER:
        return None
    rows = [row for row in passes if row.completion.text == common]
    return Sign(alone, Weight.BLOCKS, min(row.step for row in rows), rows)


def _odd_passes(seen: Evidence) -> Sign | None:
    passes = [row for row in seen.samples if row.completion.correct]
    odd = [row for row in passes if not row.completion.text.strip() or row.verdict.passed < row.verdict.total]
    if Share(len(odd), len(passes)).low <= ODD:
        return None
    return Sign(Share(len(odd), len(passes)), Weight.BLOCKS, min(row.step for row in odd), odd)


def _dead(solved: bool) -> Callable[[Evidence], Sign | None]:
    """Groups whose rewards are all equal: because all answers pass, or because none does, whichever is more."""

    def measure(seen: Evidence) -> Sign | None:
        last, one_kind = recent(seen.step_counts, "groups"), lambda one: one.dead_solved if solved else one.dead_failed
        dead, own = (share(last, count, "groups") for count in (_dead_of, one_kind))
        size = round(sum(one.samples for one in last) / max(1, sum(one.groups for one in last)))
        weight = weigh(Sign(dead), DEAD[0], DEAD_OF_FEW if size < SMALL else DEAD[1])
        if weight is None or (own.count * 2 < dead.count if not solved else own.count * 2 <= dead.count):
            return None
        begun = onset(seen.step_counts, _dead_of, DEAD[1], "groups")
        rows = [
            row for row in seen.rollouts if row.verdict.outcome != "no_verdict" and row.completion.correct is solved
        ]
        few = (
            f"In groups of {size}, answers seldom differ. Larger groups contain rare outcomes." if size < SMALL else ""
        )
        return Sign(own, weight, begun, rows, {"dead": dead, "few": few, "size": size})

    return measure


def _dead_of(one: StepCounts) -> int:
    return one.dead_failed + one.dead_solved


def _solved_before(seen: Evidence) -> Sign | None:
    """Nearly everything passes, from the first step to the last."""
    ends = beginning(seen.step_counts), recent(seen.step_counts)
    first, last = (share(part, lambda one: one.met("passed")) for part in ends)
    rows = [row for row in seen.rollouts if row.completion.correct]
    found = share(seen.step_counts, lambda one: one.met("passed"))
    if min(first.value, last.value) < SOLVED:
        return None
    return Sign(found, rows=rows, facts={"first": first, "last": last})


def _few_mixed(seen: Evidence) -> Sign | None:
    """Most groups have only correct or only wrong answers, and few pass: rewards differ for another reason."""
    apart = share(recent(seen.step_counts, "groups"), _unmixed, "groups")
    passed = share(seen.step_counts, lambda one: one.met("passed"))
    if passed.high > 0.5:
        return None
    rows = [row for row in seen.rollouts if not row.completion.correct]
    facts = {"passed": passed, "mixed": apart.of - apart.count}
    return Sign(apart, None, lambda least: onset(seen.step_counts, _unmixed, least, "groups"), rows, facts)


def _unmixed(one: StepCounts) -> int:
    return one.groups - one.mixed


def _advantages(seen: Evidence) -> Sign:
    """Advantages point away from the reward, or are all zero although rewards differ. A teacher may be in their place."""
    taught = not math.isnan(seen.ends("distill/taught")[1])
    groups: dict[tuple[int, int], list[RolloutRow]] = defaultdict(list)
    for row in seen.rollouts:
        if row.reward is not None and row.advantage is not None:
            groups[row.step, row.group].append(row)
    live = [rows for rows in groups.values() if len(rows) > 1 and _spread([row.reward for row in rows]) > EQUAL_REWARDS]
    zero = Share(sum(all(not row.advantage for row in rows) for rows in live if not taught), len(live))
    wrong = Share(sum(_moves_oppositely(rows) for rows in live), len(live))
    found, what = max(((zero, "are zero"), (wrong, "oppose the reward")), key=lambda pair: pair[0].low)
    return Sign(found, rows=live[0] if live else (), facts={"what": what})


def _one_sign(seen: Evidence) -> Sign | None:
    """All advantages are positive, or all negative, right and wrong answers alike."""
    if not math.isnan(seen.ends("distill/taught")[1]) or seen.class_of("algorithm") == "SSD":
        return None
    rows = [row for row in seen.rollouts if row.advantage and not row.waited]
    positive = Share(sum((row.advantage or 0.0) > 0 for row in rows), len(rows))
    negative = Share(len(rows) - positive.count, len(rows))
    found = max(positive, negative, key=lambda one: one.count)
    # Positive ones of right answers alone are imitation of what passed.
    misled, led = (
        [abs(row.advantage or 0.0) for row in rows if row.completion.correct is wrong]
        for wrong in (found is negative, found is positive)
    )
    if len(rows) < MANY_SAMPLES or len(misled) < len(rows) / 10 or (led and fmean(misled) < MISLED * fmean(led)):
        return None
    sign, effect = ("positive", "more") if found is positive else ("negative", "less")
    return Sign(found, rows=rows, facts={"sign": sign, "effect": effect})


def _moves_oppositely(rows: Sequence[RolloutRow]) -> bool:
    """Reward and advantage move oppositely within a group."""
    mean = fmean(row.reward or 0.0 for row in rows)
    return sum(((row.reward or 0.0) - mean) * (row.advantage or 0.0) for row in rows) < -EQUAL_REWARDS * EQUAL_REWARDS


def _rows_of_mixed(rows: Sequence[RolloutRow], holds: Callable[..., bool]) -> tuple[RolloutRow, ...]:
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


ONE_ANSWER_PASSES = Cause("one_answer", _one_answer,
    "Possible reward hacking: one answer passes {share} tasks",
    "Different tasks need different answers. A text that passes nearly all of them exploits a hole in the verifier, or "
    "the tasks are all the same.",
    "Judge the text by hand (+stage=verify). Run +stage=validate, whose trivial programs must not pass.",
    explains=("dead_solved", "other_tasks"), later=3, doubts=True)  # fmt: skip
ODD_PASSES = Cause("one_answer", _odd_passes,
    "Possible reward hacking: {share} passes are empty or failed some of their cases",
    "A pass requires all cases.",
    "Verify the samples by hand (+stage=verify), and check the verifier.", later=3, doubts=True)  # fmt: skip
CAP = "Read the failed samples with the highest reward. Passing must outweigh all other terms."

OF_REWARDS = (
    Cause("reward_not_finite", _not_finite,
        "Non-finite rewards, first in step {first}",
        "{rows} rows have no mean reward, and {skipped:.0f} updates were skipped for this reason.",
        "Check the reward terms in the rollouts of that step.", simple_reward, later=1),
    Cause("constant_reward", _same_pay(blind=False),
        "Constant reward: {fact}",
        "The verifier distinguishes the answers and the reward does not, so no correct answer is better than a wrong one.",
        READS_VERDICT, simple_reward, explains=("dead_solved", "dead_failed", "kl_holds", "unmoved", "no_gradient")),
    Cause("reward_blind", _same_pay(blind=True),
        "The reward does not distinguish correct from wrong answers: {fact}",
        "The verifier distinguishes the answers and the reward does not, so no correct answer is better than a wrong one.",
        READS_VERDICT, simple_reward, explains=("reward_hacking", "dead_solved", "dead_failed")),
    Cause("reward_inverted", _reversed,
        "Inverted reward: in {share} groups every wrong answer earns more than every correct one",
        "The policy learns wrong answers.",
        "Or change the sign of the term that rewards wrong answers. Passing must outweigh all other terms.", simple_reward,
        explains=("reward_hacking", "exploding", "worse")),
    Cause("reward_noise", _noisy,
        "Noisy reward: {share} repeated answers with the same verdict have different rewards",
        "The same text with the same verdict earns more one time than another, so the policy learns from chance.",
        "Or look for random numbers, times and state in the reward's terms.",
        simple_reward, (0.4, 0.1), explains=("reward_hacking", "reward_inverted", "worse")),
    Cause("reward_hacking", _rises_alone,
        "Possible reward hacking: the reward rises and verified success does not",
        "Reward went from {reward.first:.3g} to {reward.last:.3g}, verified success from {success.first:.1%} to "
        "{success.last:.1%}. {terms}",
        CAP, simple_reward, later=4),
    Cause("reward_hacking", _out_earned,
        "Possible reward hacking: wrong answers earn at least as much as correct ones in {share} groups",
        "In these groups with correct and wrong answers, the mean reward of wrong answers is at least as high.",
        CAP, simple_reward, explains=("worse",), later=4),
    Cause("dead_failed", _dead(solved=False),
        "Dead groups: in {share} groups of {size} all answers fail with the same reward",
        "A group with equal rewards has no advantage: {dead} groups. {few}",
        EASIER, together(larger_groups, signal, easier), explains=("few_mixed", "no_gradient")),
    Cause("dead_solved", _dead(solved=True),
        "Dead groups: in {share} groups of {size} all answers pass",
        "A group with equal rewards has no advantage: {dead} groups. {few}",
        HARDER, together(signal, larger_groups), explains=("few_mixed", "no_gradient")),
    Cause("dead_solved", _solved_before,
        "Nothing left to learn: {first} completions of the first step and {last} of the last steps pass",
        "Almost every group has equal rewards.",
        HARDER, signal, (2.0, SOLVED)),
    Cause("few_mixed", _few_mixed,
        "Few mixed groups: {share} groups contain only correct or only wrong answers",
        "The policy can learn to pass in {mixed} groups only, and {passed} completions pass. In the other groups, rewards "
        "differ for another reason.",
        EASIER, together(larger_groups, easier), (2.0, 0.8), alone=True),
    Cause("advantages", _advantages,
        "Advantages {what} in {share} groups with different rewards",
        "The update does not follow the reward.",
        "Check the algorithm's advantages.", fixed(algorithm__advantage_scale="batch"), (0.5, 0.3)),
    Cause("advantages", _one_sign,
        "Advantages have one sign: {share} samples with an advantage have a {sign} one",
        "Updates make right and wrong answers {effect} probable alike, so most of an update is noise.",
        "Subtract a baseline from the rewards.",
        fixed(algorithm__baseline="group", algorithm__whiten_advantages=True, algorithm__positive_weight=1.0),
        (0.98, 0.95)),
)  # fmt: skip
