"""`benchmark=memory`: measured peaks beside the estimate, in every phase of a run with random weights of its shape.

On a CUDA device peaks are the allocator's; elsewhere `Peak` counts them from torch's operations, and the model has to fit
into the machine's memory. Needs no weights and no data. Measures what one process does alone: what ZeRO partitions and
gathers is not seen.

`benchmark=quantization`: the same random model in bfloat16, 8 bits and 4 bits. The defaults make a Qwen3 of 197 million
parameters, 96% of them in linear layers, which are quantized. A model whose embeddings weigh more, such as the embedded
model, saves less.
"""

import gc
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from transformers import AutoModelForCausalLM, Qwen3Config
from trl.trainer.utils import add_fused_lm_head

from rlvr_exp.algorithms.logprobs import score
from rlvr_exp.algorithms.packed_layers import choose
from rlvr_exp.algorithms.packing import attending, packed
from rlvr_exp.config.load import build
from rlvr_exp.config.model import Model
from rlvr_exp.config.schema import Config
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.memory import phases
from rlvr_exp.memory.reading import workload_of
from rlvr_exp.memory.workload import GIB, Workload
from rlvr_exp.models.adapters import new_adapter
from rlvr_exp.models.policy import load_network
from rlvr_exp.models.quantization import weight_bytes
from rlvr_exp.models.random_weights import random_network
from rlvr_exp.records.context import RunContext
from rlvr_exp.rollouts.sampler import sample_groups
from rlvr_exp.rollouts.sampling_params import LogitFilters, SamplingParams


class Peak(TorchDispatchMode):
    """The peak of tensor memory while code runs, on any device, also of tensors that have a shape and no data.

    Counts every storage from its first tensor to its end, as torch's operations create them. Under torch's `FakeTensorMode`
    nothing is computed, so that a model of any size can be measured on any machine. Not counted: allocations of a kernel or
    a library inside an operation. `now` and `highest` are in bytes; `known` are existing tensors, counted from the start.
    """

    def __init__(self, known: Any = ()):
        super().__init__()
        self.now = self.highest = 0
        self._seen: set[int] = set()
        for tensor in tree_leaves(known):
            self._count(tensor)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for value in tree_leaves(result):
            self._count(value)
        return result

    def restart(self) -> None:
        """Start a new phase: the current bytes are the highest so far."""
        self.highest = self.now

    def _count(self, value: Any) -> None:
        # Weights packed for a CPU's kernels have no storage to inspect; a device does not have them.
        if not isinstance(value, torch.Tensor) or value.device.type == "meta" or value.layout is not torch.strided:
            return
        storage = value.untyped_storage()
        key = storage._cdata
        if key in self._seen:
            return
        self._seen.add(key)
        size = storage.nbytes()
        self.now += size
        self.highest = max(self.highest, self.now)
        weakref.finalize(storage, self._free, key, size)

    def _free(self, key: int, size: int) -> None:
        self._seen.discard(key)
        self.now -= size


Measure = Callable[[Callable[[], object]], float]
"""Runs a function and returns the highest number of bytes on the device meanwhile."""


def seen(lines: phases.Lines) -> phases.Lines:
    """The lines that are tensors of torch. Weights that oneDNN has packed for a CPU have no storage to count."""
    return {name: size for name, size in lines.items() if name not in ("packed weights", "examples")}


def random_model(config: Config, workload: Workload, device: str) -> nn.Module:
    """The model with its adapter, weights random, as the run would train it."""
    positions, dtype = 2 * (workload.prompt + workload.completion), getattr(torch, workload.dtype)
    network = random_network(workload.shape, positions, dtype, device, workload.quantization)
    add_fused_lm_head(network, outputs=("log_probs", "entropy"))
    if workload.checkpointing:
        network.gradient_checkpointing_enable({"use_reentrant": False})
    if not workload.adapter:
        return network
    adapted = new_adapter(network, config.model.adapter, config.seed)
    adapted.enable_input_require_grads()
    return adapted


class Update:
    """The phases of training on a pass of the longest lengths."""

    def __init__(self, config: Config, workload: Workload, model: nn.Module, device: str, way: str):
        self._layout, self._model, self._device, self._way = workload, model, device, way
        self._optimizer = build(config.optimizer).make(model)
        prompts = [[1] * prompt for prompt, count in workload.groups for _ in range(count)]
        answers = [[1] * workload.completion] * len(prompts)
        owners = [group for group, (_, count) in enumerate(workload.groups) for _ in range(count)]
        self._rows = packed(prompts, answers, owners, workload.completion).to(torch.device(device))
        self._kept = self._rows.labels.new_full((len(self._rows.labels), 1), -1) if workload.filtered else None

    def _loss(self) -> torch.Tensor:
        kind = torch.device(self._device).type
        mixed = torch.autocast(kind, torch.bfloat16) if self._layout.width == 2 else nullcontext()
        with mixed:
            return score(self._model, self._rows, 1.0, self._kept, implementation=self._way).logprobs.sum()

    def score(self) -> None:
        with torch.no_grad():
            self._loss()

    def backward(self) -> None:
        self._model.train()
        with attending(self._model, self._way):
            self._loss().backward()

    def update(self) -> None:
        self._optimizer.step()

    def forget(self) -> None:
        self._model.zero_grad()


def peaks(config: Config, workload: Workload, device: str) -> dict[str, float]:
    """The peak bytes of each phase, by its name. Optimizer states exist from the second update on, as in a run."""
    found: dict[str, float] = {}
    with measuring(device) as measure:
        kept: list[nn.Module] = []
        found["load"] = measure(lambda: kept.append(random_model(config, workload, device)))
        model = kept[0]
        if workload.trains:
            longest = workload.prompt + workload.completion
            choice = choose(model, longest, torch.device(device), getattr(torch, workload.dtype))
            if choice.implementation is None:
                raise RuntimeError(f"the model cannot take packed rows: {'; '.join(choice.reasons)}")
            update = Update(config, workload, model, device, choice.implementation)
            update.backward()
            update.update()
            update.forget()
        found["rollout"] = measure(lambda: roll_out(model, workload))
        if workload.trains:
            found["log-probs"] = measure(update.score)
            if workload.accumulates:
                update.backward()
            found["backward"] = measure(update.backward)
            found["optimizer"] = measure(update.update)
            update.forget()
            found["checkpoint"] = measure(
                lambda: [torch.isfinite(x).all() for x in model.parameters() if x.requires_grad]
            )
    return found


def roll_out(model: nn.Module, workload: Workload) -> None:
    """Sampling at the longest lengths: no token ends a completion."""
    sampling_batch = workload.sampling_batch
    sampling = SamplingParams(
        LogitFilters(), sampling_batch.completion, (-1,), batch_size=sampling_batch.groups * sampling_batch.size
    )
    keys = [
        [("measure", group, sample) for sample in range(sampling_batch.size)] for group in range(sampling_batch.groups)
    ]
    sample_groups(model, [[1] * sampling_batch.prompt] * sampling_batch.groups, keys, sampling)


@contextmanager
def measuring(device: str) -> Iterator[Measure]:
    counted = nullcontext(Peak()) if torch.device(device).type == "cuda" else Peak()
    with counted as peak:

        def run(work: Callable[[], object]) -> float:
            if torch.device(device).type == "cuda":
                torch.cuda.empty_cache()
                torch.cuda.reset_peak_memory_stats()
                work()
                torch.cuda.synchronize()
                return float(torch.cuda.max_memory_allocated())
            peak.restart()
            work()
            return float(peak.highest)

        yield run


def required_workload(config: Config) -> Workload:
    """Raises InputError if the model's shape is unknown."""
    workload = workload_of(config)
    if workload is None:
        raise InputError(InputProblem("model.architecture", "the model's shape is unknown", remedy="set its numbers"))
    return workload


def measure(config: Config, context: RunContext) -> tuple[str, dict[str, float]]:
    """Estimate over measured, for each phase. Raises InputError if the model's shape is unknown."""
    workload = required_workload(config)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    found = peaks(config, workload, device)
    lines = [f"{'phase':<12}{'estimate':>12}{'measured':>12}{'ratio':>8}   GiB on {device}, tensors alone"]
    ratios = {}
    for name, measured in found.items():
        expected = sum(seen(phases.PHASES[name](workload)).values())
        ratios[f"estimate_over_measured/{name}"] = expected / measured
        lines.append(f"{name:<12}{expected / GIB:>12.3f}{measured / GIB:>12.3f}{expected / measured:>8.2f}")
    return "\n".join(lines), ratios


BITS = {"none": "bfloat16", "8bit": "8bit", "4bit": "4bit"}


def quantized(config: Config, context: RunContext) -> tuple[str, dict[str, int]]:
    """The bytes of a random model in each number of bits, and their share of those in bfloat16. On a GPU they are counted by
    its allocator."""
    options, held = config.benchmark, {}
    shape = Qwen3Config(
        vocab_size=options.vocabulary,
        hidden_size=options.hidden,
        intermediate_size=3 * options.hidden,
        num_hidden_layers=options.layers,
        num_attention_heads=options.hidden // 64,
        num_key_value_heads=options.hidden // 128,
        tie_word_embeddings=True,
    )
    with TemporaryDirectory() as folder:
        AutoModelForCausalLM.from_config(shape, dtype=torch.bfloat16).save_pretrained(folder)
        for bits, name in BITS.items():
            gc.collect()
            before = torch.cuda.memory_allocated() if torch.cuda.is_available() else 0
            network = load_network(Model(path=folder, dtype="bfloat16", quantization=bits), seed=0)
            held[name] = torch.cuda.memory_allocated() - before if torch.cuda.is_available() else weight_bytes(network)
            del network
    lines = (f"{name:<9} {size / 2**20:9.1f} MiB  {size / held['bfloat16']:.3f}" for name, size in held.items())
    return "\n".join(lines), {f"bytes/{name}": size for name, size in held.items()}
