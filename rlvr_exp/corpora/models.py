"""Makers of model files: a full checkpoint merged from an adapter and its base, and the embedded policies.

An adapter trained over a quantized base learned with weights that differ from the stored weights. By default it is merged
into those, dequantized: the result answers as the policy that was trained and measured. `prepare.stored` takes the
weights as stored. Nothing is merged into quantized weights, where most of an update would be rounded away. The same holds
in part for bfloat16, so the number format is that of training unless another is named.

The files of an embedded policy are its tokenizer and architecture, from the embedded train split, then trained weights:

    +stage=prepare prepare=policy prepare.name=NAME          tokenizer and architecture
    +stage=sft +experiment=...                               trains it (docs/default_experiment.md, docs/dafny.md)
    +stage=prepare prepare=policy prepare.name=NAME prepare.path=CHECKPOINT    its weights, beside them

NAME is a model of rlvr_exp/assets/models; the domain that lists it as `embedded` makes its tasks.
"""

from dataclasses import replace
from pathlib import Path

import torch
from huggingface_hub import ModelCard
from transformers import (
    AutoModelForCausalLM,
    GenerationConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    Qwen3Config,
)

from rlvr_exp.config.model import Adapter, Model, is_adapter, recorded, recorded_base
from rlvr_exp.config.needs import weights_missing
from rlvr_exp.config.schema import Config
from rlvr_exp.core.domains import domains, load
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.core.sealed import CARD
from rlvr_exp.models.adapters import with_adapter
from rlvr_exp.models.policy import load_policy, load_tokenizer
from rlvr_exp.models.random_weights import CODE, GRID, train_tokenizer, training_texts
from rlvr_exp.records.context import RunContext


def merge(config: Config, context: RunContext) -> tuple[str, dict[str, int]]:
    """Write the merged model and its tokenizer.

    Raises:
        InputError: the adapter or its base is missing, or the output folder is not empty.
    """
    options = config.prepare
    adapter, out = options.path, Path(options.output or context.directory / "merged")
    if not is_adapter(adapter):
        raise InputError(
            InputProblem("prepare.path", "no adapter is there", adapter, "a folder with adapter_config.json")
        )
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(InputProblem("prepare.output", "holds something", str(out), "a new or empty folder"))
    network, tokenizer = merged(adapter, options.base, options.dtype, options.stored)
    network.save_pretrained(out)
    tokenizer.save_pretrained(out)
    _merged_card(Path(adapter), out)
    return f"merged into {out}", {"parameters": network.num_parameters()}


def merged(
    adapter: str, place: str = "", dtype: str = "", stored: bool = False
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Merge an adapter into its base.

    Args:
        place: the base; empty: the recorded one.
        dtype: type of the merged weights; empty: that of training.
        stored: merge into the weights as stored, not as quantized in training.

    Returns:
        The network and its tokenizer.

    Raises:
        InputError: the base is missing.
    """
    record = recorded(adapter)
    place = place or recorded_base(adapter)
    local = Path(place).is_absolute() or Path(place).is_dir()
    base = Model(
        path=place if local else "",
        name="" if local else place,
        dtype=dtype or record.get("dtype", "auto"),
        quantization="none" if stored else record.get("quantization", "none"),
        max_prompt_tokens=1,  # Nothing is sampled, so any context is long enough.
        max_completion_tokens=1,
    )
    if needs := list(weights_missing(base)):
        raise InputError(*(need.problem for need in needs))
    network = load_policy(base, seed=0).model
    over = replace(base, adapter=Adapter(path=adapter), quantization="none")
    adapted = with_adapter(network if base.quantization == "none" else network.dequantize(), over, seed=0)
    return adapted.merge_and_unload(safe_merge=True), load_tokenizer(over)


def _merged_card(adapter: Path, out: Path) -> None:
    """Write the card of the adapter's checkpoint next to the merged weights, if there is one."""
    if (adapter / CARD).is_file():
        card = ModelCard.load(adapter / CARD)
        card.data.library_name, card.data.base_model_relation = "transformers", "finetune"
        card.text += "\n## Merge\n\nThe adapter of this card is merged into its base model. The rates are those before the merge.\n"
        card.save(out / CARD)


def embed(config: Config, context: RunContext) -> tuple[str, dict[str, int]]:
    """Write tokenizer and architecture, or the weights of a checkpoint as bfloat16 into the same folder. The same corpus
    gives the same files."""
    options = config.prepare
    folder = Path(options.output or context.directory / options.name)
    if options.path:
        for old in folder.glob("*.safetensors*"):
            old.unlink()
        trained = AutoModelForCausalLM.from_pretrained(options.path, dtype=torch.bfloat16)
        trained.save_pretrained(folder, max_shard_size="1900KB")
    else:
        embedded = {name: load(path) for one in domains().values() for name, path in one.embedded.items()}
        domain, pieces = embedded[options.name]()
        tokenizer = train_tokenizer(training_texts(domain), {"grid": GRID, "code": CODE}[pieces])
        tokenizer.save_pretrained(folder)
        special = {"bos_token_id": None, "eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id}
        architecture = Qwen3Config(
            vocab_size=len(tokenizer),
            hidden_size=128,
            intermediate_size=384,
            num_hidden_layers=5,
            num_attention_heads=4,
            num_key_value_heads=2,
            head_dim=32,
            max_position_embeddings=4096,
            rope_theta=10_000.0,
            tie_word_embeddings=True,
            architectures=["Qwen3ForCausalLM"],
            **special,
        )
        architecture.save_pretrained(folder)
        GenerationConfig(**special).save_pretrained(folder)
    return f"written: {folder}", {"files": len(list(folder.iterdir()))}
