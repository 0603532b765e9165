"""The frozen problems as shipped: complete, disjoint, within the tiny model's reach, and read by the domain."""

import copy
from collections import Counter
from itertools import combinations
from random import Random

import pytest
from shipped import Shipped

from rlvr_exp.corpora.problems import mixture
from rlvr_exp.corpora.problems.build import build_splits
from rlvr_exp.corpora.problems.running import function_of
from rlvr_exp.corpora.splits import fingerprint, text_of
from rlvr_exp.tasks.content import program_key
from rlvr_exp.tasks.problems.domain import EMBEDDED

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
def test_the_code_draws_the_first_shipped_split_again():
    sizes = {"test": mixture.SPLITS["test"]}
    (drawn,) = build_splits(sizes).values()
    assert fingerprint(text_of(drawn).encode()) == manifest()["test"]["content_sha256"]


@pytest.mark.slow
def test_no_text_and_no_program_but_for_its_names_is_in_two_splits():
    texts = {split: {row["text"] for row in rows(split)} for split in mixture.SPLITS}
    programs = {split: {program_key(row["solution"]) for row in rows(split)} for split in mixture.SPLITS}
    for a, b in combinations(mixture.SPLITS, 2):
        assert texts[a].isdisjoint(texts[b]) and programs[a].isdisjoint(programs[b]), (a, b)
    assert all(len(texts[split]) == len(rows(split)) for split in mixture.SPLITS)


def test_at_least_a_thousand_problems_are_held_out_half_of_them_of_unseen_families():
    seen, unseen = rows("test"), rows("test_unseen")
    assert len(seen) + len(unseen) >= 1000 and len(seen) == len(unseen)
    names = {row["family"] for row in unseen}
    for split in ("train", "dev", "test", "practice"):
        assert names.isdisjoint(row["family"] for row in rows(split))
    assert len({row["family"] for split in mixture.SPLITS for row in rows(split)}) >= 50
    assert set(mixture.PRACTISED_FAMILIES).isdisjoint(row["family"] for row in rows("train"))
    assert all("wrong" not in row for split in ("train", "practice") for row in rows(split))


def test_references_pass_their_calls_and_every_stage_has_a_text():
    everything = [row for split in mixture.SPLITS for row in rows(split)]
    for row in Random(0).sample(everything, 400):
        run = function_of(row["solution"], row["entry_point"])
        for case in [*row["tests"], *row["shown"], *row["good_tests"]]:
            assert run(*copy.deepcopy(case["args"])) == case["expected"], row["id"]
        assert set(row["stages"]) == {"reasoning", "plan", "pseudocode", "constraints"} and all(row["stages"].values())
