"""A checkpoint holds the policy: written and reloaded in any form, it gives the same completions."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from small_models import IDS, loaded, logits, saved, updated, written
from thinning import EVERY, thinned

from rlvr_exp.config.model import Adapter
from rlvr_exp.core.errors import GuardStop, InputError
from rlvr_exp.episodes.types import TokenSample
from rlvr_exp.models.policy import Policy, add_adapter
from rlvr_exp.rollouts.sampler import sample_groups
from rlvr_exp.rollouts.sampling_params import LogitFilters, SamplingParams
from rlvr_exp.training.checkpoints import restore

LORA = {"adapter": Adapter(kind="lora", rank=4)}
FORMS = {
    "full": {},
    "bfloat16": {"dtype": "bfloat16"},
    "frozen": {"freeze": ["model.layers.0.*"]},
    "lora": LORA,
    "dora": {"adapter": Adapter(kind="dora", rank=4, targets=["q_proj", "down_proj"])},
    "4bit": {"quantization": "4bit", **LORA},
    "8bit": {"quantization": "8bit", **LORA},
}
HELD = ("dtype", "quantization")
"""Options that say how weights are held, and so have to be given again."""


@pytest.fixture(scope="module")
def base(tmp_path_factory) -> Path:
    return written(tmp_path_factory.mktemp("base"))


def sampled(policy: Policy) -> TokenSample:
    """A short completion by the engine that rollouts use."""
    ((one,),) = sample_groups(
        policy.model, [[5, 6]], [[(0, "draw")]], SamplingParams(LogitFilters(1.0), 4, policy.eos_ids)
    )
    return one


def in_every_form(test: Callable) -> Callable:
    for form in thinned(FORMS, 3):
        test = example(form=form, seed=0, steps=2)(test)
    return test


@pytest.mark.slow
@pytest.mark.property(9)
@settings(max_examples=4 if EVERY else 1, deadline=None)
@given(form=st.sampled_from(list(FORMS)), seed=st.integers(0, 99), steps=st.integers(1, 3))
@in_every_form
def test_a_checkpoint_loads_as_it_was_written(base: Path, tmp_path_factory, form: str, seed: int, steps: int) -> None:
    policy = updated(loaded(base, seed, **FORMS[form]), steps)
    folder = saved(tmp_path_factory.mktemp("run"), policy)
    again = loaded(folder, **{name: value for name, value in FORMS[form].items() if name in HELD})
    assert torch.equal(logits(again), logits(policy))
    assert not torch.equal(logits(again), logits(loaded(base))), "training is in it"
    drawn = [sampled(who) for who in (policy, again)]
    assert drawn[0].ids and drawn[0] == drawn[1]


def test_an_adapters_checkpoint_is_a_plain_folder_of_the_library(base: Path, tmp_path: Path) -> None:
    from peft import AutoPeftModelForCausalLM
    from transformers import AutoTokenizer

    policy = updated(loaded(base, **LORA))
    folder = saved(tmp_path, policy)
    plain = AutoPeftModelForCausalLM.from_pretrained(folder)
    assert torch.equal(plain(input_ids=IDS).logits, logits(policy))
    assert plain.generate(input_ids=IDS, max_new_tokens=3, do_sample=False).shape == (1, IDS.shape[1] + 3)
    assert AutoTokenizer.from_pretrained(folder)("def f").input_ids == policy.tokenizer("def f").input_ids
    wanted = {"adapter_config.json", "adapter_model.safetensors", "base.json", "checkpoint.json", "state.json"}
    found = {path.name for path in folder.iterdir()}
    assert wanted <= found and "model.safetensors" not in found and "README.md" not in found
    said = json.loads((folder / "adapter_config.json").read_text())
    assert said["base_model_name_or_path"] == str(base) and said["r"] == 4
    assert set(json.loads((folder / "checkpoint.json").read_text())["sha256"]) == found - {
        "checkpoint.json",
        "training",
    }


def test_each_of_several_adapters_has_a_folder_of_its_name(base: Path, tmp_path: Path) -> None:
    policy = loaded(base)
    for name in ("writer", "annotator"):
        policy = updated(add_adapter(policy, name, LORA["adapter"], 0))
    folder = saved(tmp_path, policy)
    assert torch.equal(logits(loaded(folder / "annotator")), logits(policy)), "the last added is the active one"
    policy.model.set_adapter("writer")
    assert torch.equal(logits(loaded(folder / "writer")), logits(policy))
    sums = json.loads((folder / "checkpoint.json").read_text())["sha256"]
    assert {"writer/adapter_model.safetensors", "annotator/base.json"} <= set(sums)


@pytest.mark.parametrize("form", ["full", "lora"])
def test_weights_of_an_earlier_format_load(base: Path, tmp_path: Path, form: str, monkeypatch) -> None:
    policy = updated(loaded(base, **FORMS[form]))
    with monkeypatch.context() as earlier:
        earlier.setattr("rlvr_exp.core.sealed.FORMAT", 2)
        folder = saved(tmp_path, policy)
    assert torch.equal(logits(loaded(folder)), logits(policy))


@pytest.mark.parametrize("form", ["full", "lora"])
def test_a_policy_goes_back_to_its_checkpoint(base: Path, tmp_path: Path, form: str) -> None:
    policy = updated(loaded(base, **FORMS[form]))
    folder, then = saved(tmp_path, policy), logits(policy)
    updated(policy, steps=2)
    assert not torch.equal(logits(policy), then)
    restore(policy, folder)
    assert torch.equal(logits(policy), then)


def test_a_base_elsewhere_is_named_and_another_base_is_refused(base: Path, tmp_path: Path) -> None:
    policy = updated(loaded(base, **LORA))
    adapter = Adapter(path=str(saved(tmp_path / "run", policy)))
    moved, other = written(tmp_path / "moved"), written(tmp_path / "other", seed=1)
    again = loaded(moved, adapter=adapter)
    assert torch.equal(logits(again), logits(policy))
    on = saved(tmp_path / "on", again)
    assert json.loads((on / "adapter_config.json").read_text())["base_model_name_or_path"] == str(moved)
    with pytest.raises(InputError, match="trained on another base"):
        loaded(other, adapter=adapter)
    loaded(moved, adapter=adapter, dtype="bfloat16")
    loaded(moved, adapter=adapter, quantization="4bit")


@pytest.mark.parametrize("form", ["full", "lora"])
def test_weights_that_are_no_numbers_are_not_written(base: Path, tmp_path: Path, form: str) -> None:
    policy = loaded(base, **FORMS[form])
    first = saved(tmp_path, policy)
    next(value for value in policy.model.parameters() if value.requires_grad).data[0] = float("nan")
    with pytest.raises(GuardStop, match="not finite"):
        saved(tmp_path, policy, step=2)
    assert (tmp_path / "checkpoints" / "latest").resolve() == first
