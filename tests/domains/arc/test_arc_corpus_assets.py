"""The frozen splits as shipped: complete, disjoint, balanced, and equal to what the code draws."""

import os
import subprocess
import sys
from collections import Counter
from itertools import combinations
from random import Random

import pytest
from shipped import Shipped, fingerprint

from rlvr_exp.domains.arc.generator import corpus
from rlvr_exp.domains.arc.generator.corpus import load
from rlvr_exp.domains.arc.tasks import EMBEDDED

SHIPPED = Shipped(EMBEDDED)
content, rows, manifest = SHIPPED.content, SHIPPED.rows, SHIPPED.splits

REBUILD = """
import hashlib
from rlvr_exp.domains.arc.generator import corpus
sizes = {name: size for name, size in corpus.SPLITS.items() if name != "train"}
for name, rows in corpus.build_splits(sizes).items():
    print(name, hashlib.sha256(corpus.text_of(rows).encode()).hexdigest())
"""


def grids(split):
    return {str(grid) for row in rows(split) for pair in row["train"] + row["test"] for grid in pair.values()}


@pytest.mark.parametrize("split", corpus.SPLITS)
def test_files_match_their_fingerprints_and_counts(split):
    packed = (EMBEDDED / f"{split}.jsonl.xz").read_bytes()
    recorded = manifest()[split]
    assert fingerprint(packed) == recorded["file_sha256"]
    assert fingerprint(content(split)) == recorded["content_sha256"]
    assert len(packed) < 2_000_000
    assert len(rows(split)) == recorded["tasks"] == corpus.SPLITS[split]
    assert Counter(row["style"] for row in rows(split)) == recorded["styles"]
    assert Counter(row["family"] for row in rows(split)) == recorded["families"]


@pytest.mark.slow
def test_the_code_draws_the_shipped_splits_again_under_any_hash_seed():
    environment = os.environ | {"PYTHONHASHSEED": "7"}
    done = subprocess.run([sys.executable, "-c", REBUILD], capture_output=True, text=True, env=environment, check=True)
    drawn = dict(line.split() for line in done.stdout.splitlines())
    assert len(drawn) == 3
    assert drawn == {name: manifest()[name]["content_sha256"] for name in drawn}


def test_no_grid_is_in_two_splits():
    found = {split: grids(split) for split in corpus.SPLITS}
    assert all(found[a].isdisjoint(found[b]) for a, b in combinations(found, 2))


def test_no_task_is_there_twice():
    for split in corpus.SPLITS:
        tasks = [str((row["train"], row["test"])) for row in rows(split)]
        assert len(set(tasks)) == len(tasks) == len({row["id"] for row in rows(split)})


def test_unseen_families_and_compositions_are_in_no_other_split():
    unseen = {row["family"] for row in rows("test_unseen")}
    single = {name for name in unseen if "+" not in name}
    composed = {frozenset(name.split("+")) for name in unseen if "+" in name}
    assert len(single) >= 8 and len(composed) >= 8
    for split in ("train", "dev", "test"):
        families = {row["family"] for row in rows(split)}
        assert single.isdisjoint(part for name in families for part in name.split("+"))
        assert composed.isdisjoint(frozenset(name.split("+")) for name in families)


def test_train_covers_and_balances_the_families_of_dev_and_test():
    counts = Counter(row["family"] for row in rows("train"))
    assert counts.keys() >= {row["family"] for split in ("dev", "test") for row in rows(split)}
    for two_step in (False, True):
        group = [count for name, count in counts.items() if ("+" in name) == two_step]
        assert max(group) - min(group) <= 1
    assert sum(row["steps"] == 2 for row in rows("train")) == round(12000 * corpus.TWO_STEP_SHARE["train"])


def test_gold_programs_solve_their_tasks():
    everything = [row for split in corpus.SPLITS for row in rows(split)]
    for row in Random(0).sample(everything, 300):
        solve = load(row["program"])
        assert len(row["train"]) == 3 and len(row["test"]) == 1
        assert all(solve(pair["input"]) == pair["output"] for pair in row["train"] + row["test"]), row["id"]


def test_sizes_are_small_enough_for_a_tiny_policy():
    pairs = [pair for row in rows("train") for pair in row["train"] + row["test"]]
    areas = [len(pair["input"]) * len(pair["input"][0]) for pair in pairs]
    assert 11 < sum(areas) / len(areas) < 15
    assert all(4 <= len(pair["output"]) * len(pair["output"][0]) <= 48 for pair in pairs)
    assert max(len(row["program"]) for row in rows("train")) <= max(corpus.MAX_CHARACTERS.values())
    assert sum(len(pair["input"]) != len(pair["input"][0]) for pair in pairs) > len(pairs) / 2
