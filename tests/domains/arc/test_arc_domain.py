"""The ARC domain: splits, prompts with shots, fingerprints, and the check of data before a run."""

import dataclasses
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from arc_samples import many, simple, write_folder, write_rows, write_two_files
from makers import made

import rlvr_exp
from rlvr_exp.core.errors import GuardStop, InputError
from rlvr_exp.domains.arc import prompt, puzzle
from rlvr_exp.domains.arc.prompt import Wording, read
from rlvr_exp.domains.arc.tasks import Arc, pairs
from rlvr_exp.evaluation.leakage import apart
from rlvr_exp.tasks.base import MOST_FEEDBACK
from rlvr_exp.tasks.formats.python_io import Case
from rlvr_exp.verifiers.base import Verdict

GOLD = "def solve(g):\n    return [r[::-1] for r in g]\n"


def ids(domain: Arc) -> dict[str, list[str]]:
    return {name: [task.id for task in tasks] for name, tasks in domain.splits().items()}


def four_splits(root: Path, **more: Any) -> None:
    tasks = list(many(40).items())
    for number, split in enumerate(("train", "dev", "test", "test_unseen")):
        write_rows(root, dict(tasks[10 * number : 10 * number + 10]), split, **more)


def test_a_task_is_asked_and_judged_on_all_its_pairs(tmp_path: Path) -> None:
    write_rows(tmp_path, {"a": simple(1)}, family="mirror", program=GOLD)
    (task,) = Arc(str(tmp_path)).splits()["train"]
    assert (task.id, task.family, task.gold) == ("a", "mirror", GOLD)
    assert task.problem.entry_point == "solve"
    assert task.problem.cases == (Case(([[1, 0]],), [[0, 1]]), Case(([[1, 0], [0, 1]],), [[0, 1], [1, 0]]))
    assert Arc(str(tmp_path)).task_prompt(task) == "I\n10\nO\n01\nT\n10\n01\nP\n"
    assert Arc(str(tmp_path)).parse(f"```python\n{GOLD}```", task).text == task.gold
    space: dict[str, Any] = {}
    exec(task.gold, space)
    assert all(space["solve"](*case.args) == case.expected for case in task.problem.cases)


def test_upstream_evaluation_is_test_and_dev_comes_from_training(tmp_path: Path) -> None:
    tasks = list(many(60).items())
    write_folder(tmp_path / "training", dict(tasks[:40]))
    write_folder(tmp_path / "evaluation", dict(tasks[40:]))
    found = ids(Arc(str(tmp_path), dev_fraction=0.25))
    assert found["test"] == [name for name, _ in tasks[40:]]
    assert len(found["dev"]) == 10
    assert sorted(found["train"] + found["dev"]) == [name for name, _ in tasks[:40]]
    assert set(ids(Arc(str(tmp_path), dev_fraction=0))) == {"train", "test"}
    assert set(ids(Arc(str(tmp_path / "evaluation")))) == {"test"}


def test_the_two_file_layout_splits_alike(tmp_path: Path) -> None:
    tasks = list(many(60).items())
    write_two_files(tmp_path / "two", dict(tasks[:40]), "arc-agi_training")
    write_two_files(tmp_path / "two", dict(tasks[40:]), "arc-agi_evaluation")
    write_folder(tmp_path / "one" / "training", dict(tasks[:40]))
    write_folder(tmp_path / "one" / "evaluation", dict(tasks[40:]))
    two, one = (ids(Arc(str(tmp_path / name))) for name in ("two", "one"))
    assert set(two["test"]) == set(one["test"])
    assert len(two["dev"]) == len(one["dev"]) == 4


def test_data_without_splits_are_split_by_content(tmp_path: Path) -> None:
    tasks = many(100)
    write_folder(tmp_path / "a", tasks)
    write_folder(tmp_path / "b", {f"other{name}": task for name, task in tasks.items()})
    first, same, other = (Arc(str(tmp_path / name), seed=seed) for name, seed in (("a", 0), ("a", 0), ("a", 1)))
    assert ids(first) == ids(same) != ids(other)
    sizes = {name: len(found) for name, found in ids(first).items()}
    assert sum(sizes.values()) == 100 and abs(sizes["test"] - 10) <= 1 and abs(sizes["dev"] - 10) <= 1


def test_tasks_that_share_a_pair_are_never_on_two_sides(tmp_path: Path) -> None:
    tasks = many(30)
    write_folder(tmp_path / "free" / "x", tasks)
    write_folder(tmp_path / "free" / "y", tasks)
    for names in ids(Arc(str(tmp_path / "free"))).values():
        assert {name.removeprefix("x/") for name in names if name[0] == "x"} == {
            name.removeprefix("y/") for name in names if name[0] == "y"
        }
    write_folder(tmp_path / "fixed" / "training", tasks)
    write_folder(tmp_path / "fixed" / "evaluation", {"t003": tasks["t003"]})
    found = ids(Arc(str(tmp_path / "fixed")))
    assert (found["overlap"], found["test"]) == (["training/t003"], ["evaluation/t003"])
    assert len(found["train"]) + len(found["dev"]) == 29


def test_hidden_tests_are_asked_but_stand_apart(tmp_path: Path) -> None:
    hidden = simple(5)
    del hidden["test"][0]["output"]
    write_folder(tmp_path / "evaluation", {"h": hidden, "open": simple(6)})
    domain = Arc(str(tmp_path))
    assert ids(domain) == {"test": ["open"], "hidden": ["h"]}
    (task,) = domain.splits()["hidden"]
    assert [case.args for case in task.problem.cases] == [(hidden["train"][0]["input"],)] and task.inputs.hidden
    assert "T\n50\n05\n" in domain.task_prompt(task)


def test_limit_takes_the_first_of_a_seeded_shuffle(tmp_path: Path) -> None:
    four_splits(tmp_path)
    everything, some, fewer = (ids(Arc(str(tmp_path), limit=limit)) for limit in (0, 6, 3))
    assert {name: len(tasks) for name, tasks in everything.items()} == dict.fromkeys(
        ("train", "dev", "test", "test_unseen"), 10
    )
    for split in everything:
        assert len(some[split]) == 6 and set(some[split]) < set(everything[split])
        assert some[split][:3] == fewer[split]
    assert some != ids(Arc(str(tmp_path), limit=6, seed=1))
    assert any(some[split] != everything[split][:6] for split in everything)


@pytest.mark.parametrize("style", prompt.STYLES)
def test_shots_are_solved_train_tasks_and_never_the_task(tmp_path: Path, style: str) -> None:
    four_splits(tmp_path, program=GOLD)
    options = Wording(style=style, grid="compact", shots=4)
    domain = Arc(str(tmp_path), prompt=options)
    for split in ("train", "test"):
        for task in domain.splits()[split]:
            text = domain.task_prompt(task)
            assert text == Arc(str(tmp_path), prompt=options).task_prompt(task)
            assert text.count("return [r[::-1] for r in g]") == 4
            assert read(text, options) == task.inputs
            alone = Arc(str(tmp_path), prompt=Wording(style=style)).task_prompt(task)
            assert text.count(alone) == 1 and text.endswith(alone)
    limited = Arc(str(tmp_path), limit=1, prompt=options)
    (one,) = limited.splits()["train"]
    assert limited.task_prompt(one).count("return [r[::-1] for r in g]") == 4, "examples are of the complete split"
    first = domain.splits()["test"][0]
    assert domain.task_prompt(first) != Arc(str(tmp_path), prompt=options, seed=1).task_prompt(first)


def test_data_without_programs_borrow_embedded_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    four_splits(tmp_path / "embedded", program=GOLD)
    monkeypatch.setattr("rlvr_exp.domains.arc.tasks.EMBEDDED", tmp_path / "embedded")
    write_folder(tmp_path / "own", {"a": simple(9, 30)})
    domain = Arc(str(tmp_path / "own"), prompt=Wording(shots=2))
    (tasks,) = domain.splits().values()
    assert domain.task_prompt(tasks[0]).count(GOLD) == 2


def test_too_many_shots_are_refused(tmp_path: Path) -> None:
    four_splits(tmp_path, program=GOLD)
    domain = Arc(str(tmp_path), prompt=Wording(shots=11))
    with pytest.raises(InputError, match="only 10 solved examples"):
        domain.task_prompt(domain.splits()["test"][0])


def test_a_fingerprint_follows_content(tmp_path: Path) -> None:
    four_splits(tmp_path)
    before = Arc(str(tmp_path))
    prints = {name: before.fingerprint(name) for name in before.splits()}
    assert len(set(prints.values())) == 4
    assert prints["dev"] == Arc(str(tmp_path)).fingerprint("dev") != Arc(str(tmp_path), limit=3).fingerprint("dev")
    write_rows(tmp_path, {"t010": simple(3, 9)}, "dev")
    after = Arc(str(tmp_path))
    assert {name for name in prints if after.fingerprint(name) != prints[name]} == {"dev"}


def test_the_embedded_corpus_is_there_without_a_path() -> None:
    domain = Arc(limit=3)
    assert {name: len(tasks) for name, tasks in domain.splits().items()} == dict.fromkeys(
        ("train", "dev", "test", "test_unseen"), 3
    )
    for task in (task for tasks in domain.splits().values() for task in tasks):
        assert read(domain.task_prompt(task), Wording()) == task.inputs
        assert domain.parse(task.gold or "", task).text == (task.gold or "").strip("\n") + "\n"


def test_choices_of_the_wording_are_those_of_the_schema() -> None:
    choices = {f.name: f.metadata["allowed"].choices for f in dataclasses.fields(prompt.Wording)}
    assert (choices["style"], choices["grid"]) == (prompt.STYLES, puzzle.STYLES)


@pytest.mark.slow
@pytest.mark.property(36)
def test_embedded_splits_have_no_pair_in_common() -> None:
    """Which is why a run does not look for any."""
    splits = Arc().splits()
    found = {name: {pair for task in tasks for pair in pairs(task)} for name, tasks in splits.items()}
    assert len(found) == 4 and all(len(one) > 200 for one in found.values())
    held_out = found["dev"] | found["test"] | found["test_unseen"]
    assert found["train"].isdisjoint(held_out)


@pytest.mark.property(36)
def test_real_tasks_are_kept_apart_by_their_pairs(tmp_path: Path) -> None:
    """Under another id and in another order of pairs."""
    first, second = {"a": simple(1), "b": simple(2)}, {"z": {**simple(1), "train": simple(1)["train"][::-1]}}
    write_rows(tmp_path, first, "train")
    write_rows(tmp_path, second, "test")
    domain = Arc(str(tmp_path))
    splits = domain.splits()
    assert apart(domain, splits["train"], splits["test"]).left_out == {"a": "z"}


def test_the_row_of_the_page_has_a_gold_that_solves_it(tmp_path: Path) -> None:
    page = (Path(rlvr_exp.__file__).parent / "docs" / "arc.md").read_text()
    row = re.search(r"<!-- row: gold -->\n```json\n(.*?)```", page, re.DOTALL)[1]
    (tmp_path / "train.jsonl").write_text(row)
    (task,) = Arc(str(tmp_path)).splits()["train"]
    names: dict[str, Any] = {}
    exec(task.gold, names)
    assert task.id == "flip" and all(names["solve"](*case.args) == case.expected for case in task.problem.cases)


def test_what_is_there_is_counted(tmp_path: Path) -> None:
    given = list(many(30).items())
    write_folder(tmp_path / "data" / "training", dict(given[:20]))
    write_folder(tmp_path / "data" / "evaluation", dict(given[20:]))
    text, counts = made(tmp_path, "arc_check", f"prepare.path={tmp_path}/data")
    lines = text.splitlines()
    assert "tasks: 30 in 2 families" in lines and "pairs: 30 train, 30 test" in lines
    assert "splits: train=18 dev=2 test=10" in lines and counts == {"tasks/train": 18, "tasks/dev": 2, "tasks/test": 10}
    assert "largest grid: 2 rows, 5 columns" in lines
    assert lines[-1] == "prompts that do not read back: 0"


def test_faults_are_bad_input(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps({"train": [], "test": 3}))
    with pytest.raises(InputError) as found:
        made(tmp_path, "arc_check", f"prepare.path={tmp_path}")
    assert "a.json, train: no pairs" in str(found.value) and "a.json, test: no pairs" in str(found.value)


@pytest.mark.parametrize(
    "damage", [lambda text: text.replace("0", "9", 40), lambda text: text[:20], lambda text: "P\n"]
)
def test_a_prompt_that_loses_its_puzzle_stops_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: Callable[[str], str]
) -> None:
    write_folder(tmp_path / "data", many(3))
    write = prompt.write
    monkeypatch.setattr(prompt, "write", lambda puzzle, options: damage(write(puzzle, options)))
    with pytest.raises(GuardStop, match="do not read back: 3\n"):
        made(tmp_path, "arc_check", f"prepare.path={tmp_path}/data")


def test_feedback_tells_a_train_pair_and_hides_the_output_of_a_test() -> None:
    domain = Arc()
    task = domain.splits()["dev"][0]
    first = f"case {len(task.inputs.train)}"
    tell = {case: Verdict("failed", "wrong_answer", log=f"{case}: gave 7, expected 8") for case in ("case 0", first)}
    assert domain.feedback(task, tell["case 0"]) == "wrong_answer: case 0: gave 7, expected 8"
    assert domain.feedback(task, tell[first]) == f"wrong_answer: hidden {first}"
    error = Verdict("failed", "runtime_error", log=f"{first}: IndexError")
    assert domain.feedback(task, error) == f"runtime_error: {first}: IndexError"
    assert len(domain.feedback(task, Verdict("failed", "runtime_error", log="x" * 9000))) == MOST_FEEDBACK


def test_a_teacher_sees_the_solution_before_the_task() -> None:
    bare, worded = Arc(), Arc(prompt=Wording(style="instruct"))
    task = bare.splits()["dev"][0]
    assert bare.teacher_prompt(task, "def f(): 1", "def f(): 2", "it failed").endswith(
        "def f(): 1\n\n" + bare.task_prompt(task)
    )
    alone = bare.teacher_prompt(task, "", "def f(): 2", "it failed")
    assert alone == bare.retry_prompt(task, "def f(): 2", "it failed")
    said = worded.teacher_prompt(task, "def f(): 1", "", "it failed")
    assert said.startswith(worded.task_prompt(task).rstrip("\n")) and "def f(): 1" in said and "it failed" in said
    assert "Correct solution" not in worded.teacher_prompt(task, "", "", "it failed")
