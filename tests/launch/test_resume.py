"""Where a run starts: decided from its directory, before anything is changed; and the command that continues it."""

import json
import os
import shutil
from functools import cache
from pathlib import Path

import pytest

from rlvr_exp.config.compose import compose
from rlvr_exp.config.load import build, resolved, to_yaml
from rlvr_exp.config.model import EMBEDDED_MODELS
from rlvr_exp.core.errors import InputError
from rlvr_exp.core.files import write_json
from rlvr_exp.core.sealed import READ_AT, seal
from rlvr_exp.launch.execute import execute
from rlvr_exp.launch.resume import Start, begin, continuing, directory_of, newest_sound, prepare, problem_before
from rlvr_exp.main import main
from rlvr_exp.records import manifest
from rlvr_exp.records.manifest import initial_weights, run_fingerprint, trajectory_options

WORDS = ["+stage=grpo", "data.limit=3", "algorithm.max_steps=6"]


@cache
def fingerprints() -> dict[str, dict[str, str]]:
    domain = build(compose(WORDS).config.data)
    return {name: {"fingerprint": domain.fingerprint(name)} for name in domain.splits()}


def checkpoint(root: Path, step: int) -> Path:
    folder = root / "checkpoints" / f"step_{step:06d}"
    folder.mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(b"weights" * step)
    seal(folder, {"step": step, **run_fingerprint(root)})
    return folder


def run(root: Path, *words: str, steps: tuple[int, ...] = (2, 4), status: str = "failed") -> Path:
    """A directory as a run with these options leaves it."""
    checked = compose([*WORDS, *words])
    root.mkdir(parents=True)
    (root / "config.yaml").write_text(to_yaml(checked))
    manifest.begin(root, "grpo", 0, ["python", "-m", "rlvr_exp"], "now")
    manifest.update(root, data=fingerprints(), start=initial_weights(checked.config))
    write_json(root / "summary.json", {"status": status, "steps": max(steps, default=0)})
    for step in steps:
        checkpoint(root, step)
    return root


def checked_options(root: Path, *words: str, resume: str = "auto"):
    place = [f"run.dir={root}", "run.resume=auto"] if resume == "auto" else [f"run.resume={root}"]
    return compose([*WORDS, *place, *words])


def damage(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(b"")


@pytest.mark.parametrize("resume", ["auto", "by name"])
def test_it_goes_on_from_the_newest_checkpoint(tmp_path: Path, resume: str) -> None:
    root = run(tmp_path / "run")
    start = begin(checked_options(root, resume=resume), root)
    assert (start.step, start.checkpoint) == (4, (root / "checkpoints" / "step_000004").resolve())
    assert not start.damaged and not start.notes and not start.completed


def test_a_run_of_an_earlier_format_is_refused_in_one_line(tmp_path: Path, monkeypatch, capsys) -> None:
    with monkeypatch.context() as earlier:
        earlier.setattr("rlvr_exp.core.sealed.FORMAT", 2)
        root = run(tmp_path / "run")
    before = set(root.rglob("*"))
    assert main([*WORDS, f"run.resume={root}"]) == 2
    assert set(root.rglob("*")) - before <= {root / ".lock"}
    (line,) = (line for line in capsys.readouterr().err.splitlines() if "checkpoint.json" in line)
    assert "step_000004" in line and f"commit {READ_AT[2]}" in line


def test_a_damaged_checkpoint_is_named_and_the_one_before_it_taken(tmp_path: Path) -> None:
    root = run(tmp_path / "run", steps=(2, 4, 6))
    for step in (4, 6):
        damage(root / "checkpoints" / f"step_{step:06d}")
    start = begin(checked_options(root), root)
    assert start.step == 2 and len(start.damaged) == 2
    assert all("model.safetensors: empty" in note for note in start.notes)
    prepare(start, root, root)
    left = sorted(path.name for path in (root / "checkpoints").iterdir())
    assert left == [".step_000004.damaged", ".step_000006.damaged", "step_000002"]


def test_where_none_is_sound_nothing_starts(tmp_path: Path) -> None:
    root = run(tmp_path / "run")
    for folder in (root / "checkpoints").iterdir():
        damage(folder)
    with pytest.raises(InputError) as caught:
        begin(checked_options(root), root)
    assert len(caught.value.problems) == 2


@pytest.mark.parametrize(
    ("words", "fields"),
    [
        (["optimizer.lr=0.5", "seed=3"], {"optimizer.lr", "seed"}),
        (["model=tiny_lora"], {"model.adapter.kind"}),
        (["algorithm=dapo"], {"algorithm._target_", "algorithm.clip_high"}),
        (["parallel=ddp", "parallel.processes=2"], {"parallel.processes", "parallel.strategy"}),
        (["data.limit=2"], {"data.limit"}),
        (["evaluation.samples=3"], {"evaluation.samples"}),
        (["algorithm.max_steps=3"], {"algorithm.max_steps"}),
    ],
)
def test_other_options_are_refused_with_every_difference(tmp_path: Path, words: list[str], fields: set[str]) -> None:
    root = run(tmp_path / "run")
    before = sorted(path.name for path in root.rglob("*"))
    with pytest.raises(InputError) as caught:
        begin(checked_options(root, *words), root)
    assert fields <= {problem.where for problem in caught.value.problems}
    assert sorted(path.name for path in root.rglob("*")) == before


@pytest.mark.parametrize(
    "words",
    [
        ["run.log_every_steps=3", "run.checkpoint.keep=9"],
        ["tracking=tensorboard"],
        ["cache.enabled=false", "sandbox.workers=1"],
        ["evaluation.batch_size=7", "algorithm.rollout_batch_size=4", "algorithm.max_tokens_per_device=999"],
        ["parallel.threads=2"],
        ["algorithm.max_steps=9"],
    ],
)
def test_what_decides_no_trajectory_may_differ(tmp_path: Path, words: list[str]) -> None:
    root = run(tmp_path / "run")
    assert begin(checked_options(root, *words), root).step == 4


def test_other_data_under_the_same_options_is_refused(tmp_path: Path) -> None:
    root = run(tmp_path / "run", steps=())
    told = json.loads((root / "manifest.json").read_text())["data"]
    manifest.update(root, data={name: {"fingerprint": f"{part['fingerprint']}x"} for name, part in told.items()})
    checkpoint(root, 2)
    with pytest.raises(InputError, match="holds other tasks"):
        begin(checked_options(root), root)


def test_another_start_model_under_the_same_path_is_refused_by_its_file(tmp_path: Path) -> None:
    start = shutil.copytree(EMBEDDED_MODELS / "tiny", tmp_path / "start")
    words = [f"model.path={start}"]
    root = run(tmp_path / "run", *words)
    assert begin(checked_options(root, *words), root).step == 4
    weights, then = start / "model-00002-of-00002.safetensors", (start / "config.json").stat()
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    os.utime(weights, ns=(then.st_atime_ns, then.st_mtime_ns))
    weights.write_bytes(content)
    with pytest.raises(InputError) as caught:
        begin(checked_options(root, *words), root)
    assert [problem.what for problem in caught.value.problems] == [
        f"the start model's model/{weights.name} holds something else"
    ]


def test_a_checkpoint_of_another_run_is_refused(tmp_path: Path) -> None:
    root, other = run(tmp_path / "run", steps=(2,)), run(tmp_path / "other", "seed=9", steps=(4,))
    (other / "checkpoints" / "step_000004").rename(root / "checkpoints" / "step_000004")
    with pytest.raises(InputError, match="seed"):
        begin(checked_options(root), root)


def test_a_completed_run_has_nothing_left_unless_more_steps_are_asked(tmp_path: Path, capsys) -> None:
    root = run(tmp_path / "run", steps=(6,), status="completed")
    assert begin(checked_options(root), root).completed
    assert begin(checked_options(root, "algorithm.max_steps=8"), root) == Start(
        (root / "checkpoints" / "step_000006").resolve(), 6
    )
    before = {path: path.stat().st_mtime_ns for path in root.rglob("*") if path.name != ".lock"}
    outcome = execute(checked_options(root), ["again"], root)
    assert outcome.code == 0 and outcome.summary["status"] == "completed"
    assert "completed already, after 6 steps" in capsys.readouterr().out
    assert {path: path.stat().st_mtime_ns for path in root.rglob("*") if path.name != ".lock"} == before


def test_auto_begins_where_nothing_is_and_where_a_run_stopped_before_its_first_checkpoint(tmp_path: Path) -> None:
    assert begin(checked_options(tmp_path / "new"), tmp_path / "new").checkpoint is None
    root = run(tmp_path / "run", steps=())
    (root / "metrics.jsonl").write_text('{"step": 1}\n')
    (root / "evaluation").mkdir()
    start = begin(checked_options(root), root)
    assert start.checkpoint is None and "starts over" in start.notes[0]
    prepare(start, root, root)
    assert sorted(os.listdir(root)) == ["config.yaml", "manifest.json"]


def test_auto_does_not_write_over_another_run(tmp_path: Path) -> None:
    root = run(tmp_path / "run", "seed=5", steps=())
    assert begin(checked_options(root), root).notes == (
        "no checkpoint: the run starts from the beginning",
    )  # It did nothing.
    (root / "metrics.jsonl").touch()
    with pytest.raises(InputError, match="seed"):
        begin(checked_options(root), root)
    (root / "config.yaml").unlink()
    with pytest.raises(InputError, match="holds another run"):
        begin(checked_options(root), root)


def test_by_name_there_must_be_a_run_with_a_checkpoint(tmp_path: Path) -> None:
    root = run(tmp_path / "run", steps=())
    with pytest.raises(InputError, match="holds no checkpoint"):
        begin(checked_options(root, resume="by name"), root)
    lost = problem_before(checked_options(tmp_path / "nothing", resume="by name").config)
    assert lost is not None and lost.where == "run.resume"
    inside = checkpoint(run(tmp_path / "full"), 6)
    assert problem_before(checked_options(inside, resume="by name").config).suggestion == str(tmp_path / "full")


def test_what_comes_after_the_checkpoint_is_cut(tmp_path: Path) -> None:
    from rlvr_exp.records.rollout_files import rollout_steps, write_rollouts

    root = run(tmp_path / "run")
    for step in range(1, 7):
        write_rollouts(root, step, [])
    prepare(begin(checked_options(root), root), root, root)
    assert list(rollout_steps(root)) == [1, 2, 3, 4] and not (root / "summary.json").exists()


@pytest.mark.parametrize(
    ("words", "where"),
    [
        (["run.resume=auto"], "run.resume"),
        (["run.resume=a", "run.dir=b"], "run.resume"),
    ],
)
def test_options_that_contradict_are_told(words: list[str], where: str) -> None:
    with pytest.raises(InputError) as caught:
        compose([*WORDS, *words])
    assert [problem.where for problem in caught.value.problems] == [where]


@pytest.mark.parametrize(
    ("words", "note"),
    [
        (["+stage=study", "study=ablation"], "continues with the existing results"),
        (["+stage=evaluate"], "without a checkpoint: it starts over"),
    ],
)
def test_without_checkpoints_the_note_says_whether_what_is_there_counts(
    words: list[str], note: str, tmp_path: Path
) -> None:
    checked = compose([*words, "run.resume=auto", f"run.dir={tmp_path}"])
    (tmp_path / "config.yaml").write_text(to_yaml(checked))
    assert note in begin(checked, tmp_path).notes[0]


def test_a_stage_without_checkpoints_has_nothing_to_resume() -> None:
    with pytest.raises(InputError, match=r"run\.resume"):
        compose(["+stage=infer", "run.resume=auto", "run.dir=x"])


def test_newest_by_number_and_not_by_name(tmp_path: Path) -> None:
    root = run(tmp_path / "run", steps=(999_999, 1_000_000))
    assert newest_sound(root)[0].name == "step_1000000"


@pytest.mark.parametrize("resume", ["auto", "by name"])
@pytest.mark.parametrize("stage", ["sft", "grpo", "ppo", "cascade"])
def test_a_run_is_resumed_by_its_directory_alone(stage: str, resume: str, tmp_path: Path) -> None:
    words = [f"+stage={stage}", "+experiment=quick", "optimizer.lr=3e-5", "run.dir=elsewhere"]
    (tmp_path / "config.yaml").write_text(to_yaml(written := compose(words)))
    place = [f"run.dir={tmp_path}", "run.resume=auto"] if resume == "auto" else [f"run.resume={tmp_path}"]
    checked = compose([*place, "algorithm.max_steps=77"])
    assert trajectory_options(resolved(checked)) == trajectory_options(resolved(written))
    assert checked.config.algorithm.max_steps == 77 and directory_of(checked.config) == tmp_path
    assert checked.config.run.select == written.config.run.select


def test_other_words_are_checked_against_the_run_that_is_resumed(tmp_path: Path, capsys) -> None:
    root = run(tmp_path / "run", "data.limit=3", "model.max_completion_tokens=40")
    assert main([f"run.resume={root}", "seed=7", "algorithm=dapo", "run.dry=true"]) == 2
    said = capsys.readouterr().err
    assert "seed: differs" in said and "algorithm.zero_variance: differs" in said
    assert "max_completion_tokens" not in said and "data.limit" not in said
    assert main([f"run.resume={root}", "run.dry=true"]) == 0


def test_a_directory_without_a_run_is_told_with_the_one_that_was_meant(tmp_path: Path, capsys) -> None:
    root = run(tmp_path / "run")
    assert main([f"run.resume={root}/checkpoints/step_000004"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("1 problem") and "run.resume: no run is there" in said and f"did you mean: {root}\n" in said


@pytest.mark.parametrize(
    ("stage", "made", "words"),
    [
        ("grpo", "checkpoints/step_000002", "'run.resume=my run'"),
        ("grpo", "journal", "'run.resume=my run'"),
        ("grpo", ".", "run.resume=auto 'run.dir=my run'"),
        ("evaluate", ".", "'run.resume=my run'"),
        ("infer", ".", ""),
    ],
)
def test_the_command_is_one_that_the_directory_allows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage: str, made: str, words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my run" / made).mkdir(parents=True)
    command = continuing(compose([f"+stage={stage}"]).config, Path("my run"))
    assert command == (f"python -m rlvr_exp {words}" if words else "")
