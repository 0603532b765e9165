"""What can be wrong between a completion and its verdict: nothing parses, there is no verdict, all fail alike, or
verdicts contradict each other."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from operator import methodcaller

from rlvr_exp.records.rollout_files import RolloutRow
from rlvr_exp.report.evidence import Evidence, Share, onset, recent, share, some
from rlvr_exp.report.finding import Finding, Weight, weigh
from rlvr_exp.report.step_counts import is_cheat
from rlvr_exp.tasks.completion import syntax_fault, whole_program

UNPARSED, SILENT, ALIKE, REJECTED = (0.8, 0.4), (0.3, 0.03), (0.8, 0.5), (0.5, 0.2)
"""(blocks, holds back): shares of completions, by the low end of their interval."""
CONTRADICTED = (0.1, 0.01)
"""(blocks, holds back): share of texts with several verdicts for the same task that differ."""
FEW = 3
"""Contradictions that a busy machine's clock may cause."""
GOLDS = (0.4, 0.1)
"""(blocks, holds back): share of the answers that are the gold to the letter and fail."""
MANY = 200
"""Completions none of which passes that are no bad luck."""
LIMITS = {
    "timeout": "sandbox.cpu_s and sandbox.wall_s",
    "memory": "sandbox.memory_mb",
    "output_limit": "sandbox.output_kb",
    "runtime_error": "the packages that candidates may import (verifier.packages)",
    "resolve": "the names that the prompt gives",
    "prompt_too_long": "model.max_prompt_tokens",
}
"""Buckets that are not about right or wrong, and the options that cause them."""


def judging(seen: Evidence) -> Iterator[Finding]:
    yield from _golds(seen)
    yield from _golds_given(seen)
    yield from _unparsed(seen)
    yield from _silent(seen)
    yield from _rejected(seen)
    yield from _alike(seen)
    yield from _contradicted(seen)
    yield from _none_pass(seen)


def _golds(seen: Evidence) -> Iterator[Finding]:
    """The run was stopped before training, because gold answers do not pass: the reason holds their verdicts."""
    match = re.search(r"(\d+) of (\d+) gold answers of the training tasks do not pass", seen.reason)
    if not match:
        return
    found = Share(int(match[1]), int(match[2]))
    met = Counter(re.findall(r"^\S.*?: (?:failed \((\w+)\)|(no_verdict)|(rejected))", seen.reason, re.MULTILINE))
    kind = next(filter(None, met.most_common(1)[0][0])) if met else ""
    cause = {"parse": "parse", "no_verdict": "no_verdict"}.get(kind, "golds")
    what = {"parse": "Answers do not parse", "no_verdict": "The verifier gives no verdict"}.get(
        cause, "Golds are refused"
    )
    yield Finding(
        cause,
        f"{what}: {found} gold answers do not pass{f', most by {kind}' if kind else ''}",
        "Right answers are judged wrong, so nothing was trained. The run's own reason names some, with their verdicts.",
        "A gold answer that fails shows that parser, verifier, limits and data do not fit each other: +stage=validate "
        "with the same data and verifier looks at all of them.",
        Weight.BLOCKS,
    )


def _golds_given(seen: Evidence) -> Iterator[Finding]:
    """Answers that are the gold to the letter, and fail."""
    given = [
        row
        for row in (*seen.rollouts, *seen.measured)
        if row.verdict.outcome != "no_verdict" and not row.completion.truncated and _is_gold(row, seen)
    ]
    failed = [row for row in given if not row.completion.correct]
    weight = weigh(Share(len(failed), len(given)).low, *GOLDS)
    if weight is None or _fails_alike(seen, Counter(row.verdict.bucket for row in failed).most_common(1)[0][0]):
        return  # Reported below, with the same samples.
    yield Finding(
        "golds",
        f"Golds are refused: {Share(len(failed), len(given))} answers that are the gold to the letter fail",
        "Right answers are judged wrong, so that nothing right can be learned.",
        "+stage=validate with the same data and verifier; mend the data's expected values or the verifier's options.",
        weight,
        0,
        some(failed),
    )


def _fails_alike(seen: Evidence, bucket: str | None) -> bool:
    """Golds fail as most answers do, for a reason that is not about right or wrong."""
    most = share(recent(seen.series), lambda one: one.met(bucket or "")).low
    return bucket == "parse" or (bucket in LIMITS and weigh(most, *ALIKE) is not None)


def _is_gold(row: RolloutRow, seen: Evidence) -> bool:
    return row.completion.text.strip() == seen.golds.get(row.completion.task.id, "").strip() != ""


def _none_pass(seen: Evidence) -> Iterator[Finding]:
    """Rewards that tell failures apart keep groups alive; still nothing has ever passed."""
    found = share(seen.series, lambda one: one.met("passed"))
    if found.of - sum(one.met("no_verdict") for one in seen.series) >= MANY and not found.count:
        yield Finding(
            "none_pass",
            f"No answer ever passes: {found} completions",
            "What is learned is which failure is paid best. A task that is never solved teaches no more than that.",
            "Easier tasks or a policy that solves some (+stage=sft first); +stage=validate shows whether the golds "
            "pass.",
            Weight.HOLDS_BACK,
            0,
            some(row for row in seen.samples if row.verdict.outcome not in ("passed", "no_verdict")),
        )


def _unparsed(seen: Evidence) -> Iterator[Finding]:
    found = share(recent(seen.series), lambda one: one.met("parse"))
    weight = weigh(found.low, *UNPARSED)
    if weight is None:
        return
    refused = [row for row in seen.samples if row.verdict.bucket == "parse"]
    fine = Share(sum(_is_program(row.completion.text) for row in refused), len(refused))
    why = "No candidate is found in these answers, so the verifier has nothing to judge and all of them fail."
    if fine.low > 0.5:
        why += f" Yet {fine} of those examined are complete programs: it is the parser that refuses them."
    remedy = (
        "Hold three of the samples against what the domain's parser wants (data=...): a fence, a header, an entry "
        "point."
        if fine.low > 0.5
        else "Say the wanted form in the prompt, teach it first (+stage=sft), or start from a model that knows it."
    )
    begun = onset(seen.series, lambda one: one.met("parse"), UNPARSED[1])
    yield Finding("parse", f"Answers do not parse: {found} completions", why, remedy, weight, begun, some(refused))


def _is_program(text: str) -> bool:
    """Whether a completion contains Python beyond a bare expression."""
    found = whole_program(text).text or ""
    words = re.search(r"^\s*(def|class|import|from|return|for|while|if)\b", found, re.MULTILINE)
    return words is not None and syntax_fault(found) is None


def _silent(seen: Evidence) -> Iterator[Finding]:
    match = re.search(r"verifier \S+: (\d+) of (\d+) requests had no verdict", seen.reason)
    stopped = Share(int(match[1]), int(match[2])) if match else Share(0, 0)
    found = max(share(recent(seen.series), lambda one: one.met("no_verdict")), stopped, key=lambda one: one.low)
    weight = weigh(found.low, *SILENT) or (Weight.BLOCKS if match else None)
    if weight is None:
        return
    silent = [row for row in seen.samples if row.verdict.outcome == "no_verdict"]
    reasons = Counter(_first_line(row.verdict.log) for row in silent)
    last = re.search(r"Last reason: (.*?)\. Fix the cause", seen.reason, re.DOTALL)
    reason = reasons.most_common(1)[0][0] if reasons else last[1] if last else ""
    yield Finding(
        "no_verdict",
        f"The verifier gives no verdict: {found} completions",
        "What has no verdict enters no baseline, no loss and no rate: the grader is down, not the policy."
        + (f" Its reason: {reason[:300]}" if reason else ""),
        "See that the verifier's tool runs on this machine (+stage=verify verify.input=samples), and its workers' "
        "memory and "
        "time; the logs are below.",
        weight,
        onset(seen.series, lambda one: one.met("no_verdict"), SILENT[1]) if seen.series else 0,
        some(silent),
    )


def _rejected(seen: Evidence) -> Iterator[Finding]:
    found = share(recent(seen.series), lambda one: one.cheats)
    weight = weigh(found.low, *REJECTED)
    if weight is None:
        return
    cheats = [row for row in seen.samples if is_cheat(row)]
    met = Counter(row.verdict.rule for row in cheats if row.verdict.rule)
    rules = ", ".join(f"{rule} {count:,}" for rule, count in met.most_common(4))
    yield Finding(
        "rejected",
        f"Answers are rejected as cheats: {found} completions",
        f"A rejected answer is paid least of all. Rules: {rules or 'not recorded'}.",
        "Read the samples: a policy that is out for the grader needs a smaller gain from it; a rule that refuses "
        "honest "
        "answers is a fault of the verifier.",
        weight,
        onset(seen.series, lambda one: one.cheats, REJECTED[1]),
        some(cheats),
    )


def _alike(seen: Evidence) -> Iterator[Finding]:
    """Most answers are in a bucket that is not about right or wrong: the environment fails, not the answers."""
    for bucket, limit in LIMITS.items():
        found = share(recent(seen.series), methodcaller("met", bucket))
        weight = weigh(found.low, *ALIKE)
        if weight is None:
            continue
        rows = [row for row in seen.samples if row.verdict.bucket == bucket]
        lines = Counter(_first_line(row.verdict.log) for row in rows).most_common(1)
        same = f" {lines[0][1]:,} of {len(rows):,} logs say: {lines[0][0][:200]}" if lines else ""
        yield Finding(
            "alike",
            f"Answers fail alike: {found} completions by {bucket.replace('_', ' ')}",
            f"Whether an answer is right is not what decides.{same}",
            f"Look at {limit}, and whether gold answers pass (+stage=validate).",
            weight,
            onset(seen.series, methodcaller("met", bucket), ALIKE[1]),
            some(rows),
        )


def _contradicted(seen: Evidence) -> Iterator[Finding]:
    judged: dict[tuple[str, str], set[str]] = defaultdict(set)
    times: Counter[tuple[str, str]] = Counter()
    for row in seen.samples:
        # Truncation is the sampler's verdict, not the verifier's.
        if row.verdict.outcome != "no_verdict" and not row.completion.truncated:
            judged[_verdict_key(row)].add(row.verdict.outcome)
            times[_verdict_key(row)] += 1
    repeated = [key for key, count in times.items() if count > 1]
    torn = {key for key in repeated if len(judged[key]) > 1}
    found = Share(len(torn), len(repeated))
    weight = weigh(found.low, *CONTRADICTED)
    if weight is not None and found.count >= FEW:
        yield Finding(
            "contradiction",
            f"The verifier contradicts itself: {found} answers given more than once got different verdicts",
            "The same text for the same task passes once and fails another time: what is learned from is chance.",
            "Look for limits of wall-clock time on a busy machine, for random numbers in tests, and for state that "
            "one candidate "
            "leaves to the next.",
            weight,
            0,
            _pairs(seen.samples, torn),
        )


def _verdict_key(row: RolloutRow) -> tuple[str, str]:
    """What a verdict belongs to: a text for a task; in a cascade also the annotated body, which its prompt contains."""
    return row.completion.task.id, row.prompt + row.completion.text


def _pairs(rows: Sequence[RolloutRow], torn: set[tuple[str, str]]) -> tuple[RolloutRow, ...]:
    """Two rows of the same text with different verdicts, then another."""
    of_text = [row for row in rows if _verdict_key(row) in torn]
    if not of_text:
        return ()
    first = of_text[0]
    same = [row for row in of_text if _verdict_key(row) == _verdict_key(first)]
    other = next(row for row in same if row.verdict.outcome != first.verdict.outcome)
    return (first, other, *(row for row in of_text if row not in same))[:3]


def _first_line(log: str) -> str:
    return next((line.strip() for line in log.splitlines() if line.strip()), "(no log)")
