"""Other looks of a task: its rule stays, and so does its look wherever it is asked."""

from dataclasses import replace
from pathlib import Path

import pytest
from small_sets import first_of

from rlvr_exp.domains.arc import prompt as wording
from rlvr_exp.domains.arc.options import Prompt, Randomise
from rlvr_exp.domains.arc.puzzle import to_lists
from rlvr_exp.domains.arc.tasks import EMBEDDED, Arc


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Arc:
    return Arc(first_of(EMBEDDED, tmp_path_factory.mktemp("rows")))


def test_colours_change_places_alike_in_all_grids_and_the_background_stays(plain: Arc) -> None:
    changed = replace(plain, randomise=Randomise(colours=True))
    permutations = set()
    for before, after in zip(plain.splits()["train"], changed.splits()["train"], strict=True):
        new: dict[int, int] = {}
        for one, other in zip(before.problem.cases, after.problem.cases, strict=True):
            for grids in ((one.args[0], other.args[0]), (one.expected, other.expected)):
                for rows in zip(*grids, strict=True):
                    for cell, colour in zip(*rows, strict=True):
                        assert new.setdefault(cell, colour) == colour
        assert new.get(0, 0) == 0 and len({*new.values()}) == len(new)
        assert (before.id, before.family) == (after.id, after.family) and after.gold is None
        shown = [to_lists(grid) for pair in after.inputs.train for grid in pair]
        assert shown == [
            grid for case in after.problem.cases[: len(shown) // 2] for grid in (case.args[0], case.expected)
        ]
        permutations.add(tuple(sorted(new.items())))
    assert len(permutations) > 20
    assert changed.fingerprint("test") != plain.fingerprint("test")
    again = replace(plain, randomise=Randomise(colours=True))
    assert again.fingerprint("test") == changed.fingerprint("test")
    assert replace(changed, seed=5, dev_fraction=0.0).splits()["test"] != changed.splits()["test"]


def test_each_prompt_writes_its_grids_in_one_of_the_ways_and_says_the_same(plain: Arc) -> None:
    changed = replace(plain, randomise=Randomise(grids=["compact", "spaced"]))
    styles = []
    for task in changed.splits()["test"]:
        prompts = {style: wording.write(task.inputs, Prompt(grid=style)) for style in ("compact", "spaced")}
        (style,) = (style for style, text in prompts.items() if text == changed.task_prompt(task))
        assert wording.read(changed.task_prompt(task), Prompt(grid=style)) == task.inputs
        assert changed.retry_prompt(task, "def solve(g):", "wrong").count("\nP\n") == 2
        styles.append(style)
    assert 5 < styles.count("spaced") < 35 and changed.splits() == plain.splits()
    assert [changed.task_prompt(task) for task in reversed(changed.splits()["test"])] == [
        changed.task_prompt(task) for task in changed.splits()["test"]
    ][::-1]


def test_noise_is_in_the_pairs_that_are_shown_alone(plain: Arc) -> None:
    noisy = replace(plain, randomise=Randomise(noise=0.1))
    cells = changed = 0
    for task in noisy.splits()["test"]:
        shown = wording.read(noisy.task_prompt(task), Prompt())
        assert shown.test == task.inputs.test and shown == wording.read(noisy.task_prompt(task), Prompt())
        for pairs in zip(shown.train, task.inputs.train, strict=True):
            for one, other in zip(*pairs, strict=True):
                assert list(map(len, one)) == list(map(len, other))
                found = [a != b for rows in zip(one, other, strict=True) for a, b in zip(*rows, strict=True)]
                cells, changed = cells + len(found), changed + sum(found)
    assert 0.07 < changed / cells < 0.11, "a tenth of the new colours are the old ones"
    assert noisy.splits() == plain.splits() and noisy.fingerprint("test") == plain.fingerprint("test")
    task = noisy.splits()["test"][0]
    assert noisy.retry_prompt(task, "def solve(g):", "wrong").endswith(noisy.task_prompt(task))


def test_a_task_in_other_colours_is_not_its_own_example(plain: Arc) -> None:
    asked = replace(plain, prompt=Prompt(shots=len(plain.splits()["train"]) - 1), randomise=Randomise(colours=True))
    task, original = asked.splits()["train"][0], plain.splits()["train"][0]
    assert wording.write(original.inputs, Prompt()) not in asked.task_prompt(task)


def test_without_a_limit_of_looks_the_embedded_corpus_is_as_shipped(tmp_path: Path) -> None:
    shipped, changed = Arc(limit=3), Arc(limit=3, randomise=Randomise(colours=True))
    assert shipped.sizes() == changed.sizes() and shipped.fingerprint("train") != changed.fingerprint("train")
    assert Arc(limit=3, randomise=Randomise(grids=["json"])).fingerprint("train") == shipped.fingerprint("train")
