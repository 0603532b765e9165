"""The frozen Dafny splits: complete, disjoint, balanced; a sample before the real Dafny."""

import json
import lzma
from collections import Counter
from itertools import combinations
from random import Random

import pytest
from shipped import Shipped

from rlvr_exp.config.verifier import Sandbox
from rlvr_exp.domains.dafny.problem import DafnyProblem
from rlvr_exp.domains.dafny.tasks import EMBEDDED, DafnyDomain
from rlvr_exp.domains.dafny.tokens import tokens
from rlvr_exp.domains.dafny.tool import Tool
from rlvr_exp.domains.dafny.verifier import DafnyVerifier
from rlvr_exp.tasks.base import Candidate
from rlvr_exp.verifiers.base import Request

SHIPPED = Shipped(EMBEDDED)
rows, manifest = SHIPPED.rows, SHIPPED.manifest
SIZES = {"test": 599, "dev": 200, "test_unseen": 200, "train": 2996, "practice": 1488}
ROWS_OF_ONE_KEY = {"test": 2, "dev": 2, "test_unseen": 2, "train": 12, "practice": 12}
"""How many rows of a split may have specifications that differ in names alone."""
BY_INDUCTION = {"bound_by_lemma", "constant_by_lemma", "linear_by_lemma", "square_by_lemma"}
"""Families whose lemma Dafny proves by automatic induction."""
WORDS = frozenset(
    "ghost method function predicate lemma returns requires ensures modifies reads decreases invariant forall exists old in if then "
    "else while int nat bool seq array true false new Length return assert var break multiset".split()
)
"""Words that mean the same in every method. Every other name is the method's own."""


def key(row):
    """The specification with each name replaced by its place."""
    names = {}
    found = []
    for token in tokens(row["before"] + row["header"] + row["spec"]):
        own = (token[0].isalpha() or token[0] == "_") and token not in WORDS
        found.append(names.setdefault(token, f"v{len(names)}") if own else token)
    return " ".join(found)


@pytest.mark.parametrize("split", SIZES)
def test_files_match_their_fingerprints_and_counts(split):
    SHIPPED.check(split, SIZES[split])
    assert (EMBEDDED / f"{split}.jsonl.xz").stat().st_size < 1_000_000
    recorded = manifest()["splits"][split]
    assert sum(len(row["mutants"]) for row in rows(split)) == recorded["mutants"]
    for name, counts in (("family", "families"), ("style", "styles"), ("kind", "kinds")):
        assert Counter(row[name] for row in rows(split)) == recorded[counts]


def test_the_manifest_names_what_proved_them():
    assert manifest()["tool"]["dafny"].startswith("Dafny 4.")
    assert manifest()["tool"]["rlimit"].isdigit()


@pytest.mark.parametrize("split", SIZES)
def test_a_row_that_needs_automatic_induction_says_so(split):
    levels = Counter(row.get("strength", "strict") for row in rows(split))
    assert levels == manifest()["splits"][split]["strengths"]
    assert {row["family"] for row in rows(split) if "strength" in row} <= BY_INDUCTION


@pytest.mark.parametrize("split", SIZES)
def test_no_function_of_a_specification_can_be_called_from_code(split):
    """Else a body that only calls it is a proof, and there is nothing to learn."""
    for row in rows(split):
        words = tokens(row["before"] + row["after"])
        kinds = [place for place, word in enumerate(words) if word in ("function", "predicate")]
        assert all(place and words[place - 1] == "ghost" for place in kinds), row["id"]


def test_no_specification_is_in_two_splits_names_apart():
    found = {split: Counter(map(key, rows(split))) for split in SIZES}
    assert all(found[a].keys().isdisjoint(found[b]) for a, b in combinations(found, 2))
    assert all(max(found[split].values()) <= most for split, most in ROWS_OF_ONE_KEY.items())


def test_no_program_is_there_twice():
    programs = [row["before"] + row["header"] + row["spec"] + row["annotated_body"] for s in SIZES for row in rows(s)]
    assert len(set(programs)) == len(programs)
    assert all(len({row["id"] for row in rows(split)}) == len(rows(split)) for split in SIZES)


def test_held_out_specifications_are_distinct():
    assert len({key(row) for row in rows("test")}) >= 500


def test_unseen_families_are_in_no_other_split_and_the_others_in_all_that_is_learned_from():
    families = {split: Counter(row["family"] for row in rows(split)) for split in SIZES}
    assert len(families["test_unseen"]) == 10
    assert all(families["test_unseen"].keys().isdisjoint(families[split]) for split in SIZES if split != "test_unseen")
    for split in ("train", "practice"):
        assert families[split].keys() == families["test"].keys() and len(families[split]) >= 40
        dropped = {
            family: manifest()["dropped"].get(f"{split}/{family}: default resolver", 0) for family in families[split]
        }
        written = [count + dropped[family] for family, count in families[split].items()]
        assert max(written) - min(written) <= 1


def test_every_row_makes_a_task_of_each_role_and_no_mutant_is_the_gold():
    domain = DafnyDomain(role="both")
    assert not domain.left_out()
    for split, tasks in domain.splits().items():
        assert len(tasks) == 2 * SIZES[split]
    for split in ("dev", "test"):
        for row in rows(split):
            assert row["annotated_body"] not in row["mutants"]
    assert sum(len(row["mutants"]) for row in rows("dev")) > 0.8 * len(rows("dev"))


@pytest.fixture(scope="module")
def verdicts(dafny: Tool):
    lines = lzma.decompress((EMBEDDED / "dev.jsonl.xz").read_bytes()).splitlines()
    rows = Random(0).sample([row for row in map(json.loads, lines) if row["mutants"]], 10)
    asked = [
        (row, text, text == row["annotated_body"])
        for row in rows
        for text in (row["annotated_body"], row["mutants"][0])
    ]
    rlimit = int(Shipped(EMBEDDED).manifest()["tool"]["rlimit"])
    with DafnyVerifier(Sandbox(workers=1), rlimit=rlimit, cpu_s=60, wall_s=300, memory_mb=2048) as verifier:
        heads = [row["before"] + row["header"] + row["spec"] for row, _, _ in asked]
        requests = [
            Request(DafnyProblem(head + "\n"), Candidate(head + text + "\n"))
            for head, (_, text, _) in zip(heads, asked, strict=True)
        ]
        said = verifier.verify(requests)
    return [(gold, verdict) for (_, _, gold), verdict in zip(asked, said, strict=True)]


@pytest.mark.slow
def test_golds_are_proved(verdicts) -> None:
    assert all(verdict.outcome == "passed" for gold, verdict in verdicts if gold)


@pytest.mark.slow
def test_mutants_are_refused(verdicts) -> None:
    wrong = [verdict for gold, verdict in verdicts if not gold]
    assert len(wrong) == 10 and all((verdict.outcome, verdict.bucket) == ("failed", "verify") for verdict in wrong)
