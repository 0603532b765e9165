"""Forward passes of sampling do not count as steps of DeepSpeed."""

from types import SimpleNamespace

import torch
from torch import nn

from rlvr_exp.models.parameters import _no_new_step


def engine(module: nn.Module, called: list[str]) -> SimpleNamespace:
    handle = module.register_forward_pre_hook(lambda *_: called.append("step"))
    return SimpleNamespace(
        optimizer=SimpleNamespace(parameter_offload=SimpleNamespace(module=module, fwd_pre_hook=handle))
    )


def test_a_pass_inside_the_block_begins_no_step_and_the_next_one_does_so_first() -> None:
    module, called = nn.Linear(1, 1), []
    with _no_new_step(engine(module, called)):
        module(torch.ones(1))
        assert called == []
    module.register_forward_pre_hook(lambda *_: called.append("fetch"))
    module(torch.ones(1))
    assert called == ["step", "fetch"]


def test_a_model_that_is_not_trained_yet_is_left_alone() -> None:
    module, called = nn.Linear(1, 1), []
    module.register_forward_pre_hook(lambda *_: called.append("own"))
    with _no_new_step(module):
        module(torch.ones(1))
    assert called == ["own"]
