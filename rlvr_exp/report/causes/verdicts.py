"""Causes between a completion and its verdict: nothing parses, no verdict, equal failures, contradictions, failing references."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from operator import methodcaller

from rlvr_exp.episodes.types import VERDICT_OF
from rlvr_exp.records.rollout_files import RolloutRow
from rlvr_exp.report.cause import Cause, Counted, Sign, Weight, weigh
from rlvr_exp.report.causes.proposals import (
    checked_answers,
    easier,
    more_resources,
    same_wording,
    together,
    wider_limits,
)
from rlvr_exp.report.data import is_cheat
from rlvr_exp.report.evidence import Evidence, Share, beginning, onset, recent, share
from rlvr_exp.tasks.completion import whole_program
from rlvr_exp.tasks.python_syntax import syntax_fault

SILENT, ALIKE = (0.3, 0.03), (0.8, 0.5)
FEW = 3
"""Contradictions that a busy machine's clock may cause."""
MANY = 200
"""Least number of completions. If almost none of them passes, it is not chance."""
SOLVES, HARDLY = 0.05, 0.01
"""Shares of passes, by the high end. Below SOLVES the policy cannot solve the tasks; below HARDLY it learns nothing from passes."""
LIMITS = {
    "timeout": "time",
    "memory": "memory",
    "output_limit": "output",
    "runtime_error": "packages that candidates import",
    "resolve": "names that the prompt gives",
}
"""Buckets that are not about right or wrong, and what causes them."""
ENDED = ("timeout", "memory", "output_limit")
"""Of these the ones that end a program before it has answered."""
VALIDATE = "+stage=validate checks all reference answers with the same data and verifier."
FORMAT = "State the format in the prompt, teach it first (+stage=sft), or start from a model that knows it."


def _stopped_by_golds(*kinds: str) -> Callable[[Evidence], Sign | None]:
    """The run stopped before training because reference answers fail. Its reason lists their verdicts.

    Args:
        kinds: of the verdict of most of them; none: of any.
    """

    def measure(seen: Evidence) -> Sign | None:
        match = re.search(r"(\d+) of (\d+) (?:gold|reference) answers of the [a-z-]+ tasks do not pass", seen.reason)
        met = Counter(re.findall(r"^\S.*?: (?:failed \((\w+)\)|(no_verdict)|(rejected))", seen.reason, re.MULTILINE))
        kind = next(filter(None, met.most_common(1)[0][0])) if met else ""
        if match is None or (kinds and kind not in kinds):
            return None
        facts = {"most": f", most with {kind}" if kind else "", "limit": LIMITS.get(kind, "")}
        return Sign(Share(int(match[1]), int(match[2])), Weight.BLOCKS, facts=facts)

    return measure


def _golds_given(*kinds: str) -> Callable[[Evidence], Sign | None]:
    """Answers that equal the reference answer and fail.

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
    why, advice = "", FORMAT
    if programs:
        why = f"{fine} examined answers are complete programs, so the parser rejects valid programs."
        advice = "Compare three samples with the format that the parser expects: a fence, a header, an entry point."
    sign = Counted(methodcaller("met", "parse"), lambda row: row.verdict.bucket == "parse")(seen)
    return Sign(sign.share, onset=sign.onset, rows=refused, facts={"programs": why, "advice": advice})


def is_program(text: str) -> bool:
    """Whether a completion contains Python beyond a bare expression."""
    found = whole_program(text).text or ""
    words = re.search(r"^\s*(def|class|import|from|return|for|while|if)\b", found, re.MULTILINE)
    return words is not None and syntax_fault(found) is None


def _never_valid(seen: Evidence) -> Sign | None:
    """No program in the first answers, and hardly a pass since: updates have not improved them."""
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
    facts = {"reason": f"Reason: {reason[:300]}" if reason else ""}
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
    same = f"The log of {lines[0][1]:,} of {len(rows):,} completions: {lines[0][0][:200]}" if lines else ""
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
    """The key of a verdict: the task and the text. The prompt contains the annotated body of a cascade."""
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
    ever = "No answer passes" if not found.count else "Almost no answer passes"
    return Sign(found, Weight.HOLDS_BACK, rows=rows, facts={"ever": ever}, effect=1 - found.value)


def _first_line(log: str) -> str:
    return next((line.strip() for line in log.splitlines() if line.strip()), "(no log)")


STOPPED = (
    "The verifier rejects correct answers, so the run did not train. The run's reason lists some, with their verdicts."
)

OF_GOLDS = (
    Cause("parse", _stopped_by_golds("parse"),
        "Answers do not parse: {share} reference answers fail, most with parse",
        STOPPED,
        "Compare a reference answer with the format that the parser and the verifier expect. " + VALIDATE, same_wording),
    Cause("no_verdict", _stopped_by_golds("no_verdict"),
        "No verdicts: {share} reference answers fail, most with no_verdict",
        STOPPED,
        "Check that the verifier's tool runs on this machine. " + VALIDATE),
    Cause("alike", _stopped_by_golds(*ENDED),
        "A limit stops correct answers: {share} reference answers fail{most}",
        STOPPED,
        "The limit of {limit} is too low. " + VALIDATE, wider_limits, explains=("golds",)),
    Cause("golds", _stopped_by_golds(),
        "Reference answers fail verification: {share}{most}",
        STOPPED,
        "Check that parser, verifier, limits and data match. " + VALIDATE),
    Cause("alike", _golds_given(*ENDED),
        "A limit stops correct answers: {share} answers equal to the reference fail, most with {kind}",
        "The limit decides, not the correctness of the answer.",
        VALIDATE, wider_limits, (0.4, 0.1), explains=("golds", "contradiction")),
    Cause("golds", _golds_given(),
        "Reference answers fail verification: {share} answers equal to the reference fail",
        "The verifier rejects correct answers, so the policy cannot learn them.",
        "Fix the expected values in the data, or the verifier. " + VALIDATE, checked_answers, (0.4, 0.1),
        explains=("other_tasks",)),
)  # fmt: skip

CONTRADICTION = Cause("contradiction", _contradicted,
    "Inconsistent verdicts: {share} repeated answers have different verdicts",
    "The same text for the same task passes once and fails another time, so the policy learns from chance.",
    "Look for wall-clock limits on a busy machine, random numbers in tests, and state shared between candidates.",
    wider_limits, (0.1, 0.01), explains=("golds", "one_answer"))  # fmt: skip

OF_VERDICTS = (
    Cause("parse", _unparsed,
        "Answers do not parse: {share} completions",
        "The parser finds no candidate in these answers, so all of them fail. {programs}",
        "{advice}", same_wording, (0.8, 0.4), explains=("golds", "dead_failed", "none_pass", "few_mixed")),
    Cause("parse", _never_valid,
        "Answers are not programs: {share} of the first completions; {passed} have passed since",
        "No reward distinguishes these answers, so updates change them without improving them.",
        FORMAT, same_wording, (0.8, 0.6),
        explains=("alike", "none_pass", "dead_failed", "entropy_collapse", "reward_hacking")),
    Cause("no_verdict", _silent,
        "No verdicts: {share} completions",
        "The verifier is broken, not the policy. Completions without a verdict enter no baseline, loss or rate. {reason}",
        "Check that the verifier's tool runs on this machine (+stage=verify). The logs are below.",
        more_resources, SILENT, later=1),
    Cause("rejected", _rejected,
        "Answers rejected as cheats: {share} completions",
        "A rejected answer has the lowest reward. Rules: {rules}.",
        "Read the samples. If the policy attacks the grader, reduce its gain. If a rule rejects honest answers, fix the "
        "verifier.", levels=(0.5, 0.2)),
    Cause("alike", _fail_alike,
        "Answers fail for the same reason: {share} completions with {bucket}",
        "The cause is the {limit}, not the correctness of the answer. {same}",
        "Check whether reference answers pass (+stage=validate).", wider_limits,
        ALIKE, explains=("golds", "contradiction", "dead_failed", "none_pass", "other_tasks", "few_mixed")),
)  # fmt: skip

NONE_PASS = Cause("none_pass", _none_pass,
    "{ever}: {share} completions",
    "The policy learns only which failure has the highest reward. A task that is never solved teaches nothing else.",
    "Use easier tasks or a policy that solves some (+stage=sft first). +stage=validate checks the reference answers.",
    together(easier, checked_answers), explains=("few_mixed",))  # fmt: skip
