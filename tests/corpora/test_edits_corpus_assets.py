"""The frozen edits as shipped: complete, disjoint, within the tiny model's reach, and read by the domain."""

from collections import Counter
from itertools import combinations
from random import Random

import pytest
from shipped import Shipped

pytest.importorskip("ast_grep_py")

from rlvr_exp.corpora.edits import mixture
from rlvr_exp.corpora.edits.build import build_splits
from rlvr_exp.corpora.edits.compose import COMPOSITIONS
from rlvr_exp.corpora.edits.program import applied
from rlvr_exp.corpora.splits import fingerprint, text_of
from rlvr_exp.tasks.content import program_key
from rlvr_exp.tasks.edits.domain import EMBEDDED, Edits

SHIPPED = Shipped(EMBEDDED)
content, rows, manifest = SHIPPED.content, SHIPPED.rows, SHIPPED.splits


@pytest.mark.parametrize("split", mixture.SPLITS)
def test_files_match_their_fingerprints_and_counts(split):
    SHIPPED.check(split, mixture.SPLITS[split])
    assert Counter(row["family"] for row in rows(split)) == manifest()[split]["families"]


@pytest.mark.slow
def test_the_code_draws_the_shipped_splits_again():
    sizes = {name: size for name, size in mixture.SPLITS.items() if name not in ("train", "practice")}
    for name, drawn in build_splits(sizes).items():
        assert fingerprint(text_of(drawn).encode()) == manifest()[name]["content_sha256"]


@pytest.mark.slow
def test_no_program_and_no_edit_but_for_its_names_is_in_two_splits():
    texts = {split: {row["before"] for row in rows(split)} for split in mixture.SPLITS}
    edits = {
        split: {program_key(row["before"]) + program_key(row["after"]) for row in rows(split)}
        for split in mixture.SPLITS
    }
    for a, b in combinations(mixture.SPLITS, 2):
        assert texts[a].isdisjoint(texts[b]) and edits[a].isdisjoint(edits[b])
    assert all(len(texts[split]) == len(rows(split)) for split in mixture.SPLITS)


def test_at_least_a_thousand_edits_are_held_out_half_of_them_of_unseen_families():
    seen, unseen = rows("test"), rows("test_unseen")
    assert len(seen) + len(unseen) >= 1000 and len(seen) == len(unseen)
    names = {row["family"] for row in unseen} - set(COMPOSITIONS)
    assert len(names) >= 8
    for split in ("train", "dev", "test", "practice"):
        assert names.isdisjoint(row["family"] for row in rows(split))
    assert set(mixture.PRACTISED_FAMILIES).isdisjoint(row["family"] for row in rows("train"))
    for split in ("dev", "test", "practice"):
        assert set(mixture.PRACTISED_FAMILIES) < {row["family"] for row in rows(split)}


def test_rows_are_made_by_their_action_and_small():
    everything = [row for split in mixture.SPLITS for row in rows(split)]
    for row in Random(0).sample(everything, 400):
        assert applied(row["before"], row["action"]) == row["after"], row["id"]
    assert max(len(row["before"]) for row in everything) <= mixture.MOST_CHARACTERS
    assert max(len(row["action"]) for row in everything) <= mixture.MOST_OF_ACTION


def test_the_domain_reads_them():
    domain = Edits()
    assert {name: len(tasks) for name, tasks in domain.splits().items()} == domain.sizes() == mixture.SPLITS
    task = domain.splits()["test"][0]
    assert task.problem.proved
    assert domain.parse(domain.gold_completion(task), task).text == task.gold
    assert Edits(instruction="both", limit=0).sizes()["test"] == 2 * mixture.SPLITS["test"]
    assert Edits(target="text").fingerprint("test") != domain.fingerprint("test")
