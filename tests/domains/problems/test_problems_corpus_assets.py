"""The frozen problems as shipped: complete, disjoint, within the tiny model's reach, and read by the domain."""

import copy
import json
import lzma
from collections import Counter
from itertools import combinations
from random import Random

import pytest
from shipped import Shipped, fingerprint

from rlvr_exp.config.compose import compose
from rlvr_exp.config.load import build
from rlvr_exp.config.verifier import Sandbox
from rlvr_exp.domains.problems.rows import ERRORS
from rlvr_exp.domains.problems.tasks import EMBEDDED
from rlvr_exp.tasks.base import Candidate
from rlvr_exp.tasks.content import program_key
from rlvr_exp.verifiers.base import Request
from rlvr_exp.verifiers.python_tests import PythonTests

SHIPPED = Shipped(EMBEDDED)
rows, manifest = SHIPPED.rows, SHIPPED.splits
SIZES = {"test": 600, "test_unseen": 600, "dev": 400, "train": 12000, "practice": 4000}


@pytest.mark.parametrize("split", SIZES)
def test_files_match_their_fingerprints_and_counts(split):
    SHIPPED.check(split, SIZES[split])
    assert Counter(row["family"] for row in rows(split)) == manifest()[split]["families"]


def test_the_wrong_programs_of_the_solver_are_the_frozen_ones():
    found = fingerprint(ERRORS.read_bytes())
    assert found == "4022c46c2e50626a4ab0d1c80a264211151acb4ae6dce9596bd6ee617194abec"


@pytest.mark.slow
def test_no_text_and_no_program_but_for_its_names_is_in_two_splits():
    texts = {split: {row["text"] for row in rows(split)} for split in SIZES}
    programs = {split: {program_key(row["solution"]) for row in rows(split)} for split in SIZES}
    for a, b in combinations(SIZES, 2):
        assert texts[a].isdisjoint(texts[b]) and programs[a].isdisjoint(programs[b]), (a, b)
    assert all(len(texts[split]) == len(rows(split)) for split in SIZES)


def test_at_least_a_thousand_problems_are_held_out_half_of_them_of_unseen_families():
    seen, unseen = rows("test"), rows("test_unseen")
    assert len(seen) + len(unseen) >= 1000 and len(seen) == len(unseen)
    names = {row["family"] for row in unseen}
    for split in ("train", "dev", "test", "practice"):
        assert names.isdisjoint(row["family"] for row in rows(split))
    families = {split: {row["family"] for row in rows(split)} for split in SIZES}
    assert len(set().union(*families.values())) >= 50
    assert families["practice"] == families["test"] > families["train"] == families["dev"]
    assert all("wrong" not in row for split in ("train", "practice") for row in rows(split))


def test_references_pass_their_calls_and_every_stage_has_a_text():
    everything = [row for split in SIZES for row in rows(split)]
    for row in Random(0).sample(everything, 400):
        exec(row["solution"], module := {})
        for case in [*row["tests"], *row["shown"], *row["good_tests"]]:
            assert module[row["entry_point"]](*copy.deepcopy(case["args"])) == case["expected"], row["id"]
        assert set(row["stages"]) == {"reasoning", "plan", "pseudocode", "constraints"} and all(row["stages"].values())


@pytest.mark.slow
def test_wrong_programs_of_the_solver_are_of_held_out_problems_alone_and_no_test_passes_all_of_them():
    with lzma.open(ERRORS, "rt") as lines:
        errors = {row["id"]: row["wrong"] for row in map(json.loads, lines)}
    assert {name.rsplit("-", 1)[0] for name in errors} == {"dev", "test", "test_unseen"} and len(errors) > 400
    domain = build(compose(["+stage=sft", "data=problems"]).config.data)
    tasks = {task.id: task for split in ("dev", "test", "test_unseen") for task in domain.splits()[split]}
    assert all(set(errors[name]) <= set(tasks[name].negatives) for name in errors)
    with PythonTests(Sandbox(workers=1)) as verifier:
        shown = sorted(errors)[::40]
        pairs = [(tasks[name].problem, program) for name in shown for program in errors[name]]
        judged = [verifier.submit(Request(problem, Candidate(program))) for problem, program in pairs]
        assert {one.result(timeout=60).bucket for one in judged} == {"wrong_answer"}
