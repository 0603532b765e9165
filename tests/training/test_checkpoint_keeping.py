"""Which checkpoints are kept, what `latest` and `best` link to, and what a checkpoint holds."""

import json
from pathlib import Path

import pytest
import torch
from fake_training import FakeLearner, Part, contents_of, kept, named
from tiny_step import policy

from rlvr_exp.config.run import Checkpoint
from rlvr_exp.core.errors import GuardStop, InputError
from rlvr_exp.core.sealed import FORMAT, check_sound
from rlvr_exp.training.checkpoints import Checkpoints, Contents, restore


@pytest.mark.parametrize("keep", [1, 2])
def test_the_newest_stay_and_the_best_beside_them(tmp_path: Path, keep: int) -> None:
    checkpoints, contents = Checkpoints(tmp_path, Checkpoint(keep=keep)), contents_of(policy())
    for step in range(1, 6):
        checkpoints.save(step, contents)
        if step == 2:
            checkpoints.mark_best(step)
        assert named(checkpoints, "latest") == f"step_{step:06d}"
        assert any(check_sound(path) for path in checkpoints.root.glob("step_*"))
    assert kept(checkpoints) == [2, *range(6 - keep, 6)] and named(checkpoints, "best") == "step_000002"


@pytest.mark.property(23)
def test_a_checkpoint_holds_and_gives_back_everything(tmp_path: Path) -> None:
    part, own, learner, who = Part({"asked": 7}), Part({"skipped": 1}), FakeLearner(), policy()
    learner.checkpoint_parts["guard"], learner.steps = own, 4
    checkpoints = Checkpoints(tmp_path, Checkpoint(), {"stage": "grpo", "config": {"seed": 1}})
    contents = contents_of(who, learner, collector=part)
    folder = checkpoints.save(4, contents)
    said = check_sound(folder)
    assert (said["step"], said["stage"], said["config"], said["format"]) == (4, "grpo", {"seed": 1}, FORMAT)
    assert {"model.safetensors", "config.json", "tokenizer.json", "state.json", "training/steps"} <= set(said["sha256"])
    weights = [value.detach().clone() for value in who.model.parameters()]
    with torch.no_grad():
        for value in who.model.parameters():
            value.add_(1.0)
    part.state = own.state = {}
    checkpoints.load(folder, contents)
    assert part.state == {"asked": 7} and own.state == {"skipped": 1}
    assert all(torch.equal(a, b) for a, b in zip(weights, who.model.parameters(), strict=True))
    again = FakeLearner()
    again.begin(contents.training(folder)["policy"])
    assert again.steps == 4


def test_roles_have_folders_and_parts_of_their_names(tmp_path: Path) -> None:
    learners = {role: FakeLearner(role) for role in ("writer", "annotator")}
    for number, learner in enumerate(learners.values()):
        learner.checkpoint_parts["guard"], learner.steps = Part({"skipped": number}), number
    checkpoints = Checkpoints(tmp_path, Checkpoint())
    contents = Contents({role: policy() for role in learners}, learners, {"feed": Part({"rows": []})})
    folder = checkpoints.save(1, contents)
    state = json.loads((folder / "state.json").read_text())
    assert state == {"feed": {"rows": []}, "writer/guard": {"skipped": 0}, "annotator/guard": {"skipped": 1}}
    for number, role in enumerate(learners):
        assert (folder / role / "model.safetensors").is_file()
        assert contents.training(folder)[role] == folder / "training" / role
        assert (folder / "training" / role / "steps").read_text() == str(number)


@pytest.mark.parametrize("attack", ["empty", "missing", "flipped", "cut"])
def test_no_file_of_a_damaged_checkpoint_loads(tmp_path: Path, attack: str) -> None:
    checkpoints, who = Checkpoints(tmp_path, Checkpoint()), policy()
    contents = contents_of(who)
    folder = checkpoints.save(1, contents)
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        whole = path.read_bytes()
        middle = len(whole) // 2
        flipped = whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]
        hurt = {"empty": b"", "cut": whole[:middle], "flipped": flipped}
        path.write_bytes(hurt[attack]) if attack in hurt else path.unlink()
        for load in (lambda: restore(who, folder), lambda: checkpoints.load(folder, contents)):
            with pytest.raises(InputError) as caught:
                load()
            assert Path(caught.value.problems[0].where).name == path.name
        path.write_bytes(whole)
    restore(who, folder)


def test_state_of_other_parts_is_refused(tmp_path: Path) -> None:
    checkpoints, who = Checkpoints(tmp_path, Checkpoint()), policy()
    folder = checkpoints.save(1, contents_of(who))
    with pytest.raises(InputError, match="state of other parts"):
        checkpoints.load(folder, contents_of(who, more=Part({})))


def test_what_cannot_be_written_leaves_the_last_one(tmp_path: Path, monkeypatch) -> None:
    checkpoints, contents = Checkpoints(tmp_path, Checkpoint()), contents_of(policy())
    first = checkpoints.save(1, contents)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("rlvr_exp.training.checkpoints.seal", full)
    with pytest.raises(GuardStop, match="No space"):
        checkpoints.save(2, contents)
    assert [path.name for path in checkpoints.root.iterdir() if path.name != "latest"] == [first.name]
    assert named(checkpoints, "latest") == first.name and check_sound(first)
