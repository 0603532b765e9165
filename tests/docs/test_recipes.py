"""Each recipe has a chain, a page of at most a screen, and the options that its source states, or a deviation that the page names."""

import json
import re
from typing import Any

import pytest
import yaml
from page_commands import PACKAGE

from rlvr_exp.config.compose import compose_lenient
from rlvr_exp.config.load import resolved
from rlvr_exp.records.manifest import flat
from rlvr_exp.runs.chain import chain_plan, links_of

FOLDER = PACKAGE / "docs" / "recipes"
RECIPES: dict[str, dict[str, Any]] = yaml.safe_load((FOLDER / "sources.yaml").read_text(encoding="utf-8"))
"""Each test here goes over all of them, because the default suite runs few cases of a test that has many."""
OWN = {"arc_soar": "arc", "sdpo_code": "mbpp", "distill_14b": "mbpp"}
"""Recipes of one set, and its folder. The others read several sets."""
SIZE = re.compile(
    r"roles$|(roles\.\w+\.)?(model\.|optimizer\.lr)|evaluation\.(tasks|samples|remember|batch_size)|run\.|infer\.(tasks|samples)|optimizer\.matrix_lr|\w+\.batch_size|"
    r"algorithm\.(max_steps|prompts_per_step|group_size|batch_size|max_tokens_per_device|max_sequence_tokens|eval_every_steps)|"
    r"scheduler\.warmup_steps|self_play\.(rounds|tasks|samples|refine)|schedule\.|environment\.tests|data\.path|evaluate\.|parallel\."
)
"""Options in which a rehearsal may differ from its recipe: the model, its rate, and the size."""
SCREEN = 50
"""Lines of a page."""


def row(number: int) -> dict[str, Any]:
    """A task of MBPP."""
    return {
        "task_id": number,
        "text": f"Write a function that adds {number}.",
        "code": f"def add(x):\n    return x + {number}",
        "test_list": [f"assert add({k}) == {k + number}" for k in range(3)],
        "test_setup_code": "",
        "challenge_test_list": [],
    }


def edit(number: int) -> dict[str, Any]:
    """A task of CanItEdit."""
    before, after = f"def add(x):\n    return x - {number}", f"def add(x):\n    return x + {number}"
    tests = f"### START TESTS ###\nassert add(1) == {1 + number}\nassert add(5) == {5 + number}"
    wanted = {"instruction_descriptive": f"Add {number}.", "instruction_lazy": "Fix it.", "taxonomy": {}}
    return {
        "id": number,
        "name": "add",
        "full_name": f"{number}_add",
        "before": before,
        "after": after,
        "tests": tests,
        **wanted,
    }


def puzzle(number: int) -> dict[str, Any]:
    """A task of ARC: a row and its reverse."""
    rows = [[shift, *map(int, f"{number:04d}"), shift + 1] for shift in range(1, 5)]
    pairs = [{"input": [row], "output": [row[::-1]]} for row in rows]
    return {"train": pairs[:3], "test": pairs[3:]}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder with a file of each set that the chains read."""
    folder = tmp_path_factory.mktemp("sets")
    ids = [
        *range(2, 6),
        *range(11, 31),
        *range(511, 531),
        *range(601, 661),
    ]  # MBPP's prompts, test, validation and training.
    (folder / "commits").mkdir()
    (folder / "canitedit").mkdir()
    (folder / "canitedit" / "canitedit.jsonl").write_text(
        "".join(json.dumps(edit(number)) + "\n" for number in range(5))
    )
    for place, numbers in (("training", range(60)), ("evaluation", range(100, 120))):
        (folder / "arc" / "data" / place).mkdir(parents=True)
        for number in numbers:
            (folder / "arc" / "data" / place / f"{place}{number}.json").write_text(json.dumps(puzzle(number)))
    for name in ("mbpp", "human_eval_plus", "mbpp_plus"):
        (folder / name).mkdir()
        (folder / name / "mbpp.jsonl").write_text("".join(json.dumps(row(number)) + "\n" for number in ids))
    return str(folder)


def page(name: str) -> str:
    return (FOLDER / f"{name}.md").read_text(encoding="utf-8")


def chain(name: str, folder: str, *words: str) -> Any:
    return compose_lenient(["+stage=chain", f"chain={name}", f"chain.path={folder}", *words]).config


def test_a_recipe_has_what_its_source_states(subtests: pytest.Subtests, data: str) -> None:
    for name in RECIPES:
        with subtests.test(name):
            about, options = RECIPES[name], dict[str, dict[str, Any]]()
            for job in links_of(chain(name, data).chain, PACKAGE / "x"):
                options[job.name] = flat(resolved(compose_lenient(list(job.words))))
            stated = {(link, key): value for link, keys in about["stated"].items() for key, value in keys.items()}
            differing = {key for (link, key), value in stated.items() if options[link].get(key) != value}
            assert differing == set(about.get("ours", {})), (
                "each deviation stands under `ours` with its reason, and nothing else does"
            )
            assert stated and about["not_stated"] and about["figure"] and about["source"]


def test_a_page_names_source_figure_deviations_and_what_was_not_run(subtests: pytest.Subtests) -> None:
    for name in RECIPES:
        with subtests.test(name):
            text = page(name)
            assert len(text.splitlines()) <= SCREEN
            assert f"chain={name}" in text and RECIPES[name]["source"].split(",")[0] in text and "Not run by us" in text
            assert all(f"`{key}`" in text for key in RECIPES[name].get("ours", {}))
            assert "32 GB" in text


def test_a_recipe_is_planned_for_a_32_gb_device(subtests: pytest.Subtests, data: str) -> None:
    for name in RECIPES:
        with subtests.test(name):
            place = f"{data}/{OWN[name]}" if name in OWN else data
            plan = chain_plan(chain(name, place, 'chain.words=["parallel.device=rtx5090"]'))
            assert "TOO MUCH" not in plan and "to fetch" in plan
            highest = max(map(float, re.findall(r"memory: ([\d.]+) of", plan)))
            assert f"{highest:.1f} GiB" in page(name), "the page tells what is planned"


def test_a_rehearsal_differs_in_size_alone(subtests: pytest.Subtests, data: str) -> None:
    for name in RECIPES:
        with subtests.test(name):
            found = []
            for which in (name, f"rehearsal/{name}"):
                links = links_of(chain(which, data).chain, PACKAGE / "x")
                found.append({job.name: flat(resolved(compose_lenient(list(job.words)))) for job in links})
            whole, small = found
            assert list(whole) == list(small)
            for link, options in whole.items():
                if small[link]["stage"] != options["stage"]:
                    assert options["stage"] == "prepare", "a download alone is replaced"
                    continue
                differing = {key for key in {*options, *small[link]} if options.get(key) != small[link].get(key)}
                assert not [key for key in differing if not SIZE.match(key)], link


def test_every_page_of_a_recipe_is_in_the_index() -> None:
    index = (FOLDER / "README.md").read_text(encoding="utf-8")
    pages = {path.stem for path in FOLDER.glob("*.md")} - {"README"}
    assert pages == {name for name in pages if f"({name}.md)" in index} and set(RECIPES) < pages
