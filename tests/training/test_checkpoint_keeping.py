"""Which checkpoints are kept, what `latest` and `best` link to, and what a checkpoint holds."""

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM, TrainerControl

from rlvr_exp.config.run import Checkpoint
from rlvr_exp.config.select import Select
from rlvr_exp.core.errors import GuardStop, InputError
from rlvr_exp.core.sealed import check_sound
from rlvr_exp.models.policy import Policy
from rlvr_exp.training.checkpoints import Checkpoints, restore
from rlvr_exp.training.saving import BestCheckpoint, CheckpointWriter


@pytest.fixture
def policy() -> Policy:
    torch.manual_seed(0)
    shape = dict(vocab_size=16, hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=1)
    network = Qwen3ForCausalLM(Qwen3Config(**shape, num_key_value_heads=1, head_dim=8))
    words = Tokenizer(models.WordLevel({f"w{i}": i for i in range(16)}, unk_token="w0"))
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, pad_token="w0", eos_token="w1")
    return Policy(network, tokenizer, (1,), chat=False, thinking=False, max_tokens=32)


def kept(checkpoints: Checkpoints) -> list[int]:
    return sorted(int(path.name[5:]) for path in checkpoints.root.glob("step_*"))


def named(checkpoints: Checkpoints, link: str) -> str:
    return (checkpoints.root / link).resolve().name


@pytest.mark.parametrize("keep", [1, 2])
def test_the_newest_stay_and_the_best_beside_them(tmp_path: Path, policy: Policy, keep: int) -> None:
    checkpoints = Checkpoints(tmp_path, Checkpoint(keep=keep))
    for step in range(1, 6):
        checkpoints.save(step, policy)
        if step == 2:
            checkpoints.mark_best(step)
        assert named(checkpoints, "latest") == f"step_{step:06d}"
        assert any(check_sound(path) for path in checkpoints.root.glob("step_*"))
    assert kept(checkpoints) == [2, *range(6 - keep, 6)] and named(checkpoints, "best") == "step_000002"


class Part:
    def __init__(self, state):
        self.state = state

    def state_dict(self):
        return self.state

    def load_state_dict(self, state):
        self.state = state


class Trainer:
    """Writes a file into the given folder."""

    def save_training(self, folder: Path) -> None:
        (folder / "rank_0.pt").write_bytes(b"state")

    def load_training(self, folder: Path) -> None:
        self.read = (folder / "rank_0.pt").read_bytes()


@pytest.mark.property(23)
def test_a_checkpoint_holds_and_gives_back_everything(tmp_path: Path, policy: Policy) -> None:
    part, trainer = Part({"asked": 7}), Trainer()
    checkpoints = Checkpoints(tmp_path, Checkpoint(), {"stage": "grpo", "config": {"seed": 1}})
    checkpoints.add({"collector": part})
    checkpoints.of(trainer)
    folder = checkpoints.save(4, policy)
    said = check_sound(folder)
    assert (said["step"], said["stage"], said["config"], said["format"]) == (4, "grpo", {"seed": 1}, 2)
    assert {"model.safetensors", "config.json", "tokenizer.json", "state.json", "training/rank_0.pt"} <= set(said["sha256"])
    weights = [value.detach().clone() for value in policy.model.parameters()]
    with torch.no_grad():
        for value in policy.model.parameters():
            value.add_(1.0)
    part.state = {}
    checkpoints.load(folder, policy)
    assert part.state == {"asked": 7} and trainer.read == b"state"
    assert all(torch.equal(a, b) for a, b in zip(weights, policy.model.parameters(), strict=True))


@pytest.mark.parametrize("attack", ["empty", "missing", "flipped", "cut"])
def test_no_file_of_a_damaged_checkpoint_loads(tmp_path: Path, policy: Policy, attack: str) -> None:
    checkpoints = Checkpoints(tmp_path, Checkpoint())
    checkpoints.of(Trainer())
    folder = checkpoints.save(1, policy)
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        whole = path.read_bytes()
        middle = len(whole) // 2
        flipped = whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]
        hurt = {"empty": b"", "cut": whole[:middle], "flipped": flipped}
        path.write_bytes(hurt[attack]) if attack in hurt else path.unlink()
        for load in (lambda: restore(policy, folder), lambda: checkpoints.load(folder, policy)):
            with pytest.raises(InputError) as caught:
                load()
            assert Path(caught.value.problems[0].where).name == path.name
        path.write_bytes(whole)
    restore(policy, folder)


def test_state_of_other_parts_is_refused(tmp_path: Path, policy: Policy) -> None:
    checkpoints = Checkpoints(tmp_path, Checkpoint())
    checkpoints.of(Trainer())
    folder = checkpoints.save(1, policy)
    checkpoints.add({"more": Part({})})
    with pytest.raises(InputError, match="state of other parts"):
        checkpoints.load(folder, policy)


def test_what_cannot_be_written_leaves_the_last_one(tmp_path: Path, policy: Policy, monkeypatch) -> None:
    checkpoints = Checkpoints(tmp_path, Checkpoint())
    first = checkpoints.save(1, policy)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("rlvr_exp.training.checkpoints.seal", full)
    with pytest.raises(GuardStop, match="No space"):
        checkpoints.save(2, policy)
    assert [path.name for path in checkpoints.root.iterdir() if path.name != "latest"] == [first.name]
    assert named(checkpoints, "latest") == first.name and check_sound(first)


class Rows:
    """A tracker's last row."""

    def __init__(self):
        self.last, self.last_step = {}, 0

    def log(self, step, row):
        self.last, self.last_step = dict(row), step


def selected(tmp_path: Path, policy: Policy, values: list[float | None], **options) -> tuple[BestCheckpoint, list[int]]:
    """Feed a value per step; the steps that were trained."""
    rows, checkpoints = Rows(), Checkpoints(tmp_path, Checkpoint(keep=1))
    best_checkpoint = BestCheckpoint(Select(metric="reward/mean", **options), checkpoints, rows, dict)
    checkpoint_writer = CheckpointWriter(checkpoints, policy, SimpleNamespace(interrupted=False, steps=0), best_checkpoint)
    checkpoints.add({"select": best_checkpoint})
    done = []
    for step, value in enumerate(values, 1):
        control, state = TrainerControl(), SimpleNamespace(global_step=step, max_steps=len(values))
        rows.log(step, {} if value is None else {"reward/mean": value})
        best_checkpoint.on_log(None, state, control)
        if control.should_save:
            checkpoint_writer.on_save(None, state, control)
        done.append(step)
        if control.should_training_stop:
            break
    return best_checkpoint, done


@pytest.mark.parametrize(
    ("values", "options", "best", "trained"),
    [
        ([0.1, 0.4, 0.3, 0.2], {}, 2, 4),
        ([0.4, 0.4, 0.4, 0.3], {"patience": 2}, 3, 3),
        ([0.1, 0.4, 0.3, 0.2, 0.9], {"patience": 2}, 2, 4),
        ([3.0, 2.0, 2.5, 1.0], {"mode": "min"}, 4, 4),
        ([None, 0.2, None, 0.1], {"patience": 1}, 2, 4),
    ],
)
def test_the_best_by_any_metric_is_named_and_patience_ends(tmp_path, policy, values, options, best, trained) -> None:
    best_checkpoint, done = selected(tmp_path, policy, values, **options)
    assert (best_checkpoint.step, len(done)) == (best, trained)
    assert (tmp_path / "checkpoints" / "best").resolve().name == f"step_{best:06d}"
    assert best_checkpoint.best_path == (tmp_path / "checkpoints" / "best").resolve()
    again = BestCheckpoint(Select(metric="reward/mean", **options), best_checkpoint._checkpoints, Rows(), dict)
    again.load_state_dict(best_checkpoint.state_dict())
    assert again.state_dict() == best_checkpoint.state_dict()
    other = BestCheckpoint(Select(metric="success/mean"), best_checkpoint._checkpoints, Rows(), dict)
    other.load_state_dict(best_checkpoint.state_dict())
    assert other.value is None and other.best_path is None


def test_a_best_one_that_is_lost_is_looked_for_anew(tmp_path: Path, policy: Policy, caplog) -> None:
    best_checkpoint, _ = selected(tmp_path, policy, [0.5, 0.1])
    (tmp_path / "checkpoints" / "step_000001" / "state.json").write_bytes(b"")
    best_checkpoint.load_state_dict(best_checkpoint.state_dict())
    assert best_checkpoint.value is None and "best checkpoint is lost" in caplog.text


def test_a_metric_that_no_row_has_stops_the_run(tmp_path: Path, policy: Policy) -> None:
    best_checkpoint, _ = selected(tmp_path, policy, [None, None])
    with pytest.raises(GuardStop, match="no row of metrics has it"):
        best_checkpoint.check()


def test_a_run_asked_to_stop_has_its_checkpoint(tmp_path: Path, policy: Policy) -> None:
    from rlvr_exp.core.errors import Interrupted

    checkpoints = Checkpoints(tmp_path, Checkpoint(every_steps=50))
    best_checkpoint = BestCheckpoint(Select(), checkpoints, Rows(), dict)
    checkpoint_writer = CheckpointWriter(checkpoints, policy, SimpleNamespace(interrupted=True, steps=0), best_checkpoint)
    control, state = TrainerControl(), SimpleNamespace(global_step=3, max_steps=9)
    checkpoint_writer.on_step_end(None, state, control)
    assert control.should_save
    with pytest.raises(Interrupted, match="step 3 of 9"):
        checkpoint_writer.on_save(None, state, control)
    assert kept(checkpoints) == [3]


def test_the_last_step_has_its_checkpoint_once_its_row_is_there(tmp_path: Path, policy: Policy) -> None:
    """Also where a stop was requested in it, and where it is the best one."""
    checkpoints, rows = Checkpoints(tmp_path, Checkpoint(every_steps=3)), Rows()
    best_checkpoint = BestCheckpoint(Select(metric="reward/mean"), checkpoints, rows, dict)
    checkpoint_writer = CheckpointWriter(checkpoints, policy, SimpleNamespace(interrupted=True, steps=0), best_checkpoint)
    checkpoints.add({"select": best_checkpoint})
    control, state = TrainerControl(), SimpleNamespace(global_step=9, max_steps=9)
    checkpoint_writer.on_step_end(None, state, control)
    checkpoint_writer.on_save(None, state, control)
    assert kept(checkpoints) == []
    rows.log(9, {"reward/mean": 1.0})
    best_checkpoint.on_log(None, state, control)
    checkpoint_writer.on_train_end(None, state, control)
    assert kept(checkpoints) == [9] and named(checkpoints, "best") == "step_000009"
