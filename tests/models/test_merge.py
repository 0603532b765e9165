"""A merged checkpoint gives the outputs of the adapter over its base."""

from pathlib import Path

import pytest
import torch
from small_models import loaded, logits, updated, written

from rlvr_exp.config.adapter import Adapter
from rlvr_exp.config.run import Checkpoint
from rlvr_exp.models.merge import main
from rlvr_exp.training.checkpoints import Checkpoints


@pytest.fixture(scope="module")
def base(tmp_path_factory) -> Path:
    return written(tmp_path_factory.mktemp("base"))


@pytest.mark.parametrize(
    ("bits", "kind"), [("none", "lora"), ("none", "dora"), ("4bit", "lora"), ("4bit", "dora"), ("8bit", "lora")]
)
def test_it_answers_as_the_policy_that_was_trained(base: Path, tmp_path: Path, bits: str, kind: str) -> None:
    policy = updated(loaded(base, quantization=bits, adapter=Adapter(kind=kind, rank=4)))
    adapter = Checkpoints(tmp_path, Checkpoint()).save(1, policy)
    assert main([str(adapter), str(tmp_path / "merged")]) == 0
    merged, before = loaded(tmp_path / "merged"), loaded(base, quantization=bits)
    gap = (logits(merged) - logits(policy)).norm() / (logits(before) - logits(policy)).norm()
    assert gap < 1e-3
    assert not hasattr(merged.model.config, "quantization_config")


def test_stored_weights_take_the_place_of_quantized_ones_on_request(base: Path, tmp_path: Path) -> None:
    policy = updated(loaded(base, quantization="4bit", adapter=Adapter(kind="lora", rank=4)))
    adapter = Checkpoints(tmp_path, Checkpoint()).save(1, policy)
    assert main([str(adapter), str(tmp_path / "merged"), "--stored"]) == 0
    over_stored = logits(loaded(base, adapter=Adapter(path=str(adapter))))
    assert torch.allclose(logits(loaded(tmp_path / "merged")), over_stored, atol=1e-3)
    assert not torch.allclose(over_stored, logits(policy), atol=1e-2)


def test_what_cannot_be_merged_is_refused(base: Path, tmp_path: Path, capsys) -> None:
    assert main([str(base), str(tmp_path / "merged")]) == 2
    assert "no adapter is there" in capsys.readouterr().err
    adapter = Checkpoints(tmp_path, Checkpoint()).save(1, loaded(base, adapter=Adapter(kind="lora")))
    assert main([str(adapter), str(base)]) == 2
    assert "holds something" in capsys.readouterr().err
    assert main([str(adapter), str(tmp_path / "merged"), "--base", str(tmp_path / "gone")]) == 2
    assert "no checkpoint is there" in capsys.readouterr().err and not (tmp_path / "merged").exists()
