"""What a tokenizer is worth: models that see the same tasks in other tokens, by what the same golds cost them.

At equal texts after training; at equal tokens by the bits of the golds of `dev` that each run had reached when it had seen as
many tokens as the run with the fewest had at its end. The second is fair where the learning rate is constant, as by default.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

from rlvr_exp.config import study as options
from rlvr_exp.config.scales import HELD_OUT_BITS
from rlvr_exp.core.crossed import holm
from rlvr_exp.core.statistics import LEVEL, mean_p_value, t_interval
from rlvr_exp.evaluation.paired import of_few_seeds
from rlvr_exp.records import manifest
from rlvr_exp.studies.budget import EVALUATE_MORE_OFTEN, metric_at, used
from rlvr_exp.studies.model_arms import MODELS, Row, model_findings
from rlvr_exp.studies.study import ArmStudy, Findings, Job, Run

EQUAL_TOKENS = "equal_tokens"
"""The table with a row for each arm when all had seen as many tokens."""


class Tokenization(options.Tokenization, ArmStudy):
    def jobs(self) -> list[Job]:
        return self.arm_jobs()

    def summarise(self, runs: Sequence[Run]) -> Findings:
        found = model_findings(runs, self.metric, self.equal)
        counts = {row["arm"]: row["tokens_a_task"] for row in found.tables[MODELS] if "tokens_a_task" in row}
        tokens = min(used(run.directory, "tokens") for run in runs if run.completed)
        rows = _equal_tokens(_bits_at(runs, tokens), runs[0].job.arm, tokens)
        answer = [*_unequal_texts(runs), *found.answer, _at_equal_tokens(rows, tokens), *_tokens(counts)]
        return replace(found, answer=answer, tables={**found.tables, **({EQUAL_TOKENS: rows} if rows else {})})


def _bits_at(runs: Sequence[Run], tokens: float) -> dict[str, dict[int, float]]:
    """Bits a character of the golds of `dev`, by arm and seed, when so many tokens had been seen; empty where some run was not
    measured by then."""
    found: dict[str, dict[int, float]] = {}
    for run in runs:
        if run.completed:
            bits = metric_at(run.directory, HELD_OUT_BITS, "tokens", tokens)
            if bits is None:
                return {}
            found.setdefault(run.job.arm, {})[run.job.seed] = bits
    return found


def _equal_tokens(levels: Mapping[str, Mapping[int, float]], first: str, tokens: float) -> list[Row]:
    """A row an arm, each against the first, paired by seed. Intervals and chances are over seeds alone, corrected for all arms
    that are compared. None where the first arm has no run."""
    if first not in levels:
        return []
    known = levels[first]
    apart = {
        arm: [of[seed] - known[seed] for seed in of if seed in known] for arm, of in levels.items() if arm != first
    }
    judged = {arm: of for arm, of in apart.items() if len(of) > 1}
    chances = dict(zip(judged, holm([mean_p_value(of, 0.0) for of in judged.values()]), strict=True))
    rows: list[Row] = []
    for arm, of in levels.items():
        row: dict[str, Any] = {"arm": arm, "tokens": tokens, "runs": len(of), HELD_OUT_BITS: fmean(of.values())}
        if pairs := apart.get(arm):
            row |= {"pairs": len(pairs), "difference": fmean(pairs)}
        if arm in chances:
            row |= {**dict(zip(("low", "high"), t_interval(apart[arm])[1:], strict=True)), "p_holm": chances[arm]}
        rows.append(row)
    return rows


def _at_equal_tokens(rows: Sequence[Row], tokens: float) -> str:
    if not rows:
        missing = f"some run had no {HELD_OUT_BITS} after {tokens:,.0f} of them, or the first arm has no run"
        return f"At equal tokens nothing is said: {missing}; {EVALUATE_MORE_OFTEN}."
    first, *others = rows
    of = f"At equal tokens ({tokens:,.0f}, those of prompts included) by {HELD_OUT_BITS} of dev"
    listed = [f"{first['arm']} {first[HELD_OUT_BITS]:.3f}", *(_difference(row) for row in others if "pairs" in row)]
    few = of_few_seeds(min((row["pairs"] for row in others if "pairs" in row), default=1), "an interval")
    return f"{of}, others less {first['arm']}, over seeds alone: {'; '.join(listed)}{few}."


def _difference(row: Row) -> str:
    difference = f"{row['arm']} {row['difference']:+.3f}"
    if "p_holm" not in row:
        return f"{difference} (one seed)"
    sure = "beyond chance" if row["p_holm"] <= LEVEL else "no difference was found"
    return f"{difference} [{row['low']:+.3f}, {row['high']:+.3f}], {sure}"


def _unequal_texts(runs: Sequence[Run]) -> Iterator[str]:
    """A sentence where arms imitated, or were measured on, other numbers of tasks: long ones are left out by their tokens."""
    sections = {run.job.arm: manifest.section(run.directory, "imitation") for run in runs if run.completed}
    for kind, done in (("examples", "imitated"), ("held_out", "were measured in training on")):
        counts = {arm: found.get(kind) for arm, found in sections.items()}
        if len(set(counts.values())) > 1:
            listed = ", ".join(f"{arm} {count}" for arm, count in counts.items())
            yield f"Unequal texts: arms {done} other numbers of tasks ({listed}); algorithm.max_sequence_tokens leaves long ones out."


def _tokens(counts: Mapping[str, float]) -> Iterator[str]:
    if counts:
        least, most = (choose(counts, key=counts.__getitem__) for choose in (min, max))
        yield f"A task with its gold is {counts[least]:,.0f} tokens by {least}, {counts[most]:,.0f} by {most}."
