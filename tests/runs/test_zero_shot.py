"""Property 48: no answer without the proof that nothing of the target was in training."""

import json
import lzma
import re
from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from planted import TASKS, evaluated, known_by, plant

from rlvr_exp.config.compose import compose, compose_lenient
from rlvr_exp.config.model import EMBEDDED_MODELS, Adapter, Model
from rlvr_exp.core.errors import InputError
from rlvr_exp.core.files import write_json
from rlvr_exp.domains.arc.tasks import EMBEDDED
from rlvr_exp.records import manifest
from rlvr_exp.runs.lineage import TrainedTasks, trained_by
from rlvr_exp.runs.studies.zero_shot import ZeroShot
from rlvr_exp.runs.study import JobRun

GREEDY = "pass_at_1_greedy"
Row = dict[str, Any]


def rows_of(split: str, count: int) -> list[Row]:
    with lzma.open(EMBEDDED / f"{split}.jsonl.xz", "rt") as lines:
        return [json.loads(line) for line in islice(lines, count)]


def data(folder: Path, changed: Callable[[list[Row], list[Row]], None] = lambda target, train: None) -> Path:
    """Rows of a train, a dev and a test split, and a target of which nothing is in them but for what is changed."""
    target, train = rows_of("test_unseen", TASKS), rows_of("train", 20)
    for number, row in enumerate(target):
        row["id"] = f"t{number}"
    changed(target, train)
    folder.mkdir(parents=True)
    splits = {"train": train, "dev": rows_of("dev", 5), "test": rows_of("test", 5), "test_unseen": target}
    for name, rows in splits.items():
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def study(folder: Path, **more: Any) -> ZeroShot:
    options = {"seeds": [0, 1], "metric": GREEDY, "words": [f"data.path={folder}"], **more}
    return ZeroShot(command=["+stage=grpo"], **options)


def measured(tmp_path: Path, asked: ZeroShot, passes: Callable[[str, int], bool]) -> list[JobRun]:
    """Its runs; `passes(arm, task)`: trained, base_on_target and trained_on_target after, `before` the training before it."""
    runs = []
    for job in [
        *asked.trainings(),
        *asked.others(),
        *(m for training in asked.trainings() for m in asked.measurements(training, "")),
    ]:
        run = plant(tmp_path, job, lambda task, job=job: passes(job.arm, task))
        known_by(run.directory, job.words)
        if job.arm == "trained":
            before = evaluated(run.directory, "before", lambda task: passes("before", task), range(TASKS))
            manifest.update(run.directory, stage="grpo", train={"split": "train", "tasks": 20})
            run = replace(run, summary={**run.summary, "before": before})
        runs.append(run)
    return runs


def rising(arm: str, task: int) -> bool:
    return task % 60 < {"before": 20, "trained": 50, "base_on_target": 10, "trained_on_target": 25}[arm]


@pytest.mark.property(48)
def test_gains_on_seen_and_unseen_tasks_stand_beside_each_other_with_the_proof(tmp_path: Path) -> None:
    asked = study(data(tmp_path / "rows"))
    asked.rounds(tmp_path, 0)  # Refuses nothing before.
    found = asked.summarise(measured(tmp_path, asked, rising))
    assert found.answer[0] == (
        f"{GREEDY} changes by +25.0 points on unseen families, by +50.0 on those trained on; beyond chance: seen and unseen."
    )
    assert found.answer[1].startswith("on seen tasks: +50.0 points [") and ", 60 tasks" in found.answer[2]
    assert found.answer[-1] == (
        "No task, family or program of the target's 60 tasks is among the tasks that were trained on (20 of trained_seed0,"
        " 12,000 of model=tiny, 20 of trained_seed1), by the data and records of the runs."
    )
    seen, unseen = found.tables["gains"]
    assert (seen["before"], seen["after"], unseen["gain"]) == pytest.approx((1 / 3, 5 / 6, 0.25))
    assert [row["tasks"] for row in found.tables["proof"]] == [20, 12000, 20, 60]


def test_a_target_that_is_hardly_ever_solved_tells_nothing(tmp_path: Path) -> None:
    asked = study(data(tmp_path / "rows"), seeds=[0])
    found = asked.summarise(measured(tmp_path, asked, lambda arm, task: task < (2 if "target" in arm else 30)))
    assert found.answer[0].startswith("On unseen tasks: Cannot tell: all arms lie under 5%")


def of_family(target: list[Row], train: list[Row]) -> None:
    target[3]["family"] = train[7]["family"]


def of_program(target: list[Row], train: list[Row]) -> None:
    train[7]["program"] = "# the same with other names\n" + re.sub(r"\bg\b", "board", target[3]["program"])


def of_task(target: list[Row], train: list[Row]) -> None:
    train[7] |= {name: target[3][name] for name in ("train", "test")}


@pytest.mark.property(48)
def test_a_task_a_family_or_a_program_in_common_is_refused(tmp_path: Path) -> None:
    for changed, kind in ((of_family, "family"), (of_program, "program"), (of_task, "task")):
        asked = study(data(tmp_path / kind / "rows", changed))
        if kind != "task":  # A run leaves out what shares its content with a held-out task: only its records tell.
            with pytest.raises(
                InputError, match=rf"were in its training: the training\n    got: 1 by their {kind}: t3 "
            ):
                asked.rounds(tmp_path / kind, 0)
        with pytest.raises(InputError, match=rf"were in its training: trained_seed0\n    got: 1 by their {kind}: t3 "):
            asked.summarise(measured(tmp_path / kind, asked, rising))


def test_families_that_the_initial_policy_has_imitated_are_refused_before_any_run(tmp_path: Path) -> None:
    (family, *_) = (row["family"] for row in rows_of("train", 1))
    asked = study(data(tmp_path / "rows"), families=[family])
    assert asked.trainings()[0].words[-2:] == (f"data.unseen_families=[{family}]", "seed=0")
    with pytest.raises(InputError, match=r"were in its training: model=tiny\n"):
        asked.rounds(tmp_path, 0)


def without(names: tuple[str, ...], rows: list[Row]) -> None:
    for row in rows:
        for name in names:
            del row[name]


@pytest.mark.property(48)
def test_a_copy_of_what_the_initial_policy_has_imitated_is_known_by_its_content(tmp_path: Path) -> None:
    def copied(target: list[Row], train: list[Row]) -> None:
        target[3] |= {name: rows_of("train", 60)[50][name] for name in ("train", "test")}

    with pytest.raises(InputError, match=r"in its training: model=tiny\n    got: 1 by their task: t3 "):
        study(data(tmp_path / "rows", copied)).rounds(tmp_path, 0)


@pytest.mark.property(48)
def test_files_without_families_have_one_family_whatever_they_are_called(tmp_path: Path) -> None:
    folder = data(tmp_path / "rows", lambda target, train: without(("family", "program"), [*target, *train]))
    with pytest.raises(InputError, match=rf"in its training: the training\n    got: {TASKS} by their family: t0 "):
        study(folder).rounds(tmp_path, 0)


@pytest.mark.property(48)
def test_examples_that_are_taken_from_the_embedded_corpus_are_compared(tmp_path: Path) -> None:
    """Of data without programs prompts show the embedded ones."""
    folder = data(tmp_path / "rows", lambda target, train: without(("program",), train))
    config = compose(["+stage=grpo", f"data.path={folder}", "data.prompt.shots=1"]).config
    before, shown, imitated = trained_by(config, "the training")
    assert isinstance(shown, TrainedTasks) and isinstance(before, TrainedTasks) and isinstance(imitated, TrainedTasks)
    assert len(before.tasks) == 20 and len(shown.tasks) == 12000 and shown.where.startswith("solved examples in the")


def test_an_adapter_that_is_continued_brings_what_its_run_was_trained_on(tmp_path: Path) -> None:
    run, folder = tmp_path / "run", data(tmp_path / "rows")
    (run / "checkpoints" / "latest").mkdir(parents=True)
    write_json(
        run / "checkpoints" / "latest" / "adapter_config.json",
        {"base_model_name_or_path": str(EMBEDDED_MODELS / "tiny")},
    )
    known_by(run, ["+stage=grpo", f"data.path={folder}"])
    manifest.update(run, stage="grpo", train={"split": "train", "tasks": 20})
    config = compose(["+stage=evaluate"]).config
    for model in (Model(adapter=Adapter(path=f"{run}/checkpoints/latest")), Model(path=f"{run}/checkpoints/latest")):
        found = [*trained_by(replace(config, model=model), "measured")]
        assert {one.where for one in found} == {str(run), "model=tiny"}


def test_a_policy_from_random_weights_is_refused_before_any_run(tmp_path: Path) -> None:
    asked = study(data(tmp_path / "rows"))
    asked.command[:] = ["+stage=sft", "model.from_scratch=true"]
    with pytest.raises(InputError, match="random weights have no success to gain on"):
        asked.rounds(tmp_path, 0)


@pytest.mark.slow
@pytest.mark.property(48)
def test_the_target_may_be_another_domain_with_the_same_initial_policy(tmp_path: Path) -> None:
    asked = study(data(tmp_path / "rows"), words=[], target=["data=problems", "model=tiny"])
    asked.command.append(f"data.path={tmp_path / 'rows'}")
    arms = [job.arm for job in asked.rounds(tmp_path, 0).batch()]
    assert sorted(arms) == ["base_on_target"] * 2 + ["trained"] * 2
    asked.target.pop()  # The policy that the data choose.
    with pytest.raises(InputError, match="name it in study.words, or in study.target with data that choose another"):
        asked.rounds(tmp_path, 0)


@pytest.mark.parametrize("word", ["model.from_scratch=true", "model.adapter.path=A"])
def test_weights_that_a_measurement_could_not_replace_are_refused_before_any_run(word: str) -> None:
    found = compose_lenient(["+stage=study", "study=landscape", f'study.words=["{word}"]']).problems
    assert [one.where for one in found] == ["study.words"] and "excludes" in found[0].what
    harmless = 'study.words=["model.from_scratch=false"]'
    assert not compose_lenient(["+stage=study", "study=landscape", harmless]).problems


def test_solved_examples_of_the_targets_family_are_no_zero_shot(tmp_path: Path) -> None:
    asked = study(
        data(tmp_path / "rows"), target=["data.path=" + str(data(tmp_path / "other", of_family)), "data.prompt.shots=1"]
    )
    asked.target.append("evaluation.split=test_unseen")
    with pytest.raises(InputError, match="were in its training: solved examples in the prompt"):
        asked.rounds(tmp_path, 0)


def test_data_that_have_changed_since_and_another_initial_policy_prove_nothing(tmp_path: Path) -> None:
    folder = data(tmp_path / "rows")
    runs = measured(tmp_path, asked := study(folder), rising)
    base = [run.directory / "manifest.json" for run in runs if run.job.arm == "base_on_target"]
    known = json.loads(base[0].read_text())
    for path in base:
        write_json(path, known | {"start": {"model/other.safetensors": "0"}})
    with pytest.raises(InputError, match="with another policy than the one that training starts with"):
        asked.summarise(runs)
    for path in base:
        write_json(path, known)
    (folder / "dev.jsonl").write_text(json.dumps(rows_of("dev", 6)[5]) + "\n")
    with pytest.raises(InputError, match=r"its data have changed since it was run\n    got: dev"):
        asked.summarise(runs)


def test_without_a_run_of_each_kind_it_cannot_tell(tmp_path: Path) -> None:
    runs = measured(tmp_path, asked := study(data(tmp_path / "rows"), seeds=[0]), rising)
    assert asked.summarise(runs[:1]).answer == [
        "Cannot tell: no run of base_on_target and trained_on_target completed."
    ]
