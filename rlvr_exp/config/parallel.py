"""Options of the `parallel` group: the training processes, and what each of them holds."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from rlvr_exp.config.devices import CPU, NAMED
from rlvr_exp.config.options import option
from rlvr_exp.core.errors import InputProblem

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
    """ddp: every process holds everything; zero2: gradients and optimizer state are sharded; zero3: weights too."""
    processes: int = option(1, low=1)
    """Training processes on this machine, one a device."""
    share_device: bool = False
    """Let several processes use one device, and send tensors by gloo: slow, to try a run of several where there is one."""
    threads: int = option(0, low=0)
    """Compute threads of one process; 0: chosen for the machine."""
    offload: bool = False
    """Weights and optimizer state wait in host memory; only under zero3."""
    timeout_s: int = option(3600, low=1)
    """Seconds that a process waits for the others before the run fails: longer than the slowest rollout of one rank."""
    nodes: int = option(1, low=1)
    """Machines that run this same command together, each with its own `node`."""
    node: int = option(0, low=0)
    """Index of this machine; machine 0 writes the run directory."""
    address: str = ""
    """Host name or address of machine 0, where there are several."""
    port: int = option(0, low=0, high=65535)
    """Port on machine 0 at which all processes meet; 0: any free one, for one machine."""
    deepspeed: dict[str, Any] = field(default_factory=dict)
    """Further settings of DeepSpeed, by their own names."""
    device: str = option("", choices=("", CPU, *NAMED))
    """The device that a plan (run.dry=true) is made for. The plan then chooses the type of the weights, the lengths and the
    batches as a run on such devices does. Empty: the device of this machine. A run uses the devices of its machine."""
    device_memory_gib: float = option(0.0, low=0)
    """In a plan, GiB of one device if it is not in the list of `parallel.device`, or only a part of it. 0: the usual memory of
    the device; of a CPU what is free now, shared by the processes."""
    link_gb_s: float = option(25.0, above=0)
    """GB/s that a device receives from the others, for the dry plan; PCIe 4 with 16 lanes has about 25."""

    @property
    def world(self) -> int:
        """Training processes on all machines."""
        return self.processes * self.nodes

    @property
    def distributed(self) -> bool:
        return self.strategy != "single"

    def problems(self) -> list[InputProblem]:
        return [*self._of_strategy(), *self._of_nodes(), *self._of_deepspeed()]

    def _of_strategy(self) -> Iterator[InputProblem]:
        if self.strategy == "single" and self.processes > 1:
            remedy = "parallel=ddp (or zero2, zero3), which takes processes"
            yield InputProblem(
                "processes", "one process only under parallel=single", str(self.processes), "1", "", remedy
            )
        if self.offload and self.strategy != "zero3":
            yield InputProblem("offload", "has no effect", "true", "false", "", "parallel=zero3_offload, or drop it")

    def _of_nodes(self) -> Iterator[InputProblem]:
        if self.nodes == 1:
            if self.address:
                yield InputProblem(
                    "address", "one machine needs none", self.address, "", "", "drop it, or set parallel.nodes"
                )
            if self.node:
                yield InputProblem("node", "there is one machine", str(self.node), "0", "", "set parallel.nodes")
            return
        if not self.distributed:
            yield InputProblem(
                "nodes", "one machine only under parallel=single", str(self.nodes), "1", "", "parallel=ddp"
            )
        if not self.address or not self.port:
            remedy = "parallel.address=HOST parallel.port=29500, the same on every machine"
            yield InputProblem(
                "address", "several machines need a place to meet", f"{self.address}:{self.port}", "", "", remedy
            )
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
    """The value below a dotted key; None where there is none."""
    for name in dotted.split("."):
        tree = tree.get(name) if isinstance(tree, Mapping) else None  # type: ignore[assignment]
    return tree
