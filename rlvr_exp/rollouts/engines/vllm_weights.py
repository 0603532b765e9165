"""vLLM in the process that trains, with the weights of a policy.

vLLM is built without weights. Each rollout begins with the policy's weights: `awake` copies them, and outside of it vLLM's memory
is free for training (sleep mode; not on a CPU). An adapter that vLLM can hold stays beside its base. Any other adapter is merged
into the copies, one layer at a time: the policy's own weights do not change.
"""

import itertools
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp
from typing import Any
from weakref import finalize

import torch
from peft import PeftModel
from peft.tuners.tuners_utils import BaseTunerLayer

from rlvr_exp.config.cross_checks import RANKS_OF_VLLM
from rlvr_exp.config.engine import BLOCK_ON_CPU, LONGEST_ON_CPU, ROWS_OF_VLLM, TOKENS_OF_VLLM
from rlvr_exp.core import machine
from rlvr_exp.models.policy import Policy
from rlvr_exp.models.quantization import quantization_of
from rlvr_exp.rollouts.distributed import ranks

DEEP, LIGHT = 2, 1
"""Levels of sleep: drop the weights, or keep them in the memory of the machine."""


class VLLMModel:
    """
    Args:
        policy: its base is vLLM's model.
        dtype: of vLLM's weights.
        memory_share: share of the device's memory while vLLM is awake.
        longest: tokens of the longest prompt with its completion.
    """

    def __init__(self, policy: Policy, dtype: torch.dtype, memory_share: float, longest: int):
        self._holds_adapter = adapter_rank(policy.model) > 0
        self._numbers = itertools.count(1)
        self._folder = Path(mkdtemp(prefix="weights-for-vllm-"))
        finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        base = _base(policy.model)
        self._sleeps = base.device.type != "cpu"
        arguments: dict[str, Any] = dict(
            dtype=str(dtype).removeprefix("torch."),
            skip_tokenizer_init=True,
            max_model_len=longest,
            max_num_seqs=ROWS_OF_VLLM,
            max_num_batched_tokens=max(TOKENS_OF_VLLM, longest),
            enable_chunked_prefill=self._sleeps,  # vLLM 0.31 on a CPU fails on a cut prompt with a seed.
            gpu_memory_utilization=memory_share,
            enable_sleep_mode=self._sleeps,
            logprobs_mode="processed_logprobs",
            distributed_executor_backend="external_launcher" if ranks() > 1 else "uni",
        )
        if self._holds_adapter:
            name, rank = kind_of(policy)
            arguments |= dict(model=name, enable_lora=True, max_lora_rank=rank)
            arguments |= dict(quantization="bitsandbytes") if quantization_of(base) == "4bit" else {}
        else:
            base.config.save_pretrained(self._folder)
            arguments |= dict(model=str(self._folder), load_format="dummy")
        if not self._sleeps:
            arguments |= dict(
                enforce_eager=True, kv_cache_memory_bytes=cache_on_cpu(base, dtype, memory_share, longest)
            )
        self.engine = _built(arguments)

    @contextmanager
    def awake(self, policy: Policy) -> Iterator[Any]:
        """vLLM with the policy's current weights. The value is the adapter of its requests; None: no adapter."""
        if self._sleeps:
            self.engine.wake_up(tags=["weights"])
        adapter = None
        if self._holds_adapter:
            adapter = self._adapter(policy.model)
        else:
            self.engine.apply_model(lambda inner: inner.load_weights(named_weights(policy.model)))
        if self._sleeps:
            self.engine.wake_up(tags=["kv_cache"])
        self.engine.reset_prefix_cache()
        try:
            yield adapter
        finally:
            if self._sleeps:
                self.engine.sleep(LIGHT if self._holds_adapter else DEEP)

    def _adapter(self, model: PeftModel) -> Any:
        from vllm.lora.request import LoRARequest

        number = next(self._numbers)  # vLLM keeps an adapter by its number and reads a new number from its files.
        folder, name = self._folder / str(number), model.active_adapter
        shutil.rmtree(self._folder / str(number - 1), ignore_errors=True)
        model.save_pretrained(folder, selected_adapters=[name])
        files = folder if (folder / "adapter_config.json").is_file() else folder / name
        return LoRARequest(f"adapter {number}", number, str(files))


def kind_of(policy: Policy) -> tuple[str, int]:
    """The base that an adapter stays beside and vLLM's rank for it. If all weights are copied: their shape, 0."""
    base, rank = _base(policy.model), adapter_rank(policy.model)
    if rank:
        return base.name_or_path, min(one for one in RANKS_OF_VLLM if one >= rank)
    shape = {name: value for name, value in base.config.to_dict().items() if name != "_name_or_path"}
    return json.dumps(shape, sort_keys=True, default=str), 0


def _base(model: Any) -> Any:
    return model.get_base_model() if isinstance(model, PeftModel) else model


def _built(arguments: dict[str, Any]) -> Any:
    """vLLM's engine. Building it changes neither torch's random numbers nor its threads."""
    from vllm import LLM, _custom_ops

    threads = torch.set_num_threads
    # oneDNN keeps a packed copy of each matrix, which new weights would not reach.
    _custom_ops._supports_onednn = False
    try:
        with torch.random.fork_rng():
            return LLM(**arguments, seed=0, use_tqdm_on_load=False).llm_engine
    finally:
        torch.set_num_threads = threads


def cache_on_cpu(base: Any, dtype: torch.dtype, memory_share: float, longest: int) -> int:
    """Bytes of the keys and values, within the share of the machine's memory."""
    shape = base.config.get_text_config()
    heads = getattr(shape, "num_key_value_heads", None) or shape.num_attention_heads
    width = getattr(shape, "head_dim", None) or shape.hidden_size // shape.num_attention_heads
    token = 2 * shape.num_hidden_layers * heads * width * dtype.itemsize
    return min(LONGEST_ON_CPU * (longest + BLOCK_ON_CPU) * token, int(memory_share * machine.total()))


def named_weights(model: torch.nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """The weights of a model under the names of its checkpoint, the active adapter merged into them."""
    if not isinstance(model, PeftModel):
        yield from ((name, value.data) for name, value in model.named_parameters())
        return
    active, base = model.active_adapter, model.get_base_model()
    for name, layer in base.named_modules():
        if isinstance(layer, BaseTunerLayer):
            yield f"{name}.weight", _merged(layer, active)
    for name, value in base.named_parameters():
        if ".lora_" in name or "original_module" in name or name.endswith("base_layer.weight"):
            continue
        yield name.replace(".base_layer", "").replace(f".modules_to_save.{active}", ""), value.data


def _merged(layer: Any, adapter: str) -> torch.Tensor:
    weight = layer.get_base_layer().weight
    own = weight.data
    layer.merge(safe_merge=True, adapter_names=[adapter])
    merged, weight.data = weight.data, own  # Unmerging would round the base's weights.
    layer.merged_adapters.clear()
    return merged


def adapter_rank(model: Any) -> int:
    """The rank of an adapter that vLLM holds beside its base. 0: there is no adapter, or it must be merged."""
    if not isinstance(model, PeftModel):
        return 0
    form = model.peft_config[model.active_adapter]
    plain = not form.use_dora and not form.modules_to_save and not form.rank_pattern and form.bias == "none"
    return form.r if plain and form.r <= max(RANKS_OF_VLLM) else 0
