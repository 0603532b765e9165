"""Metrics of roles: the similarity of completions to reference answers, and success by role, family and length.

Exact match and BLEU (Papineni et al. 2002, by sacrebleu) compare words as the domain splits them. They need no
verifier, so completions without a verdict count too. Success is pass@1 under the usual name of the role. For a writer
this is `functional_coverage`, the share of bodies that the reference annotations prove; for an annotator it is
`verified_rate`. All metrics are over tasks with 95% intervals; the interval of BLEU is a bootstrap over tasks.
"""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from sacrebleu.metrics import BLEU

from rlvr_exp.core.statistics import Estimate, bootstrap_interval, mean_interval
from rlvr_exp.evaluation.metrics import Rate, rates_from
from rlvr_exp.records.rollout_files import EvalSample, Mode
from rlvr_exp.tasks.base import Domain

SUCCESS = {"writer": "functional_coverage", "annotator": "verified_rate"}
"""Name of pass@1 for each role."""
MODES: dict[Mode, str] = {"sampled": "", "greedy": "_greedy"}
Pairs = Sequence[Sequence[tuple[str, str]]]
"""Completions of each task, paired with the reference answer."""


def metrics_by_role(domain: Domain, scored: Sequence[EvalSample]) -> dict[str, Any]:
    """Return, for each role, its `rates` and, under `by`, the rates of each family and stratum that are meaningful for
    few tasks. Empty if the tasks have no role."""
    roles: dict[str, list[EvalSample]] = defaultdict(list)
    for one in scored:
        role = domain.strata(one.completion.task).get("role")
        if role:
            roles[role].append(one)
    return {role: _Role(domain, role).metrics(roles[role]) for role in sorted(roles)}


def role_rates(roles: Mapping[str, Any]) -> dict[str, Any]:
    """Return the rates of the roles under flat names, for summary.json: `writer/bleu`."""
    return {f"{role}/{name}": rate for role, found in roles.items() for name, rate in found["rates"].items()}


def saved_role_rates(run_dir: Path) -> dict[str, Any]:
    """Return `role_rates` of the last evaluation of a run, from its files."""
    numbers = json.loads((run_dir / "evaluation" / "after.json").read_text(encoding="utf-8"))
    return role_rates(numbers.get("roles", {}))


class _Role:
    """Return the metrics of one role."""

    def __init__(self, domain: Domain, role: str):
        self._domain, self._success = domain, SUCCESS.get(role, "pass_at_1")

    def metrics(self, scored: Sequence[EvalSample]) -> dict[str, Any]:
        by: dict[str, dict[str, list[EvalSample]]] = defaultdict(lambda: defaultdict(list))
        for one in scored:
            task = one.completion.task
            for kind, name in {**self._domain.strata(task), "family": task.family}.items():
                by[kind][name].append(one)
        del by["role"]
        groups = {kind: {name: self._rates(found[name]) for name in sorted(found)} for kind, found in by.items()}
        return {"rates": self._rates(scored, similarity=True), "by": groups}

    def _rates(self, scored: Sequence[EvalSample], similarity: bool = False) -> dict[str, dict[str, float | int]]:
        found: dict[str, Rate] = {}
        for mode, ending in MODES.items():
            rows = [one for one in scored if one.mode == mode]
            for rate in rates_from(rows, [f"pass_at_1{ending}"]).values():
                found[self._success + ending] = rate
            if similarity:
                found |= {name + ending: rate for name, rate in text_similarities(self._pairs(rows)).items()}
        return {name: rate.to_dict() for name, rate in found.items()}

    def _pairs(self, rows: Sequence[EvalSample]) -> Pairs:
        pairs: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for one in rows:
            pair = self._domain.similarity_pair(one.completion.text, one.completion.task)
            if pair is not None:
                pairs[one.completion.task.id].append(pair)
        return list(pairs.values())


def text_similarities(pairs: Pairs) -> dict[str, Rate]:
    """Return exact match, a mean over tasks, and corpus BLEU. Empty without completions."""
    if not pairs:
        return {}
    counts = len(pairs), max(map(len, pairs))
    exact = mean_interval([fmean(answer == gold for answer, gold in some) for some in pairs])
    return {"exact_match": Rate(*exact, *counts), "bleu": Rate(*bleu(pairs), *counts)}


def bleu(pairs: Pairs) -> Estimate:
    """Return corpus BLEU in [0, 1] with its interval. Words are taken as given. N-grams up to length 4 are smoothed as
    in sacrebleu."""
    metric = BLEU(tokenize="none", force=True)
    tasks = np.array([np.sum([_statistics(metric, *pair) for pair in some], axis=0) for some in pairs])
    value = _score(tasks.sum(axis=0))
    low, high = bootstrap_interval(lambda drawn: _score(tasks[drawn].sum(axis=0)), len(tasks))
    if low == high:  # Tasks that are all alike give no estimate of the tasks that were not drawn.
        return mean_interval([value] * len(tasks))
    return Estimate(value, low, high)


def _statistics(metric: BLEU, answer: str, gold: str) -> list[int]:
    """Return the numbers of matching and of all n-grams by length, then the lengths of the answer and of the reference
    answer."""
    score = metric.corpus_score([answer], [[gold]])
    return [*score.counts, *score.totals, score.sys_len, score.ref_len]


def _score(sums: np.ndarray) -> float:
    order = (len(sums) - 2) // 2
    matches, totals = sums[:order].tolist(), sums[order : 2 * order].tolist()
    score = BLEU.compute_bleu(matches, totals, int(sums[-2]), int(sums[-1]), smooth_method="exp").score
    return min(1.0, score / 100)
