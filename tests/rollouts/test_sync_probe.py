"""The probe stops a run whose engine does not serve the trained weights, and names the cause; each cause is provoked."""

import copy

import pytest
import torch
from peft import LoraConfig, get_peft_model
from rollout_models import plain_logits, prompts, tiny_model

from rlvr_exp.core.errors import GuardStop
from rlvr_exp.rollouts.sync_probe import Sequences, SyncProbe


def scores_of(model, sequences: Sequences):
    """A trainer's scores: entire sequences without a cache, with the model's weights at the time of the call."""

    def trained() -> torch.Tensor:
        rows = [
            plain_logits(model, list(prompt), ids).log_softmax(-1).gather(-1, torch.tensor(ids)[:, None])[:, 0]
            for prompt, answers in zip(sequences.prompts, sequences.completions, strict=True)
            for ids in answers
        ]
        return torch.stack(rows)

    return trained


def probe(engine, learner, tolerance: float = 0.0) -> SyncProbe:
    sequences = Sequences.of(prompts(2))
    return SyncProbe(engine, learner, sequences, scores_of(learner, sequences), 1.0, tolerance)


def update(model, size: float = 0.05) -> None:
    """A step of training: every parameter that is trained moves."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for value in model.parameters():
            if value.requires_grad:
                value += size * torch.randn(value.shape, generator=generator, dtype=value.dtype)


def with_adapter(model):
    form = LoraConfig(r=2, lora_alpha=8, target_modules=["q_proj", "v_proj", "down_proj"])
    return get_peft_model(model, form).eval()


def test_an_engine_on_the_trained_weights_passes_before_and_after_updates():
    model = tiny_model()
    one = probe(model, model)
    assert one.check(0) < 1e-5
    update(model)
    assert one.check(1) < 1e-5


def test_a_stale_copy_is_stopped_and_its_step_named():
    model = tiny_model()
    engine = copy.deepcopy(model)
    one = probe(engine, model)
    one.check(0)
    update(model)
    engine.load_state_dict(model.state_dict())
    one.check(1)
    update(model)
    with pytest.raises(GuardStop, match=r"step 2: .* stale weights: it has those of step 1"):
        one.check(2)


def test_an_engine_in_another_dtype_is_stopped_and_the_dtype_named():
    model = tiny_model()
    one = probe(copy.deepcopy(model).bfloat16(), model, tolerance=1e-3)
    before = [value.clone() for value in model.parameters()]
    with pytest.raises(GuardStop, match="wrong dtype: it computes in bfloat16, the trainer in float32"):
        one.check(0)
    assert all(torch.equal(a, b) and b.dtype == torch.float32 for a, b in zip(before, model.parameters(), strict=True))


def test_an_engine_without_the_adapter_is_stopped_once_the_adapter_is_trained():
    base = tiny_model()
    engine = copy.deepcopy(base)
    model = with_adapter(base)
    one = probe(engine, model)
    one.check(0)
    update(model, 0.3)
    with pytest.raises(GuardStop, match="adapter ignored"):
        one.check(1)


def test_an_ignored_adapter_is_found_while_its_effect_is_within_tolerance():
    base = tiny_model()
    engine = copy.deepcopy(base)
    model = with_adapter(base)
    one = probe(engine, model, tolerance=10.0)
    update(model, 0.05)
    with pytest.raises(GuardStop, match="adapter ignored"):
        one.check(1)
    assert probe(model, model, tolerance=10.0).check(1) < 1e-5, "an engine that uses it passes"


def test_a_trained_adapter_that_changes_nothing_is_stopped():
    model = with_adapter(tiny_model())
    one = probe(model, model)
    one.check(0)
    update(model)
    for module in model.modules():
        if isinstance(getattr(module, "scaling", None), dict):
            module.scaling["default"] = 0.0
    with pytest.raises(GuardStop, match="the adapter changes nothing"):
        one.check(1)


def test_an_unknown_cause_is_reported_as_unknown():
    model = tiny_model()
    engine = copy.deepcopy(model)
    update(engine)
    with pytest.raises(GuardStop, match="neither an adapter left out, another dtype nor older weights"):
        probe(engine, model).check(0)


def test_weights_that_are_not_numbers_do_not_pass():
    model = tiny_model()
    with torch.no_grad():
        next(model.parameters())[:] = float("nan")
    with pytest.raises(GuardStop, match="differ by nan"):
        probe(model, model).check(0)


def test_sequences_depend_on_the_prompts_alone_and_fit_short_ones():
    assert Sequences.of([[5, 6, 7]]) == Sequences.of([[5, 6, 7]])
    assert Sequences.of([[5]]).completions[0][0] == (5,) * 12
    assert len(set(Sequences.of([list(range(100))]).completions[0])) == 4
