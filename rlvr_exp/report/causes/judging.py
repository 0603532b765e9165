"""Causes between a completion and its advantage: verdicts, rewards, and groups without a difference."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from operator import methodcaller
from statistics import fmean

from rlvr_exp.episodes.types import VERDICT_OF
from rlvr_exp.records.rollout_files import RolloutRow
from rlvr_exp.report.data import EQUAL, StepCounts, is_cheat
from rlvr_exp.report.evidence import (
    Cause,
    Counted,
    Evidence,
    Share,
    Sign,
    Weight,
    beginning,
    halfway,
    onset,
    recent,
    share,
    trend,
    weigh,
)
from rlvr_exp.tasks.completion import syntax_fault, whole_program

SILENT, ALIKE = (0.3, 0.03), (0.8, 0.5)
FEW = 3
"""Contradictions that a busy machine's clock may cause."""
MANY = 200
"""Completions hardly one of which passes that are no bad luck."""
SOLVES, HARDLY = 0.05, 0.01
"""Share of passes, by the high end, below which a policy cannot do what is asked; and below which it learns nothing
from the passes."""
LIMITS = {
    "timeout": "sandbox.cpu_s and sandbox.wall_s",
    "memory": "sandbox.memory_mb",
    "output_limit": "sandbox.output_kb",
    "runtime_error": "the packages that candidates may import (verifier.packages)",
    "resolve": "the names that the prompt gives",
}
"""Buckets that are not about right or wrong, and the options that cause them."""
ENDED = ("timeout", "memory", "output_limit")
"""Of these the ones that end a program before it has answered."""
VALIDATE = "+stage=validate with the same data and verifier looks at all golds."


def _stopped_by_golds(*kinds: str) -> Callable[[Evidence], Sign | None]:
    """The run was stopped before training, because gold answers do not pass: the reason holds their verdicts.

    Args:
        kinds: of the verdict of most of them; none: of any.
    """

    def measure(seen: Evidence) -> Sign | None:
        match = re.search(r"(\d+) of (\d+) gold answers of the [a-z-]+ tasks do not pass", seen.reason)
        met = Counter(re.findall(r"^\S.*?: (?:failed \((\w+)\)|(no_verdict)|(rejected))", seen.reason, re.MULTILINE))
        kind = next(filter(None, met.most_common(1)[0][0])) if met else ""
        if match is None or (kinds and kind not in kinds):
            return None
        facts = {"most": f", most by {kind}" if kind else "", "limit": LIMITS.get(kind, "")}
        return Sign(Share(int(match[1]), int(match[2])), Weight.BLOCKS, facts=facts)

    return measure


def _golds_given(*kinds: str) -> Callable[[Evidence], Sign | None]:
    """Answers that are the gold to the letter, and fail.

    Args:
        kinds: buckets of most of them; none: of any.
    """

    def measure(seen: Evidence) -> Sign | None:
        rows = (row for row in (*seen.rollouts, *seen.measured) if row.verdict.outcome != "no_verdict")
        given = [row for row in rows if not row.completion.truncated and _is_gold(row, seen)]
        failed = [row for row in given if not row.completion.correct]
        if not failed:
            return None
        kind = Counter(row.verdict.bucket or "" for row in failed).most_common(1)[0][0]
        if kinds and kind not in kinds:
            return None
        return Sign(Share(len(failed), len(given)), rows=failed, facts={"kind": kind, "limit": LIMITS.get(kind, "")})

    return measure


def _is_gold(row: RolloutRow, seen: Evidence) -> bool:
    return row.completion.text.strip() == seen.golds.get(row.completion.task.id, "").strip() != ""


def _unparsed(seen: Evidence) -> Sign:
    refused = [row for row in seen.samples if row.verdict.bucket == "parse"]
    fine = Share(sum(is_program(row.completion.text) for row in refused), len(refused))
    programs = fine.low > 0.5
    why, remedy = (
        "",
        "Say the wanted form in the prompt, teach it first (+stage=sft), or start from a model that knows it.",
    )
    if programs:
        why = f"Yet {fine} of those examined are complete programs: it is the parser that refuses them."
        remedy = (
            "Hold three of the samples against what the domain's parser wants (data=...): a fence, a header, an entry "
            "point."
        )
    sign = Counted(methodcaller("met", "parse"), lambda row: row.verdict.bucket == "parse")(seen)
    return Sign(sign.share, onset=sign.onset, rows=refused, facts={"programs": why, "remedy": remedy})


def is_program(text: str) -> bool:
    """Whether a completion contains Python beyond a bare expression."""
    found = whole_program(text).text or ""
    words = re.search(r"^\s*(def|class|import|from|return|for|while|if)\b", found, re.MULTILINE)
    return words is not None and syntax_fault(found) is None


def _never_valid(seen: Evidence) -> Sign | None:
    """No program in the first answers, and no pass since: what updates have made of them since is no better."""
    first = [one for one in (seen.before, *beginning(seen.step_counts)) if one is not None]
    unread = share(first, methodcaller("unread", "parse", "resolve", "truncated"))
    formless = share(first, methodcaller("met", "parse", "resolve"))
    passed = share(seen.series, methodcaller("met", "passed"))
    if not first or passed.high > SOLVES or formless.low < 0.5:
        return None
    rows = [row for row in seen.samples if row.verdict.bucket in ("parse", "resolve")]
    return Sign(unread, rows=rows, facts={"passed": passed})


def _silent(seen: Evidence) -> Sign | None:
    match = re.search(r"verifier \S+: (\d+) of (\d+) requests had no verdict", seen.reason)
    stopped = Share(int(match[1]), int(match[2])) if match else Share(0, 0)
    count = methodcaller("met", "no_verdict")
    found = max(share(recent(seen.series), count), stopped, key=lambda one: one.low)
    sign = Sign(found)
    weight = weigh(sign, *SILENT) or (Weight.BLOCKS if match else None)
    if weight is None:
        return None
    silent = [row for row in seen.samples if row.verdict.outcome == "no_verdict"]
    reasons = Counter(_first_line(row.verdict.log) for row in silent)
    last = re.search(r"Last reason: (.*?)\. Fix the cause", seen.reason, re.DOTALL)
    reason = reasons.most_common(1)[0][0] if reasons else last[1] if last else ""
    facts = {"reason": f"Its reason: {reason[:300]}" if reason else ""}
    return Sign(found, weight, lambda least: onset(seen.series, count, least) if seen.series else 0, silent, facts)


def _rejected(seen: Evidence) -> Sign:
    sign = Counted(lambda one: one.cheats, is_cheat)(seen)
    met = Counter(row.verdict.rule for row in sign.rows if row.verdict.rule)
    rules = ", ".join(f"{rule} {count:,}" for rule, count in met.most_common(4)) or "not recorded"
    return Sign(sign.share, onset=sign.onset, rows=sign.rows, facts={"rules": rules})


def _fail_alike(seen: Evidence) -> Sign | None:
    """Most answers are in a bucket that is not about right or wrong: the environment fails, not the answers."""
    found = {bucket: share(recent(seen.series), methodcaller("met", bucket)) for bucket in LIMITS}
    bucket = max(found, key=lambda name: found[name].low)
    if weigh(Sign(found[bucket]), *ALIKE) is None:
        return None
    rows = [row for row in seen.samples if row.verdict.bucket == bucket]
    lines = Counter(_first_line(row.verdict.log) for row in rows).most_common(1)
    same = f"{lines[0][1]:,} of {len(rows):,} logs say: {lines[0][0][:200]}" if lines else ""
    facts = {"bucket": bucket.replace("_", " "), "limit": LIMITS[bucket], "same": same}
    return Sign(found[bucket], None, lambda least: onset(seen.series, methodcaller("met", bucket), least), rows, facts)


def _contradicted(seen: Evidence) -> Sign | None:
    judged: dict[tuple[str, str], set[str]] = defaultdict(set)
    times: Counter[tuple[str, str]] = Counter()
    for row in seen.samples:
        # Truncation is the sampler's verdict, not the verifier's; another turn's is not this text's.
        own = not row.completion.truncated and VERDICT_OF not in (row.about or ())
        if row.verdict.outcome != "no_verdict" and own:
            judged[_verdict_key(row)].add(row.verdict.outcome)
            times[_verdict_key(row)] += 1
    repeated = [key for key, count in times.items() if count > 1]
    torn = {key for key in repeated if len(judged[key]) > 1}
    if len(torn) < FEW:
        return None
    return Sign(Share(len(torn), len(repeated)), rows=_pairs(seen.samples, torn))


def _verdict_key(row: RolloutRow) -> tuple[str, str]:
    """What a verdict belongs to: a text for a task; in a cascade also the annotated body, which its prompt contains."""
    return row.completion.task.id, row.prompt + row.completion.text


def _pairs(rows: Sequence[RolloutRow], torn: set[tuple[str, str]]) -> tuple[RolloutRow, ...]:
    """Two rows of the same text with different verdicts, then another."""
    of_text = [row for row in rows if _verdict_key(row) in torn]
    first = of_text[0]
    same = [row for row in of_text if _verdict_key(row) == _verdict_key(first)]
    other = next(row for row in same if row.verdict.outcome != first.verdict.outcome)
    return (first, other, *(row for row in of_text if row not in same))[:3]


def _none_pass(seen: Evidence) -> Sign | None:
    """Rewards that tell failures apart keep groups alive; still hardly anything has ever passed."""
    found = share(seen.series, methodcaller("met", "passed"))
    if found.of - sum(one.met("no_verdict") for one in seen.series) < MANY or (found.count and found.high > HARDLY):
        return None
    rows = [row for row in seen.samples if row.verdict.outcome not in ("passed", "no_verdict")]
    ever = "No answer ever passes" if not found.count else "Hardly an answer ever passes"
    return Sign(found, Weight.HOLDS_BACK, rows=rows, facts={"ever": ever})


def _first_line(log: str) -> str:
    return next((line.strip() for line in log.splitlines() if line.strip()), "(no log)")


STOPPED = (
    "Right answers are judged wrong, so nothing was trained. The run's own reason names some, with their verdicts."
)

OF_GOLDS = (
    Cause("parse", _stopped_by_golds("parse"),
        "Answers do not parse: {share} gold answers do not pass, most by parse",
        STOPPED,
        "Hold a gold against what the domain's parser and the verifier want (data=..., verifier=...). " + VALIDATE),
    Cause("no_verdict", _stopped_by_golds("no_verdict"),
        "The verifier gives no verdict: {share} gold answers do not pass, most by no_verdict",
        STOPPED,
        "See that the verifier's tool runs on this machine. " + VALIDATE),
    Cause("alike", _stopped_by_golds(*ENDED),
        "A limit ends right answers: {share} gold answers do not pass{most}",
        STOPPED,
        "Raise {limit}. " + VALIDATE, explains=("golds",)),
    Cause("golds", _stopped_by_golds(),
        "Golds are refused: {share} gold answers do not pass{most}",
        STOPPED,
        "A gold answer that fails shows that parser, verifier, limits and data do not fit each other. " + VALIDATE),
    Cause("alike", _golds_given(*ENDED),
        "A limit ends right answers: {share} answers that are the gold to the letter fail, most by {kind}",
        "Whether an answer is right is not what decides.",
        "Raise {limit}. " + VALIDATE, (0.4, 0.1), explains=("golds", "contradiction")),
    Cause("golds", _golds_given(),
        "Golds are refused: {share} answers that are the gold to the letter fail",
        "Right answers are judged wrong, so that nothing right can be learned.",
        "Mend the data's expected values or the verifier's options. " + VALIDATE, (0.4, 0.1)),
)  # fmt: skip

CONTRADICTION = Cause("contradiction", _contradicted,
    "The verifier contradicts itself: {share} answers given more than once got different verdicts",
    "The same text for the same task passes once and fails another time: what is learned from is chance.",
    "Look for limits of wall-clock time on a busy machine, for random numbers in tests, and for state that one "
    "candidate leaves to the next.", (0.1, 0.01))  # fmt: skip

OF_VERDICTS = (
    Cause("parse", _unparsed,
        "Answers do not parse: {share} completions",
        "No candidate is found in these answers, so the verifier has nothing to judge and all of them fail. {programs}",
        "{remedy}", (0.8, 0.4), explains=("golds",)),
    Cause("parse", _never_valid,
        "Answers are no programs: {share} of the first completions, and {passed} have passed since",
        "No reward tells these answers apart, so that updates make them other answers, and no better ones.",
        "Say the wanted form in the prompt, teach it first (+stage=sft), or start from a model that knows it.",
        (0.8, 0.6), explains=("alike", "none_pass", "dead_failed", "entropy_collapse", "reward_hacking")),
    Cause("no_verdict", _silent,
        "The verifier gives no verdict: {share} completions",
        "What has no verdict enters no baseline, no loss and no rate: the grader is down, not the policy. {reason}",
        "See that the verifier's tool runs on this machine (+stage=verify verify.input=samples), and its workers' "
        "memory and time; the logs are below.", SILENT, later=1),
    Cause("rejected", _rejected,
        "Answers are rejected as cheats: {share} completions",
        "A rejected answer is paid least of all. Rules: {rules}.",
        "Read the samples: a policy that is out for the grader needs a smaller gain from it; a rule that refuses "
        "honest answers is a fault of the verifier.", (0.5, 0.2)),
    Cause("alike", _fail_alike,
        "Answers fail alike: {share} completions by {bucket}",
        "Whether an answer is right is not what decides. {same}",
        "Look at {limit}, and whether gold answers pass (+stage=validate).", ALIKE, explains=("golds", "contradiction")),
)  # fmt: skip

NONE_PASS = Cause("none_pass", _none_pass,
    "{ever}: {share} completions",
    "What is learned is which failure is paid best. A task that is never solved teaches no more than that.",
    "Easier tasks or a policy that solves some (+stage=sft first); +stage=validate shows whether the golds pass.")  # fmt: skip


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
SOLVED = 0.9
"""Share of passes, by the low end, from the first step on, that leaves nothing to learn."""
READS_VERDICT = "Look at the weights of reward.terms and at reward.normalizer; an own reward must read the verdict."
HARDER = (
    "Harder tasks; what is left to learn is in those that are not always solved (algorithm.zero_variance=resample). "
    "Where all pass from the first step, see whether the verifier is strict: +stage=validate."
)
EASIER = (
    "Easier tasks (curriculum=staged, data.path), more draws for each "
    "(algorithm.group_size={option[algorithm.group_size]} now), supervised steps first (+stage=sft), or a reward that "
    "tells near misses apart."
)


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
        fact = f"{only} completions are paid the same, passed or failed"
        if weight is not None:
            paid = "right answers are paid no more than the best paid wrong one" if blind else "all are paid the same"
            fact = f"in {same} groups with right and wrong answers {paid}"
        rows = _rows_of_mixed(seen.rollouts, lambda right, wrong: max(right) - max(wrong) <= EQUAL)
        begun = onset(seen.step_counts, _untold, CONSTANT[1], "mixed")
        return Sign(same, weight or Weight.BLOCKS, begun, rows, {"fact": fact})

    return measure


def _untold(one: StepCounts) -> int:
    return one.mixed_equal + one.mixed_blind


def _of_mixed(found: Share, levels: tuple[float, float]) -> Weight | None:
    """Where so few groups have a wide interval, a result common to all of them is trusted."""
    return weigh(Sign(found), *levels) or (Weight.BLOCKS if found.of >= FEW and found.count == found.of else None)


def _only_reward(seen: Evidence) -> Share:
    """Completions that share the run's only reward, where some passed and some failed; none where rewards differ."""
    paid = [row for row in seen.rollouts if row.reward is not None]
    if len({row.completion.correct for row in paid}) < 2 or _spread([row.reward for row in paid]) > EQUAL:
        return Share(0, 0)
    return Share(len(paid), len(paid))


def _reversed(seen: Evidence) -> Sign | None:
    found = share(seen.step_counts, lambda one: one.mixed_reversed, "mixed")
    rows = _rows_of_mixed(seen.rollouts, lambda right, wrong: max(right) < min(wrong) - EQUAL)
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
    least = max(EQUAL, JITTER * (_worth_of_a_pass(seen) or 0.0))
    torn = [rows for rows in repeated if _spread([row.reward for row in rows]) > least]
    if len(torn) < FEW:
        return None
    return Sign(Share(len(torn), len(repeated)), rows=torn[0][:2] + [rows[0] for rows in torn[1:2]])


def _rises_alone(seen: Evidence) -> Sign | None:
    """The reward rises and success does not."""
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
    """What passing adds to a reward on average, or by the weights of the terms; None where neither is known."""
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
        few = f"Of {size} answers to a task two seldom differ: larger groups see what is rare." if size < SMALL else ""
        return Sign(own, weight, begun, rows, {"dead": dead, "few": few, "size": size})

    return measure


def _dead_of(one: StepCounts) -> int:
    return one.dead_failed + one.dead_solved


def _solved_before(seen: Evidence) -> Sign | None:
    """Nearly everything passes, from the first step to the last."""
    ends = beginning(seen.step_counts), recent(seen.step_counts)
    first, last = (share(part, lambda one: one.met("passed")) for part in ends)
    rows = [row for row in seen.rollouts if row.completion.correct]
    return Sign(min(first, last, key=lambda one: one.low), rows=rows, facts={"first": first, "last": last})


def _few_mixed(seen: Evidence) -> Sign | None:
    """Groups in which right and wrong answers do not stand side by side, with few passes among them: what differs in
    reward is no matter of right and wrong."""
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
    """Advantages point away from the reward, or are all zero where rewards differ."""
    groups: dict[tuple[int, int], list[RolloutRow]] = defaultdict(list)
    for row in seen.rollouts:
        if row.reward is not None and row.advantage is not None:
            groups[row.step, row.group].append(row)
    live = [rows for rows in groups.values() if len(rows) > 1 and _spread([row.reward for row in rows]) > EQUAL]
    zero = Share(sum(all(not row.advantage for row in rows) for rows in live), len(live))
    wrong = Share(sum(_moves_oppositely(rows) for rows in live), len(live))
    found, what = max(((zero, "are zero"), (wrong, "point against the reward")), key=lambda pair: pair[0].low)
    return Sign(found, rows=live[0] if live else (), facts={"what": what})


def _moves_oppositely(rows: Sequence[RolloutRow]) -> bool:
    """Reward and advantage move oppositely within a group."""
    mean = fmean(row.reward or 0.0 for row in rows)
    return sum(((row.reward or 0.0) - mean) * (row.advantage or 0.0) for row in rows) < -EQUAL * EQUAL


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
    "Reward hacking suspected: one answer passes {share} tasks",
    "Tasks that differ have answers that differ; a text that passes nearly all of them has found a hole in the "
    "verifier, or the tasks are all one.",
    "Judge the text by hand (+stage=verify), and +stage=validate: its hollow programs must not pass.", later=3)  # fmt: skip
ODD_PASSES = Cause("one_answer", _odd_passes,
    "Reward hacking suspected: {share} passes are empty or missed some of their cases",
    "A pass means all cases; these did not meet them.",
    "Verify the samples by hand (+stage=verify), and look at the verifier.", later=3)  # fmt: skip

OF_REWARDS = (
    Cause("reward_not_finite", _not_finite,
        "Rewards are no finite numbers, first in step {first}",
        "{rows} rows have no mean reward; {skipped:.0f} updates were skipped for it.",
        "Look at the reward's terms in the rollouts of that step.", later=1),
    Cause("constant_reward", _same_pay(blind=False),
        "Constant reward: {fact}",
        "The verifier tells the answers apart and the reward does not, so no right answer is better than a wrong one.",
        READS_VERDICT, explains=("dead_solved", "dead_failed", "kl_holds")),
    Cause("reward_blind", _same_pay(blind=True),
        "The reward does not tell right from wrong: {fact}",
        "The verifier tells the answers apart and the reward does not, so no right answer is better than a wrong one.",
        READS_VERDICT),
    Cause("reward_inverted", _reversed,
        "The reward is upside down: in {share} groups every wrong answer is paid more than every right one",
        "What is learned is to be wrong.",
        "Turn the sign of the term that pays wrong answers; passing has to outweigh all other terms.",
        explains=("reward_hacking",)),
    Cause("reward_noise", _noisy,
        "The reward is noise: {share} answers given more than once in a group, judged alike, are paid differently",
        "The same text with the same verdict is worth more one time than another: what is learned from is chance.",
        "Look for random numbers, times and state in the terms of the reward.",
        (0.4, 0.1), explains=("reward_hacking",)),
    Cause("reward_hacking", _rises_alone,
        "Reward hacking suspected: the reward rises and verified success does not",
        "Reward went from {reward.first:.3g} to {reward.last:.3g}, verified success from {success.first:.1%} to "
        "{success.last:.1%}. {terms}",
        "Read the best paid samples that failed, take out or cap the term that pays them, and let passing outweigh all "
        "other terms.", later=4),
    Cause("reward_hacking", _out_earned,
        "Reward hacking suspected: wrong answers out-earn right ones in {share} groups",
        "In these groups with right and wrong answers the wrong ones are paid at least as much on average.",
        "Read the best paid samples that failed, take out or cap the term that pays them, and let passing outweigh all "
        "other terms.", later=4),
    Cause("dead_failed", _dead(solved=False),
        "Dead groups: in {share} groups of {size} all answers fail and are paid the same",
        "A group without a difference has no advantage; {dead} have none. {few}",
        EASIER),
    Cause("dead_solved", _dead(solved=True),
        "Dead groups: in {share} groups of {size} all answers pass",
        "A group without a difference has no advantage; {dead} have none. {few}",
        HARDER),
    Cause("dead_solved", _solved_before,
        "Nothing is left to learn: {first} completions of the first step pass, {last} of the last ones",
        "Nearly every group has nothing to compare.",
        HARDER, (2.0, SOLVED)),
    Cause("few_mixed", _few_mixed,
        "Right and wrong answers seldom meet: {share} groups hold answers of one kind alone",
        "Only in {mixed} groups can passing be learned; {passed} completions pass. What differs in the others is paid "
        "for something else.",
        EASIER, (2.0, 0.8), alone=True),
    Cause("advantages", _advantages,
        "Advantages {what} in {share} groups with differing rewards",
        "The update does not follow what was paid.",
        "Look at the algorithm's own advantages, and at algorithm.advantage_scale.", (0.5, 0.3)),
)  # fmt: skip
