"""Which set a task comes from, by domain, and mixtures that cannot be."""

import json
import shutil
from pathlib import Path

import arc_samples
import dafny_samples
import pytest

from rlvr_exp.core.errors import InputError
from rlvr_exp.domains.arc.tasks import EMBEDDED, Arc
from rlvr_exp.domains.code.tasks import Code
from rlvr_exp.domains.dafny.tasks import DafnyDomain
from rlvr_exp.domains.edits.tasks import Edits
from rlvr_exp.tasks.base import Domain, Task
from rlvr_exp.tasks.sources import by_source, embedded_content, source_of


def sources(domain: Domain) -> dict[str, str]:
    return {task.id: task.source for tasks in domain.splits().values() for task in tasks}


@pytest.mark.parametrize(
    ("names", "source"),
    [
        (("training", "old.jsonl.xz"), "old"),
        (("re_arc", "training"), "re_arc"),
        (("training", "deep"), "deep"),
        (("train.jsonl",), "sets"),
        (("validation", "test.jsonl"), "sets"),
        ((), "sets"),
    ],
)
def test_a_source_is_the_first_name_that_is_no_split(tmp_path: Path, names: tuple[str, ...], source: str) -> None:
    assert source_of(tmp_path / "sets", names) == source


def test_puzzles_come_from_the_folder_or_the_file_of_their_set(tmp_path: Path) -> None:
    tasks = arc_samples.many(8)
    parts = [dict(list(tasks.items())[start : start + 2]) for start in range(0, 8, 2)]
    arc_samples.write_folder(tmp_path / "arc1" / "training", parts[0])
    arc_samples.write_folder(tmp_path / "arc2" / "evaluation", parts[1])
    arc_samples.write_rows(tmp_path, parts[2], "mirrors", family="mirror")
    arc_samples.write_two_files(tmp_path, parts[3], "big")
    found = sources(Arc(path=str(tmp_path), dev_fraction=0, test_fraction=0))
    wanted = ["arc1", "arc2", "mirrors", "big_challenges"]
    assert found == {name: source for part, source in zip(parts, wanted, strict=True) for name in part}


def test_equal_puzzles_have_one_fingerprint_whatever_their_folder(tmp_path: Path) -> None:
    for name in ("one", "other"):
        arc_samples.write_rows(tmp_path / name, arc_samples.many(2))
    one, other = (Arc(path=str(tmp_path / name)) for name in ("one", "other"))
    assert set(sources(one).values()) == {"one"} and set(sources(other).values()) == {"other"}
    assert one.fingerprint("train") == other.fingerprint("train")


def test_dafny_programs_come_from_the_file_or_the_folder_of_their_set(tmp_path: Path) -> None:
    dafny_samples.write_rows(tmp_path / "rows", loops=(dafny_samples.SUM,), lemmas=(dafny_samples.GROWS,))
    found = sources(DafnyDomain(path=str(tmp_path / "rows"), role="both"))
    assert {(name.partition("/")[0], source) for name, source in found.items()} == {
        ("sum", "loops"),
        ("grows", "lemmas"),
    }
    programs = tmp_path / "programs"
    for name, example in {"mine/a": dafny_samples.SUM, "b": dafny_samples.MAX}.items():
        file = programs / f"{name}.dfy"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(example.gold)
    assert set(sources(DafnyDomain(path=str(programs), role="writer")).values()) == {"mine", "programs"}


def test_rows_of_programs_name_their_source(tmp_path: Path) -> None:
    rows = [
        {"id": f"t{number}", "prompt": f"Add {number}.", "tests": [f"assert add(2) == {2 + number}"], **own}
        for number, own in enumerate(({"source": "mine"}, {"family": "sums"}, {}))
    ]
    (tmp_path / "own.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert sources(Code(path=str(tmp_path), weak=True)) == {"t0": "mine", "t1": "rows", "t2": "rows"}


def test_edits_have_the_source_of_their_row(tmp_path: Path) -> None:
    row = {"id": "a", "source": "commits", "family": "renames", "instruction": "b", "before": "a\n", "after": "b\n"}
    (tmp_path / "train.jsonl").write_text(json.dumps(row) + "\n")
    assert sources(Edits(path=str(tmp_path), target="text")) == {"a": "commits"}


def task(name: str, source: str = "") -> Task:
    return Task(name, "f", 0.0, None, None, source=source)


TASKS = [task("a1", "a"), task("b1", "b"), task("a2", "a"), task("none")]


def test_tasks_are_sorted_by_the_sources_of_the_mixture() -> None:
    assert by_source(TASKS, {"a": 1}) == {"a": [TASKS[0], TASKS[2]]}


@pytest.mark.parametrize(
    ("tasks", "mix", "said"),
    [
        (TASKS, {"a": 1, "c": 1}, ["no task to train on comes from there", "got: c", "a (2 tasks), b (1 tasks)"]),
        ([task("x")], {"a": 1}, ["do not say from which set they come", "drop it"]),
        ([*TASKS, task("a1", "b")], {"a": 1, "b": 1}, ["tasks of a and b have one id", "a1"]),
    ],
)
def test_what_cannot_be_mixed_is_named(tasks, mix, said) -> None:
    with pytest.raises(InputError) as refused:
        by_source(tasks, mix)
    assert all(words in str(refused.value) for words in said), str(refused.value)


def test_splits_limits_and_seeds_differ():
    found = [Arc().fingerprint("dev"), Arc().fingerprint("test"), Arc(limit=5).fingerprint("dev")]
    found += [Arc(limit=5, seed=1).fingerprint("dev"), Arc(limit=6).fingerprint("dev")]
    assert len(set(found)) == 5 and Arc(seed=1).fingerprint("dev") == found[0]


@pytest.mark.slow
def test_a_changed_file_is_hashed_by_its_tasks(tmp_path, monkeypatch):
    corpus = tmp_path / "arc"
    shutil.copytree(EMBEDDED, corpus)
    shutil.copy(EMBEDDED.with_name("arc.manifest.json"), tmp_path)
    assert embedded_content(corpus, "dev") == embedded_content(EMBEDDED, "dev") is not None
    shutil.copy(corpus / "test.jsonl.xz", corpus / "dev.jsonl.xz")
    embedded_content.cache_clear()
    assert embedded_content(corpus, "dev") is None and embedded_content(corpus, "hidden") is None
    monkeypatch.setattr("rlvr_exp.domains.arc.tasks.EMBEDDED", corpus)
    assert Arc().fingerprint("dev") != Arc().fingerprint("test") and len(Arc().fingerprint("dev")) == 32
