"""The pretended CUDA devices refuse what a GPU refuses, and count what a GPU waits for."""

import json
from pathlib import Path

import pytest
from rehearsal import NEEDS_COMPILER, python

pytestmark = NEEDS_COMPILER
HERE = Path(__file__).parent
MESSAGES = {
    "mixed_devices": "Expected all tensors to be on the same device",
    "ids_of_the_host": "Expected all tensors to be on the same device",
    "numpy": "can't convert cuda:0 device type tensor to numpy",
    "generator_of_the_host": "Expected a 'cuda' device type for generator",
    "beyond_memory": "OutOfMemoryError: CUDA out of memory",
    "absent_device": "invalid device ordinal",
    "pinned_device_memory": "only dense CPU tensors can be pinned",
}


def test_faults_of_devices_raise(tmp_path: Path) -> None:
    run = python(tmp_path / "run", str(HERE / "device_rules.py"), memory_gib=1)
    assert run.code == 0, run.output
    found = json.loads(run.output.splitlines()[-1])
    assert {name: MESSAGES.get(name, "allowed") in fault for name, fault in found.items()} == dict.fromkeys(
        MESSAGES, True
    ), found
    assert run.reports[0]["peak_bytes"][0] <= 2**30


SYNCHRONISES = """
import torch
x = torch.ones(4, device="cuda")
{line}
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "line, count",
    [("x.sum().item()", 1), ("x.cpu()", 1), ("x.nonzero()", 1), ("x[torch.tensor([1])]", 1), ("x + 1", 0), ("x.to('cpu', non_blocking=True)", 0)],
)  # fmt: skip
def test_synchronisations_are_counted(line: str, count: int, tmp_path: Path) -> None:
    run = python(tmp_path / "run", "-c", SYNCHRONISES.format(line=line))
    assert run.code == 0, run.output
    assert sum(event["count"] for event in run.reports[0]["events"] if event["kind"] == "sync") == count


RANKS = """
import os, sys, torch, torch.distributed as dist, torch.multiprocessing as mp

def rank(index, place):
    os.environ.update(RANK=str(index), WORLD_SIZE="2")
    torch.cuda.set_device(index)
    dist.init_process_group("nccl", init_method=f"file://{place}", rank=index, world_size=2)
    x = torch.full((2,), float(index + 1), device="cuda")
    dist.all_reduce(x)
    assert x.tolist() == [3.0, 3.0]
    if sys.argv[1] == "diverge" and index:
        dist.broadcast(x, 0)
    dist.all_reduce(torch.ones(2) if sys.argv[1] == "host" else x)

if __name__ == "__main__":
    mp.spawn(rank, (sys.argv[2],), nprocs=2)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "fault, message",
    [("none", ""), ("diverge", "PRETENDED HANG"), ("host", "No backend type associated with device type cpu")],
)
def test_collectives_have_the_rules_of_nccl(fault: str, message: str, tmp_path: Path) -> None:
    program = tmp_path / "ranks.py"
    program.write_text(RANKS)
    run = python(tmp_path / "run", str(program), fault, str(tmp_path / "store"), devices=2)
    assert (run.code == 0) == (fault == "none") and message in run.output, run.output


@pytest.mark.slow
def test_two_ranks_do_not_share_a_device(tmp_path: Path) -> None:
    program = tmp_path / "ranks.py"
    program.write_text(RANKS.replace("set_device(index)", "set_device(0)"))
    run = python(tmp_path / "run", str(program), "none", str(tmp_path / "store"), devices=2)
    assert run.code != 0 and "Duplicate GPU detected" in run.output
