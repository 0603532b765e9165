"""The frozen edits as shipped: complete, disjoint, within the tiny model's reach, judged as they say, and read by the domain."""

from collections import Counter
from itertools import combinations
from random import Random

import pytest
from shipped import Shipped

pytest.importorskip("ast_grep_py")

from rlvr_exp.domains.edits.action import parse_action
from rlvr_exp.domains.edits.problem import AstGrepProblem
from rlvr_exp.domains.edits.tasks import EMBEDDED, Edits
from rlvr_exp.tasks.base import Candidate
from rlvr_exp.tasks.content import program_key
from rlvr_exp.verifiers.base import Request

SHIPPED = Shipped(EMBEDDED)
rows, manifest = SHIPPED.rows, SHIPPED.splits
SIZES = {"test": 600, "test_unseen": 600, "dev": 400, "train": 12000, "practice": 4000}
JOINED = {"two_edits", "three_edits"}
"""Families of rows that join edits of others."""


def of_each_family():
    """The first held-out row of every family."""
    return list({row["family"]: row for split in ("test_unseen", "test") for row in reversed(rows(split))}.values())


@pytest.mark.parametrize("split", SIZES)
def test_files_match_their_fingerprints_and_counts(split):
    SHIPPED.check(split, SIZES[split])
    assert Counter(row["family"] for row in rows(split)) == manifest()[split]["families"]


@pytest.mark.slow
def test_no_program_and_no_edit_but_for_its_names_is_in_two_splits():
    texts = {split: {row["before"] for row in rows(split)} for split in SIZES}
    edits = {split: {program_key(row["before"]) + program_key(row["after"]) for row in rows(split)} for split in SIZES}
    for a, b in combinations(SIZES, 2):
        assert texts[a].isdisjoint(texts[b]) and edits[a].isdisjoint(edits[b])
    assert all(len(texts[split]) == len(rows(split)) for split in SIZES)


def test_at_least_a_thousand_edits_are_held_out_half_of_them_of_unseen_families():
    seen, unseen = rows("test"), rows("test_unseen")
    assert len(seen) + len(unseen) >= 1000 and len(seen) == len(unseen)
    families = {split: {row["family"] for row in rows(split)} for split in SIZES}
    names = families["test_unseen"] - JOINED
    assert len(names) >= 8 and all(names.isdisjoint(families[split]) for split in SIZES if split != "test_unseen")
    assert families["practice"] == families["test"] == families["dev"] > families["train"]
    assert len(families["train"]) >= 40 and len(families["test"] - families["train"]) == 29


def test_rows_are_made_by_their_action_and_small(exact):
    everything = [row for split in SIZES for row in rows(split)]
    for row in Random(0).sample(everything, 100):
        action = parse_action(row["action"], "python")
        assert len(action.rules) <= 3 and exact.edited_text(row["before"], action) == row["after"], row["id"]
    assert max(len(row["before"]) for row in everything) <= 360
    assert max(len(row["action"]) for row in everything) <= 300


def test_the_verifier_passes_reference_actions_and_fails_wrong_ones(exact):
    wanted = []
    for row in of_each_family():
        problem = AstGrepProblem("python", row["before"], row["after"])
        answers = [("passed", row["action"]), *(("failed", one["action"]) for one in row["wrong"] if "action" in one)]
        wanted += [(outcome, exact.submit(Request(problem, Candidate(text)))) for outcome, text in answers]
    assert len(wanted) > 150
    assert all(future.result(timeout=300).outcome == outcome for outcome, future in wanted)


def test_the_test_files_decide_in_the_verifier_too(exact):
    tested = [row for row in of_each_family() if row.get("tests")]
    assert len(tested) > 5
    for text, outcome in (("after", "passed"), ("before", "failed")):
        problems = [AstGrepProblem("python", row["before"], "", row["tests"], answer="text") for row in tested]
        requests = [Request(one, Candidate(row[text])) for one, row in zip(problems, tested, strict=True)]
        found = [exact.submit(request) for request in requests]
        verdicts = [future.result(timeout=300) for future in found]
        assert [one.outcome for one in verdicts] == [outcome] * len(tested), [one.log for one in verdicts]


def test_the_domain_reads_them():
    domain = Edits()
    assert {name: len(tasks) for name, tasks in domain.splits().items()} == domain.sizes() == SIZES
    task = domain.splits()["test"][0]
    assert task.problem.proved
    assert domain.parse(domain.gold_completion(task), task).text == task.gold
    assert Edits(instruction="both", limit=0).sizes()["test"] == 2 * SIZES["test"]
    assert Edits(target="text").fingerprint("test") != domain.fingerprint("test")
