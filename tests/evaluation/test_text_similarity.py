"""Metrics of roles: exact match, BLEU and success, each with its interval, by role, family and length."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu import corpus_bleu
from thinning import tries

from rlvr_exp.episodes.types import unsampled
from rlvr_exp.evaluation.text_similarity import bleu, metrics_by_role, role_rates, text_similarities
from rlvr_exp.records.rollout_files import EvalSample
from rlvr_exp.tasks.base import Task
from rlvr_exp.verifiers.base import Verdict

WORDS = st.lists(st.sampled_from(["{", "}", "a", "b", ":=", ";", "while"]), max_size=12).map(" ".join)
GOLDS = st.lists(st.sampled_from(["{", "}", "a", "b", ":=", ";", "while"]), min_size=4, max_size=12).map(" ".join)


class Two:
    """Two roles; an answer is compared with the gold as it stands."""

    def strata(self, task):
        return {"role": task.inputs, "length": "short" if len(task.gold) < 12 else "long"}

    def similarity_pair(self, completion, task):
        return completion, task.gold


def task(name, role, family="f", gold="a b c d e f"):
    return Task(name, family, 0.0, role, None, gold)


def row(task, mode, sample, completion, outcome="passed"):
    verdict = Verdict(outcome, "verify" if outcome == "failed" else None)
    return EvalSample(replace(unsampled(task, sample, verdict), text=completion), mode, "prompt")


TASKS = [task("w1", "writer"), task("w2", "writer", "g", "a b c"), task("a1", "annotator")]
ROWS = [
    row(TASKS[0], "greedy", 0, "a b c d e f"),
    row(TASKS[0], "sampled", 0, "a b c d e f"),
    row(TASKS[0], "sampled", 1, "x y", "failed"),
    row(TASKS[1], "greedy", 0, "c b a", "failed"),
    row(TASKS[1], "sampled", 0, "a b", "no_verdict"),
    row(TASKS[1], "sampled", 1, "a b c", "failed"),
    row(TASKS[2], "greedy", 0, "anything", "passed"),
    row(TASKS[2], "sampled", 0, "anything", "failed"),
    row(TASKS[2], "sampled", 1, "anything", "passed"),
]


def test_each_role_has_its_rates_by_the_names_of_its_readers():
    found = role_rates(metrics_by_role(Two(), ROWS))
    values = {name: (rate["value"], rate["n"], rate["samples"]) for name, rate in found.items() if "bleu" not in name}
    assert values == {
        "annotator/verified_rate": (0.5, 1, 2),
        "annotator/verified_rate_greedy": (1.0, 1, 1),
        "annotator/exact_match": (0.0, 1, 2),
        "annotator/exact_match_greedy": (0.0, 1, 1),
        "writer/functional_coverage": (0.25, 2, 2),
        "writer/functional_coverage_greedy": (0.5, 2, 1),
        "writer/exact_match": (0.5, 2, 2),
        "writer/exact_match_greedy": (0.5, 2, 1),
    }
    assert {name for name in found if "bleu" in name} == {
        f"{r}/bleu{e}" for r in ("writer", "annotator") for e in ("", "_greedy")
    }
    assert all(rate["low"] <= rate["value"] <= rate["high"] for rate in found.values())


def test_success_is_told_by_family_and_length():
    by = metrics_by_role(Two(), ROWS)["writer"]["by"]
    assert {kind: list(found) for kind, found in by.items()} == {"length": ["short"], "family": ["f", "g"]} or set(
        by
    ) == {"length", "family"}
    assert (
        by["family"]["f"]["functional_coverage"]["value"] == 0.5
        and by["family"]["g"]["functional_coverage"]["value"] == 0.0
    )
    assert by["family"]["f"]["functional_coverage"]["n"] == 1


def test_a_domain_without_roles_has_no_rates():
    domain = SimpleNamespace(strata=lambda task: {})
    assert metrics_by_role(domain, ROWS) == {} and role_rates({}) == {}


@given(st.lists(st.tuples(WORDS, GOLDS), min_size=1, max_size=6))
@settings(max_examples=tries(12), deadline=None)
def test_bleu_is_that_of_sacrebleu(pairs):
    value, low, high = bleu([[pair] for pair in pairs])
    theirs = corpus_bleu([a for a, _ in pairs], [[g for _, g in pairs]], tokenize="none", force=True).score
    assert value == pytest.approx(theirs / 100)
    assert 0.0 <= low <= high <= 1.0


def test_answers_that_are_the_golds_match_fully_and_the_interval_says_how_many_there_were():
    few, many = (text_similarities([[("a b c d e", "a b c d e")]] * n) for n in (2, 60))
    for found in (few, many):
        assert found["exact_match"].value == found["bleu"].value == pytest.approx(1.0)
    assert few["bleu"].low < many["bleu"].low < 1.0
