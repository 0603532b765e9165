"""Which device and which backend a rank takes."""

import pytest
import torch

from rlvr_exp.core.errors import InputError
from rlvr_exp.training import torch_distributed


@pytest.fixture
def one_device(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The devices selected on a machine with one."""
    chosen: list[int] = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "set_device", chosen.append)
    monkeypatch.setenv("LOCAL_RANK", "1")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    return chosen


def test_a_rank_without_a_device_is_refused_unless_it_may_share(one_device: list[int]) -> None:
    with pytest.raises(InputError, match="more processes than devices"):
        torch_distributed._backend(share=False)
    assert one_device == []
    assert torch_distributed._backend(share=True) == "gloo" and one_device == [0]


def test_ranks_of_a_machine_without_a_gpu_meet_by_gloo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert torch_distributed._backend(share=False) == "gloo"
