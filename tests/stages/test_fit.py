"""Training from the current step: nothing trained is no success, and nothing left is no training."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from rlvr_exp.core.errors import GuardStop
from rlvr_exp.core.files import write_json
from rlvr_exp.stages.fit import fit, resumed_step


class Trainer:
    def __init__(self, reaches: int):
        self.state, self._reaches = SimpleNamespace(global_step=0), reaches
        self.began: list[str | None] = []

    def train(self, resume_from_checkpoint: str | None) -> None:
        self.began.append(resume_from_checkpoint)
        self.state.global_step = self._reaches


class Checkpoints:
    def __init__(self):
        self.loaded: list[Path] = []

    def of(self, trainer) -> None: ...

    def load(self, checkpoint: Path, *_) -> None:
        self.loaded.append(checkpoint)


def go(place: Path, reaches: int, wanted: int = 6, resumed: int | None = 4, stopped: bool = False) -> tuple:
    """(steps done, what training began from, what was loaded)."""
    folder = place / "checkpoints" / f"step_{resumed or 0:06d}"
    write_json(place / "manifest.json", {"resumed": [{"checkpoint": str(folder)}]} if resumed else {})
    context = SimpleNamespace(directory=place, steps=0)
    assert resumed_step(context) == resumed
    config = SimpleNamespace(
        algorithm=SimpleNamespace(max_steps=wanted), model=SimpleNamespace(trust_remote_code=False)
    )
    trainer, checkpoints = Trainer(reaches), Checkpoints()
    best_checkpoint = SimpleNamespace(stopped=stopped, best_path=None, check=lambda: None)
    done = fit(trainer, checkpoints, best_checkpoint, SimpleNamespace(policy=None), config, context)
    return done, trainer.began, checkpoints.loaded


def test_it_begins_from_the_checkpoint(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoints" / "step_000004"
    assert go(tmp_path, 6) == (6, [str(folder / "training")], [folder])
    assert go(tmp_path, 6, resumed=None) == (6, [None], [])


@pytest.mark.parametrize("more", [{"wanted": 4}, {"stopped": True}])
def test_where_nothing_is_left_weights_are_loaded_and_nothing_is_trained(tmp_path: Path, more: dict) -> None:
    done, began, loaded = go(tmp_path, 9, **more)
    assert done == 4 and not began and len(loaded) == 1


@pytest.mark.parametrize(("reaches", "resumed"), [(4, 4), (0, None)])
def test_steps_that_were_left_and_not_trained_stop_the_run(tmp_path: Path, reaches: int, resumed: int | None) -> None:
    with pytest.raises(GuardStop, match="steps were left and none was trained"):
        go(tmp_path, reaches, resumed=resumed)
