"""The frozen Dafny splits as shipped: complete, disjoint, balanced, within the tiny model's reach."""

from collections import Counter
from itertools import combinations

import pytest
from shipped import Shipped

from rlvr_exp.corpora.dafny import mixture
from rlvr_exp.corpora.dafny.build import build_splits, side
from rlvr_exp.corpora.dafny.row import canonical
from rlvr_exp.tasks.dafny.domain import EMBEDDED, DafnyDomain

SHIPPED = Shipped(EMBEDDED)
content, rows, manifest = SHIPPED.content, SHIPPED.rows, SHIPPED.manifest


def key(row):
    return canonical(row["before"] + row["header"] + row["spec"])


@pytest.mark.parametrize("split", mixture.SPLITS)
def test_files_match_their_fingerprints_and_counts(split):
    SHIPPED.check(split, mixture.SPLITS[split])
    assert (EMBEDDED / f"{split}.jsonl.xz").stat().st_size < 1_000_000
    recorded = manifest()["splits"][split]
    assert sum(len(row["mutants"]) for row in rows(split)) == recorded["mutants"]
    for name, counts in (("family", "families"), ("style", "styles"), ("kind", "kinds")):
        assert Counter(row[name] for row in rows(split)) == recorded[counts]


def test_the_manifest_names_what_proved_them():
    assert manifest()["tool"]["dafny"].startswith("Dafny")
    assert manifest()["tool"]["rlimit"].isdigit()


@pytest.mark.slow
def test_the_code_draws_the_shipped_splits_again():
    """Without Dafny: no draw of the small splits was dropped, so a judge that accepts all gives them; without
    mutants."""
    sizes = {name: size for name, size in mixture.SPLITS.items() if name != "train"}
    drawn, _ = build_splits(sizes, lambda asked: ["proved"] * len(asked))
    for split, found in drawn.items():
        assert [row | {"mutants": []} for row in rows(split)] == [row | {"mutants": []} for row in found]


def test_no_specification_is_in_two_splits_names_apart():
    found = {split: {key(row) for row in rows(split)} for split in mixture.SPLITS}
    assert all(found[a].isdisjoint(found[b]) for a, b in combinations(found, 2))
    assert all(side(one) == split for split in mixture.SIDES for one in found[split])
    assert {side(one) for one in found["practice"]} == set(mixture.LEFTOVER_SIDES["practice"])


def test_no_program_is_there_twice():
    programs = [
        row["before"] + row["header"] + row["spec"] + row["annotated_body"] for s in mixture.SPLITS for row in rows(s)
    ]
    assert len(set(programs)) == len(programs)
    assert all(len({row["id"] for row in rows(split)}) == len(rows(split)) for split in mixture.SPLITS)


def test_held_out_specifications_are_distinct():
    assert len({key(row) for row in rows("test")}) >= 500


def test_unseen_families_are_in_no_other_split_and_the_others_in_all_that_is_learned_from():
    families = {split: Counter(row["family"] for row in rows(split)) for split in mixture.SPLITS}
    assert families["test_unseen"].keys() == set(mixture.UNSEEN_FAMILIES)
    assert all(
        families["test_unseen"].keys().isdisjoint(families[split]) for split in mixture.SPLITS if split != "test_unseen"
    )
    for split in ("train", "practice"):
        assert families[split].keys() == families["test"].keys() and len(families[split]) >= 40
        assert max(families[split].values()) - min(families[split].values()) <= 1


def test_every_row_makes_a_task_of_each_role_and_no_mutant_is_the_gold():
    domain = DafnyDomain(role="both")
    assert not domain.left_out()
    for split, tasks in domain.splits().items():
        assert len(tasks) == 2 * mixture.SPLITS[split]
    for split in ("dev", "test"):
        for row in rows(split):
            assert row["annotated_body"] not in row["mutants"]
    assert sum(len(row["mutants"]) for row in rows("dev")) > 0.8 * len(rows("dev"))
