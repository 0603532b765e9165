"""Options of the `parallel` group, the device of a run, and the cutting of a step into micro-batches.

The device is found without torch, since the parent process chooses settings by it. A plan may name another device. The
micro-batches come from one pure function that the dry plan and the trainers share.
"""

import os
import subprocess
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from importlib import metadata
from pathlib import Path
from shutil import which
from typing import Any

from rlvr_exp.config.options import option
from rlvr_exp.core import machine
from rlvr_exp.core.errors import InputProblem

DRIVER = Path("/proc/driver/nvidia/gpus")
"""A folder for each device. WSL2 has none."""
SMI, WSL_SMI = "nvidia-smi", "/usr/lib/wsl/lib/nvidia-smi"
QUERY = ("--query-gpu=memory.total,compute_cap", "--format=csv,noheader,nounits")
BFLOAT16 = 8.0
"""NVIDIA's compute capability from which on bfloat16 is fast."""


@dataclass(frozen=True)
class Device:
    """The device that a policy is put on."""

    cuda: bool
    memory_gib: float
    """GiB that torch can use; for a CPU the machine's."""
    bfloat16: bool
    """Computes in bfloat16 at full speed."""


NAMED = {
    "t4": Device(True, 14.5, False),
    "v100_16gb": Device(True, 15.7, False),
    "v100_32gb": Device(True, 31.7, False),
    "rtx3090": Device(True, 23.5, True),
    "rtx4090": Device(True, 23.5, True),
    "rtx5090": Device(True, 31.3, True),
    "a10g": Device(True, 21.9, True),
    "l4": Device(True, 22.0, True),
    "l40s": Device(True, 44.3, True),
    "rtx_a6000": Device(True, 47.4, True),
    "a100_40gb": Device(True, 39.4, True),
    "a100_80gb": Device(True, 79.1, True),
    "h100_80gb": Device(True, 79.1, True),
    "h200": Device(True, 139.7, True),
    "b200": Device(True, 178.3, True),
}
"""GPUs that a plan can be made for. Their memory is what torch reports as total, which is less than what is sold."""
CPU = "cpu"
ASSUMED_GIB = NAMED["rtx5090"].memory_gib
"""Memory of a GPU that does not report it."""


def planned(here: Device, name: str, memory_gib: float) -> Device:
    """The device that a plan is made for.

    Args:
        here: the device of this machine.
        name: one of NAMED, or CPU; empty: the device of this machine, or a GPU with bfloat16 if only a memory is given.
        memory_gib: memory of the device if it is not the usual one; else 0.
    """
    if name == CPU:
        found = here if not here.cuda else _cpu()
    elif name in NAMED:
        found = NAMED[name]
    else:
        found = Device(True, memory_gib, True) if memory_gib and not here.cuda else here
    return replace(found, memory_gib=memory_gib or found.memory_gib)


def _cpu() -> Device:
    return Device(False, machine.total() / 2**30, False)


@cache
def device() -> Device:
    """The first NVIDIA device that torch would use; else the CPU."""
    if not _torch_has_cuda() or os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1") or not (found := _devices()):
        return _cpu()
    return found[0]


@cache
def _devices() -> list[Device]:
    """The NVIDIA devices of this machine. Those of the driver's folder if nvidia-smi says nothing of them."""
    program = which(SMI) or which(WSL_SMI)
    with suppress(OSError, subprocess.SubprocessError, ValueError):
        if program is not None:
            said = subprocess.run([program, *QUERY], capture_output=True, text=True, timeout=20, check=True).stdout
            rows = [map(float, line.split(",")) for line in said.splitlines() if line.strip()]
            if found := [Device(True, memory / 1024, capability >= BFLOAT16) for memory, capability in rows]:
                return found
    return [Device(True, ASSUMED_GIB, True)] * (len(list(DRIVER.iterdir())) if DRIVER.is_dir() else 0)


def first_alone(environment: Mapping[str, str]) -> dict[str, str]:
    """The variable that leaves a process the first of several NVIDIA devices, since trainers take all visible ones; empty
    without several devices."""
    visible = environment.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        visible = "0" if len(_devices()) > 1 else ""
    return {"CUDA_VISIBLE_DEVICES": visible.split(",")[0]} if visible else {}


def _torch_has_cuda() -> bool:
    with suppress(metadata.PackageNotFoundError):
        return not metadata.version("torch").endswith("+cpu")
    return False


@dataclass(frozen=True)
class Batches:
    """The work of one training process in one step."""

    sequences: int
    """Sequences of one process."""
    micro_batch: int
    """Sequences of one forward and backward pass."""
    accumulation: int
    """Passes in one update."""


def derive(sequences: int, longest: int, max_tokens_per_device: int, processes: int = 1) -> Batches:
    """The largest micro-batch that divides a process's share and holds no more than the tokens allowed; at least 1.

    Args:
        sequences: sequences of a step over all processes (prompts_per_step x group_size, or batch_size); a
            process's share is rounded up.
        longest: tokens of the longest prompt and completion together.
    """
    share = -(-sequences // processes)
    fitting = [size for size in range(1, share + 1) if share % size == 0 and size * longest <= max_tokens_per_device]
    micro = max(fitting, default=1)
    return Batches(share, micro, share // micro)


def of_groups(
    prompts_per_step: int, group_size: int, prompt: int, completion: int, tokens: int, processes: int
) -> Batches:
    """Batches counted in groups: the completions of a prompt are learned from together, with the prompt held once.

    Args:
        prompt, completion: the longest allowed, in tokens.
        tokens: max_tokens_per_device.
    """
    return derive(prompts_per_step, prompt + group_size * completion, tokens, processes)


@dataclass(frozen=True)
class BatchLimits:
    """Limits of a training process's passes."""

    tokens: int
    """Tokens of one forward and backward pass: `algorithm.max_tokens_per_device`."""
    prompt: int
    """Tokens of the longest prompt that is taken."""
    filtered: bool = False
    """Completions are drawn with top-k, top-p or min-p."""


@dataclass(frozen=True)
class Piece:
    """Completions of one group that are computed together."""

    group: int
    samples: tuple[int, ...]
    """Index of the completion in its group."""
    tokens: int
    """Of the row: the prompt once, and each completion; of several rows: the prompt with each completion."""


def pieces(
    prompts: Sequence[int], answers: Sequence[Mapping[int, int]], tokens: int, shared: bool = True
) -> list[Piece]:
    """The pieces of each group, cut where a piece would pass `tokens`; at least one completion in each.

    Args:
        prompts: tokens of each group's prompt.
        answers: for each group the tokens of those completions that are learned from, by their place in the group.
        shared: the completions of a piece share their prompt; otherwise each is a piece of its own.
    """
    found = []
    for group, (prompt, lengths) in enumerate(zip(prompts, answers, strict=True)):
        held: dict[int, int] = {}
        for sample, length in lengths.items():
            if held and (not shared or prompt + sum(held.values()) + length > tokens):
                found.append(Piece(group, tuple(held), prompt + sum(held.values())))
                held = {}
            held[sample] = length
        if held:
            found.append(Piece(group, tuple(held), prompt + sum(held.values())))
    return found


def micro_batches(wanted: Sequence[Piece], tokens: int, processes: int = 1) -> list[list[Piece]]:
    """Every pass of a step over all processes, in the order in which they are dealt out: number i is run by process
    i % processes. All processes run equally many; where there is less to do, some are empty.

    The fewest passes that stay within `tokens` (a piece that does not is alone), and of those the ones that are most even.
    Alike pieces, which differ little in length, run together, and neighbours at the same time, so that nobody waits long.
    """
    ordered = sorted(wanted, key=lambda piece: (piece.tokens, piece.group, piece.samples))
    count = max(1, len(_filled(ordered, tokens)))
    count = -(-count // processes) * processes
    caps = range(1, max([tokens, *(piece.tokens for piece in ordered)]) + 1)
    cap = caps[bisect_left(caps, True, key=lambda cap: len(_filled(ordered, cap)) <= count)]
    parts = _filled(ordered, cap)
    return parts + [[] for _ in range(count - len(parts))]


def _filled(ordered: Sequence[Piece], cap: int) -> list[list[Piece]]:
    """Neighbours together for as long as they stay within `cap` tokens."""
    parts: list[list[Piece]] = []
    held = cap
    for piece in ordered:
        held += piece.tokens
        if held > cap:
            parts.append([])
            held = piece.tokens
        parts[-1].append(piece)
    return parts


STRATEGIES = ("single", "ddp", "zero2", "zero3")
SHARDING = {"zero2": 2, "zero3": 3}
"""DeepSpeed's ZeRO stage (Rajbhandari et al. 2020, arXiv 1910.02054) of the strategies that it runs."""
OURS = {
    "train_batch_size": "algorithm.max_tokens_per_device; micro-batches are derived",
    "train_micro_batch_size_per_gpu": "algorithm.max_tokens_per_device; micro-batches are derived",
    "gradient_accumulation_steps": "algorithm.max_tokens_per_device; micro-batches are derived",
    "gradient_clipping": "optimizer.max_grad_norm",
    "optimizer": "optimizer",
    "scheduler": "scheduler",
    "fp16": "model.dtype",
    "bf16": "model.dtype",
    "zero_optimization.stage": "parallel.strategy",
    "zero_optimization.offload_optimizer": "parallel.offload",
    "zero_optimization.offload_param": "parallel.offload",
}
"""Settings of DeepSpeed that the framework writes itself, and our key for each."""


@dataclass
class Parallel:
    """Processes of the training, and how they share it."""

    strategy: str = option("single", choices=STRATEGIES)
    """ddp: every process holds a complete copy. zero2: gradients and optimizer state are sharded. zero3: weights are
    sharded too."""
    processes: int = option(1, low=1)
    """Training processes on this machine, one for each device."""
    share_device: bool = option(False, rare=True)
    """Let several processes use one device and communicate by gloo. This is slow; it is for trying several processes on one
    device."""
    threads: int = option(0, low=0)
    """CPU threads of one process. 0: chosen for the machine."""
    offload: bool = False
    """Keep weights and optimizer state in host memory. Only with zero3."""
    timeout_s: int = option(3600, low=1, rare=True)
    """Seconds that a process waits for the others before the run fails. It must exceed the slowest rollout of a process."""
    nodes: int = option(1, low=1)
    """Machines that run this command together, each with its own `node`."""
    node: int = option(0, low=0, rare=True)
    """Index of this machine. Machine 0 writes the run directory."""
    address: str = option("", rare=True)
    """Host name or address of machine 0, if there are several machines."""
    port: int = option(0, low=0, high=65534, rare=True)
    """Port on machine 0 for all processes; by the next one the machines watch each other. 0: any free port, on one machine."""
    deepspeed: dict[str, Any] = option({}, rare=True)
    """Further settings of DeepSpeed, by their own names."""
    device: str = option("", choices=("", CPU, *NAMED), rare=True)
    """Make the plan (run.dry=true) for this device: it decides the data type, the lengths and the batches. A run always
    uses the devices of its machine. Empty: the device of this machine."""
    device_memory_gib: float = option(0.0, low=0, rare=True)
    """Memory of one device in a plan, in GiB, if the device is not in the list or has less. 0: the usual memory of the
    device; for a CPU, the free memory, shared by the processes."""

    @property
    def world(self) -> int:
        """Training processes on all machines."""
        return self.processes * self.nodes

    @property
    def distributed(self) -> bool:
        return self.strategy != "single"

    def problems(self) -> list[InputProblem]:
        return [*self._of_processes(), *self._of_deepspeed()]

    def _of_processes(self) -> Iterator[InputProblem]:
        if self.strategy == "single" and self.processes > 1:
            what, remedy = (
                "one process only under parallel=single",
                "parallel=ddp (or zero2, zero3), which takes processes",
            )
            yield InputProblem("processes", what, str(self.processes), "1", "", remedy)
        if self.offload and self.strategy != "zero3":
            yield InputProblem("offload", "has no effect", "true", "false", "", "parallel=zero3_offload, or drop it")
        if self.nodes == 1:
            if self.address:
                remedy = "drop it, or set parallel.nodes"
                yield InputProblem("address", "one machine needs none", self.address, "", "", remedy)
            if self.node:
                yield InputProblem("node", "there is one machine", str(self.node), "0", "", "set parallel.nodes")
            return
        if not self.distributed:
            what = "one machine only under parallel=single"
            yield InputProblem("nodes", what, str(self.nodes), "1", "", "parallel=ddp")
        if not self.address or not self.port:
            what, got = "several machines need a place to meet", f"{self.address}:{self.port}"
            remedy = "parallel.address=HOST parallel.port=29500, the same on every machine"
            yield InputProblem("address", what, got, "", "", remedy)
        if self.node >= self.nodes:
            yield InputProblem("node", "there are fewer machines", str(self.node), f"0 to {self.nodes - 1}")

    def _of_deepspeed(self) -> Iterator[InputProblem]:
        if self.deepspeed and self.strategy not in SHARDING:
            remedy = "parallel=zero2, zero3 or zero3_offload"
            yield InputProblem(
                "deepspeed", f"DeepSpeed does not run under {self.strategy}", str(self.deepspeed), "", "", remedy
            )
        for key, ours in OURS.items():
            if (value := _at(self.deepspeed, key)) is not None:
                yield InputProblem(f"deepspeed.{key}", "set by the framework", str(value), "", "", f"set {ours}")


def _at(tree: Mapping[str, Any], dotted: str) -> Any:
    """The value below a dotted key; None if there is none."""
    for name in dotted.split("."):
        tree = tree.get(name) if isinstance(tree, Mapping) else None  # type: ignore[assignment]
    return tree
