"""The corpus of ARC: families, styles, compositions, checks; and the splits as shipped, equal to those that the code draws."""

import os
import subprocess
import sys
from collections import Counter
from itertools import combinations
from random import Random

import pytest
from shipped import Shipped, fingerprint
from thinning import thinned

from rlvr_exp.core import seeds
from rlvr_exp.domains.arc.generator import corpus
from rlvr_exp.domains.arc.generator.corpus import (
    EMBEDDED,
    Trace,
    between,
    build,
    load,
    render,
    shape,
    size_names,
    unambiguous,
)
from rlvr_exp.domains.arc.generator.families import FAMILIES
from rlvr_exp.domains.arc.generator.family import Draw
from rlvr_exp.domains.arc.tasks import EMBEDDED as ASSETS

FLIP = "[[g[r][w - 1 - c] for c in range(w)] for r in range(h)]"


def bodies_of(family, seed):
    rng = seeds.stream("test", family.name, seed)
    palette = family.source.palette(rng)
    return rng, palette, family.bodies(Draw(rng, palette))


def grid_of(family, rng, palette):
    fitting = [(h, w) for h in corpus.SIDES for w in corpus.SIDES if EMBEDDED.show(family, h, w)]
    return family.source.grid(rng, *rng.choice(fitting), palette)


def built(names, tries=300, sizes=EMBEDDED):
    draws = (build([FAMILIES[name] for name in names], seeds.stream("test", *names, i), sizes) for i in range(tries))
    return [task for task in draws if task is not None]


def test_there_are_enough_families_and_most_are_written_in_both_styles():
    bodies = [bodies_of(family, 0)[2] for family in FAMILIES.values()]
    assert len(FAMILIES) >= 60
    assert sum(bool(body.short and body.indexed) for body in bodies) >= 45
    assert len(corpus.UNSEEN_FAMILIES) >= 8 and set(corpus.UNSEEN_FAMILIES) <= set(FAMILIES)


@pytest.mark.parametrize("name", thinned(FAMILIES))
def test_every_style_of_a_family_gives_the_same_grids(name):
    for seed in range(3):
        rng, palette, body = bodies_of(FAMILIES[name], seed)
        assert not size_names(body.short) and (not body.indexed or size_names(body.indexed))
        for _ in range(5):
            given = grid_of(FAMILIES[name], rng, palette)
            programs = [render([text]) for text in (body.short, body.indexed) if text]
            programs += [render([body.indexed], [shape(given)])] if body.indexed else []
            results = [load(program)([list(row) for row in given]) for program in programs]
            assert all(result == results[0] for result in results), programs


@pytest.mark.parametrize("sides", [(4, 8), (5, 6), (6, 15)])
def test_a_corpus_of_other_sizes_has_inputs_for_every_family_and_larger_grids(sides):
    low, high = sides
    grids = between(low, high)
    for family in FAMILIES.values():
        assert any(grids.show(family, h, w) for h in grids.sides for w in grids.sides), family.name
    drawn = [task for name in ("flip_lr", "tile_quad", "border") for task in built([name], 60, grids)]
    found = {side for task in drawn for given, _ in task.pairs for side in shape(given)}
    assert drawn and min(found) >= low and max(found) == high
    assert {task.family for task in drawn} == {"flip_lr", "tile_quad", "border"}


@pytest.mark.parametrize("name", ["flip_lr", "recolour", "fall_down", "bounding_box", "halo"])
def test_tasks_are_visible_in_bounds_and_solved_by_their_program(name):
    for task in built([name], 40):
        outputs = [after for _, after in task.pairs]
        assert [load(task.program)(before) for before, _ in task.pairs] == outputs
        assert sum(before != after for before, after in task.pairs[:-1]) >= 2
        assert all(2 <= len(before) <= 6 and 2 <= len(before[0]) <= 6 for before, _ in task.pairs)
        assert all(
            4 <= len(after) * len(after[0]) <= 48 and len({v for row in after for v in row}) > 1 for after in outputs
        )
        assert len({str(before) for before, _ in task.pairs}) == corpus.PAIRS


def test_a_literal_program_is_only_given_for_inputs_of_one_shape():
    tasks = built(["flip_lr"])
    literal = [task for task in tasks if task.style == "literal"]
    assert literal and {task.style for task in tasks} == {"literal", "indexed", "short"}
    for task in literal:
        h, w = shape(task.pairs[0][0])
        assert f"h, w = {h}, {w}\n" in task.program
        assert all(shape(before) == (h, w) for before, _ in task.pairs)


def test_styles_come_in_their_shares():
    tasks = [task for name in ("flip_lr", "transpose", "recolour", "pad_top") for task in built([name])]
    alike = [task.style for task in tasks if len({shape(before) for before, _ in task.pairs}) == 1]
    assert len(alike) / len(tasks) == pytest.approx(corpus.ONE_SHAPE_SHARE, abs=0.06)
    for style, share in corpus.STYLES_ONE_SHAPE.items():
        assert alike.count(style) / len(alike) == pytest.approx(share, abs=0.06)


def traces(program, *givens):
    return [Trace((given, load(program)(given))) for given in givens]


def test_a_task_that_another_family_explains_is_refused():
    """With rows alike above and below, a flip is also a half turn; the test grid distinguishes them, too late."""
    alike, other, told = [[1, 2, 3], [1, 2, 3]], [[1, 1, 2], [1, 1, 2]], [[1, 2, 3], [4, 5, 6]]
    flip, rng = FAMILIES["flip_lr"], seeds.stream("test")
    body = flip.bodies(Draw(rng, ()))
    program = render([body.short])
    assert not unambiguous([flip], [body], traces(program, alike, other, alike, told), (1, 2, 3), rng)
    assert unambiguous([flip], [body], traces(program, alike, other, told, told), (1, 2, 3), rng)
    assert unambiguous([flip], [body], traces(program, alike, other, alike, other), (1, 2, 3), rng)


def test_a_parameter_that_the_train_pairs_do_not_show_is_refused():
    """A square with a hole has windows of 3, 5 or 8 cells, so a limit of 4 looks like 5; a full square also has 4."""
    ring, full, family = [[1, 2, 3], [4, 0, 5], [6, 7, 8]], [[1, 2, 3], [4, 1, 5], [6, 7, 8]], FAMILIES["crowded"]
    palette = tuple(range(9))
    body = family.bodies(Draw(seeds.stream("test", "crowded"), palette))
    program = render([body.indexed])
    rng = seeds.stream("test", "alternatives")
    assert not unambiguous([family], [body], traces(program, ring, ring, ring, full), palette, rng)
    assert unambiguous([family], [body], traces(program, ring, ring, full, full), palette, rng)


def test_two_steps_renew_sizes_only_where_they_change():
    flip_then_crop = render([FLIP, "[[g[r][c] for c in range(w - 1)] for r in range(h)]"], [(3, 4), (3, 4)])
    crop_then_flip = render(["[[g[r][c] for c in range(w - 1)] for r in range(h)]", FLIP], [(3, 4), (3, 3)])
    assert flip_then_crop.count("h, w = ") == 1
    assert "    h, w = 3, 4\n" in crop_then_flip and "    w = 3\n" in crop_then_flip
    assert render([FLIP, FLIP]).count("h, w = len(g), len(g[0])") == 2


def test_a_composition_that_equals_a_family_gives_no_task():
    assert built(["flip_lr", "flip_ud"], 60) == []
    assert built(["flip_lr", "roll_down"], 60)


SHIPPED = Shipped(ASSETS)
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
    packed = (ASSETS / f"{split}.jsonl.xz").read_bytes()
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
