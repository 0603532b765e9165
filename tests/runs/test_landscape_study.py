"""The study of the landscape over planted runs: which runs come when, and what it says of planted lines and eigenvalues."""

import json

import pytest

from rlvr_exp.config.compose import compose
from rlvr_exp.core.errors import InputError
from rlvr_exp.core.files import write_json
from rlvr_exp.report.plots import Line, Text
from rlvr_exp.runs.record import write_record
from rlvr_exp.runs.studies.landscape import Landscape
from rlvr_exp.runs.study import JobRun

AT = [0.0, 0.5, 1.0]
TASKS = 20


def study(**more):
    words = {"command": ["+stage=grpo"], "measure": ["+stage=benchmark", "benchmark=landscape"]}
    return Landscape(**{"seeds": [0, 1, 2], **words, **more})


def ended(job, root, status="completed"):
    directory = root / job.name
    directory.mkdir(parents=True, exist_ok=True)
    return JobRun(job, directory, 0 if status == "completed" else 3, {"status": status, "stage": "benchmark"})


def measured(job, root, line, eigenvalue, loss):
    """`line`: mean losses at its three places; tasks differ by what cancels out."""
    run = ended(job, root)
    spread = [0.01 * (task - (TASKS - 1) / 2) for task in range(TASKS)]
    found = {
        "tasks": TASKS,
        "losses": [loss + one for one in spread],
        "line": {"at": AT, "losses": [[mean + one for one in spread] for mean in line]},
        "slices": {name: {"at": [-1.0, 0.0, 1.0], "loss": [loss + 1, loss, loss + 1]} for name in ("first", "second")},
        "gradients": {"all": {"norm": 1.0 + job.seed, "noise_scale": None if job.seed else 2.0, "cosine": 0.1}},
        "eigenvalues": [eigenvalue, 1.0],
    }
    if job.arm == "base":
        rows = [[loss + job.seed, loss], [2 * loss, 4 * loss], [loss, 3 * loss]]
        found["plane"] = {"along": [-0.5, 0.5, 1.5], "at": [-1.0, 1.0], "loss": rows}
    write_json(run.directory / "benchmark.json", found)
    return run


def planted(root, height=0.3, change=2.0, seeds=(0, 1, 2)):
    """The loss is 1.0 at the base and 0.6 after training; `height` is what lies between them above the straight line."""
    runs = []
    for seed in seeds:
        base, trained = study().measurements(study(seeds=[seed]).trainings()[0], f"c{seed}")
        noise = 0.01 * (seed - 1)
        runs.append(measured(base, root, [1.0, 0.8 + height + noise, 0.6], 5.0, 1.0))
        runs.append(measured(trained, root, [0.6, 0.6, 0.6], 5.0 + change + 10 * noise, 0.6))
    return runs


def test_a_plan_names_no_checkpoint_yet():
    (training,) = study(seeds=[0]).trainings()
    assert not [word for job in study().measurements(training, "") for word in job.words if word.endswith("=")]


def test_measurements_come_once_their_training_has_ended(tmp_path):
    rounds = study(words=["+experiment=quick"]).rounds(tmp_path, 0)
    training = rounds.batch()
    assert [job.name for job in training] == ["training_seed0", "training_seed1", "training_seed2"]
    assert training[0].words == ("+stage=grpo", "+experiment=quick", "seed=0")
    assert (rounds.batch(), rounds.left()) == ([], 6)
    second = ended(training[1], tmp_path)
    checkpoint = second.directory / "checkpoints" / "step_000007"
    checkpoint.mkdir(parents=True)
    (checkpoint.parent / "latest").symlink_to(checkpoint.name)
    rounds.ended(second)
    assert rounds.left() == 6
    base, trained = rounds.batch()
    assert (base.name, trained.name) == ("base_seed1", "trained_seed1")
    assert base.words[-2:] == (f"benchmark.other={checkpoint}", "seed=1") and "benchmark=landscape" in base.words
    assert trained.words[-2:] == (f"model.path={checkpoint}", "seed=1")
    rounds.ended(ended(training[0], tmp_path, "stopped"))
    rounds.ended(ended(base, tmp_path))
    assert (rounds.batch(), rounds.left()) == ([], 2), "nothing is measured of a training that failed"


def test_the_best_checkpoint_is_what_a_training_ended_with(tmp_path):
    rounds = study(seeds=[0]).rounds(tmp_path, 0)
    run = ended(rounds.batch()[0], tmp_path)
    for step, link in ((3, "best"), (7, "latest")):
        (run.directory / "checkpoints" / f"step_{step}").mkdir(parents=True)
        (run.directory / "checkpoints" / link).symlink_to(f"step_{step}")
    rounds.ended(run)
    assert rounds.batch()[0].words[-2].endswith("checkpoints/step_3")


def test_a_barrier_and_a_sharper_place_are_found(tmp_path):
    runs = planted(tmp_path)
    found = study().summarise(runs)
    assert found.answer[0].startswith("There is a barrier between the base and the trained policy: at 50% of the way")
    assert "lies +0.3 [" in found.answer[0] and "20 tasks, 3 seeds" in found.answer[0]
    assert "5 at the base and 7 after training: it is larger, by +2 [" in found.answer[1]
    assert found.answer[2].startswith(
        "The loss of gold answers goes from 1.000 to 0.600 nats a token: it falls, by -0.4"
    )
    assert [round(row["value"], 9) for row in found.tables["line"]] == [1.0, 1.1, 0.6]
    eigenvalues = {(row["arm"], row["rank"]): row["value"] for row in found.tables["eigenvalues"]}
    assert eigenvalues == {
        ("base", 1): 5.0,
        ("base", 2): 1.0,
        ("trained", 1): pytest.approx(7.0),
        ("trained", 2): 1.0,
    }
    assert found.tables["gradients"][0] == {
        "arm": "base",
        "place": "all",
        "norm": 2.0,
        "noise_scale": None,
        "cosine": pytest.approx(0.1),
    }
    write_record(tmp_path, "study", [], runs, found)
    assert {path.stem for path in tmp_path.glob("*.png")} == {"line", "slices", "eigenvalues", "plane"}
    assert json.loads((tmp_path / "study.json").read_text())["tables"]["slices"][1]["value"] == 1.0


def test_a_straight_line_has_no_barrier_and_equal_places_cannot_be_told_apart(tmp_path):
    found = study().summarise(planted(tmp_path, height=0.0, change=0.0))
    assert found.answer[0].startswith("No barrier between the base and the trained policy was found")
    assert "cannot tell whether it is larger or smaller" in found.answer[1]


def test_one_seed_and_a_lost_measurement(tmp_path):
    runs = planted(tmp_path, seeds=(0,))
    assert "one seed cannot tell whether training changes it" in study().summarise(runs).answer[1]
    assert study().summarise(runs[:1]).answer == [
        "Cannot tell: no seed was measured both before and after its training."
    ]


def test_a_plan_lists_all_runs_and_missing_words_are_refused():
    jobs = study(seeds=[4]).jobs()
    assert [(job.name, job.open) for job in jobs] == [
        ("training_seed4", False),
        ("base_seed4", True),
        ("trained_seed4", True),
    ]
    with pytest.raises(InputError, match=r"study.measure: does not measure a landscape"):
        compose(["+stage=study", "study=landscape", 'study.measure=["+stage=evaluate"]'])
    with pytest.raises(InputError, match=r"study.measure: the study says that itself"):
        compose(["+stage=study", "study=landscape", 'study.measure=["benchmark=landscape","seed=3"]'])


def test_the_plane_through_both_is_the_mean_over_seeds(tmp_path):
    runs = planted(tmp_path)
    drawn = study().summarise(runs).plots["plane"]
    said = [shape.text for shape in drawn.shapes if isinstance(shape, Text)]
    assert {"-0.5", "0.5", "1.5", "-1", "1"} <= set(said), "both axes have their own numbers"
    assert "lightest 1, darkest 4" in said and len([one for one in drawn.shapes if isinstance(one, Line)]) == 6
    file = runs[0].directory / "benchmark.json"
    found = json.loads(file.read_text())
    del found["plane"]
    write_json(file, found)
    assert "plane" not in study().summarise(runs).plots
