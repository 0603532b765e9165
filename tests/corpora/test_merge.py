"""A merged checkpoint gives the outputs of the adapter over its base."""

from pathlib import Path

import pytest
import torch
from huggingface_hub import ModelCard
from makers import made
from small_models import loaded, logits, saved, updated, written

from rlvr_exp.config.model import Adapter
from rlvr_exp.core.errors import InputError


@pytest.fixture(scope="module")
def base(tmp_path_factory) -> Path:
    return written(tmp_path_factory.mktemp("base"))


@pytest.mark.parametrize(
    ("bits", "kind"), [("none", "lora"), ("none", "dora"), ("4bit", "lora"), ("4bit", "dora"), ("8bit", "lora")]
)
def test_it_answers_as_the_policy_that_was_trained(base: Path, tmp_path: Path, bits: str, kind: str) -> None:
    policy = updated(loaded(base, quantization=bits, adapter=Adapter(kind=kind, rank=4)))
    adapter = saved(tmp_path, policy)
    made(tmp_path, "merge", f"prepare.path={adapter}")
    merged, before = loaded(tmp_path / "merged"), loaded(base, quantization=bits)
    gap = (logits(merged) - logits(policy)).norm() / (logits(before) - logits(policy)).norm()
    assert gap < 1e-3
    assert not hasattr(merged.model.config, "quantization_config")


def test_stored_weights_take_the_place_of_quantized_ones_on_request(base: Path, tmp_path: Path) -> None:
    policy = updated(loaded(base, quantization="4bit", adapter=Adapter(kind="lora", rank=4)))
    adapter = saved(tmp_path, policy)
    made(tmp_path, "merge", f"prepare.path={adapter}", "prepare.stored=true")
    over_stored = logits(loaded(base, adapter=Adapter(path=str(adapter))))
    assert torch.allclose(logits(loaded(tmp_path / "merged")), over_stored, atol=1e-3)
    assert not torch.allclose(over_stored, logits(policy), atol=1e-2)


def test_the_card_of_the_adapter_goes_with_the_weights(base: Path, tmp_path: Path) -> None:
    adapter = saved(tmp_path, loaded(base, adapter=Adapter(kind="lora")))
    (adapter / "README.md").write_text(
        "---\nbase_model: OWNER/BASE\nlibrary_name: peft\nlicense: mit\n---\n# grpo, step 5\n"
    )
    made(tmp_path, "merge", f"prepare.path={adapter}")
    card = ModelCard.load(tmp_path / "merged" / "README.md")
    assert (card.data.library_name, card.data.base_model, card.data.license) == ("transformers", "OWNER/BASE", "mit")
    assert "grpo, step 5" in card.text and "merged into its base model" in card.text


def test_what_cannot_be_merged_is_refused(base: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no adapter is there"):
        made(tmp_path, "merge", f"prepare.path={base}")
    adapter = saved(tmp_path, loaded(base, adapter=Adapter(kind="lora")))
    with pytest.raises(InputError, match="holds something"):
        made(tmp_path, "merge", f"prepare.path={adapter}", f"prepare.output={base}")
    with pytest.raises(InputError, match="no checkpoint is there"):
        made(tmp_path, "merge", f"prepare.path={adapter}", f"prepare.base={tmp_path}/gone")
    assert not (tmp_path / "merged").exists()
