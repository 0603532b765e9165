"""Whether a folder's model and tokenizer can be loaded, as far as its files show. Reads headers and never weights, so that
a damaged or foreign folder is known before anything starts."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rlvr_exp.config.model import Model, continued
from rlvr_exp.core.errors import InputProblem

TOKENIZERS = ("tokenizer.json", "*.model", "vocab.*", "*.tiktoken", "tekken.json")
"""Files with a vocabulary, one of which every tokenizer has."""
INDEX = "model.safetensors.index.json"
HEADER_LIMIT = 100_000_000
"""Bytes that a header of the format has at most."""


def checkpoint_problems(model: Model, folder: Path) -> Iterator[InputProblem]:
    """What keeps a folder with weights, named by a `model` node, from being loaded. `folder`: below any adapter."""
    where = "model.path" if model.path else "model.name" if model.name else "model"
    for name, what in _faults(folder, [] if model.from_scratch else [*_weights(folder)]):
        remedy = "name another checkpoint, or copy this one here a second time"
        yield InputProblem(where, what, str(folder / name), "", "", remedy)
    of_words = "model.tokenizer" if model.tokenizer else where
    yield from _tokenizer_problems(model, tokenizer_folder(model, folder), folder, of_words)


def tokenizer_folder(model: Model, weights: Path) -> Path:
    """Where the tokenizer is: where `model.tokenizer` says; with the adapter where its folder has one, which training may
    have changed; else with the weights."""
    if model.tokenizer:
        return Path(model.tokenizer)
    own = continued(model)
    return Path(own) if own and (Path(own) / "tokenizer_config.json").is_file() else weights


def _faults(folder: Path, weights: list[Path]) -> Iterator[tuple[str, str]]:
    """File and fault, of the configuration and of the weights."""
    if json_of(folder / "config.json") is None:
        yield "config.json", "damaged: it holds no JSON object"
    for path in weights:
        if not path.is_file():
            yield path.name, f"missing, though {INDEX} names it"
        elif fault := _fault_of_weights(path):
            yield path.name, fault


def _weights(folder: Path) -> Iterator[Path]:
    named = (json_of(folder / INDEX) or {}).get("weight_map") if (folder / INDEX).is_file() else None
    if isinstance(named, dict):
        yield from (folder / str(name) for name in sorted({*named.values()}))
    else:
        yield from sorted(folder.glob("*.safetensors"))


def _fault_of_weights(path: Path) -> str:
    """What is wrong with a file of weights by its header and its length; empty where nothing is."""
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        text = file.read(length) if size >= 8 and length <= min(size - 8, HEADER_LIMIT) else b""
    try:
        header = json.loads(text)
        ends = [entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"]
        written = 8 + length + max(ends, default=0)
    except (ValueError, TypeError, KeyError, IndexError, AttributeError):
        return "damaged: no safetensors file"
    return "" if size == written else f"{'cut short' if size < written else 'too long'}: {size} bytes of {written}"


def _tokenizer_problems(model: Model, folder: Path, weights: Path, where: str) -> Iterator[InputProblem]:
    if not any(path for pattern in TOKENIZERS for path in folder.glob(pattern)):
        remedy = "copy the files of its tokenizer there: tokenizer.json, tokenizer_config.json"
        yield InputProblem(where, "no tokenizer is there", str(folder), "", "", remedy)
        return
    last, rows = _last_id(folder), (json_of(weights / "config.json") or {}).get("vocab_size")
    if last is not None and isinstance(rows, int) and last >= rows:
        yield tokenizer_too_large(where, last, rows)
    if model.chat_template == "always" and not has_template(folder):
        yield no_template(folder)


def tokenizer_too_large(where: str, last: int, rows: int) -> InputProblem:
    what, got = "the tokenizer is larger than the embedding", f"token ids up to {last}, {rows} rows"
    return InputProblem(where, what, got, f"ids up to {rows - 1}", "", "give the model its own tokenizer")


def no_template(folder: Path | str) -> InputProblem:
    remedy = "model.chat_template=auto, or add chat_template.jinja to the tokenizer's files"
    return InputProblem("model.chat_template", "the tokenizer has no chat template", str(folder), "", "", remedy)


def _last_id(folder: Path) -> int | None:
    """The largest id of the vocabulary in tokenizer.json; None where another file holds it."""
    values = json_of(folder / "tokenizer.json") if (folder / "tokenizer.json").is_file() else None
    if values is None:
        return None
    vocabulary = (values.get("model") or {}).get("vocab") or {}
    added = [token["id"] for token in values.get("added_tokens") or []]
    listed = vocabulary.values() if isinstance(vocabulary, dict) else range(len(vocabulary))
    return max([*listed, *added], default=None)


def has_template(folder: Path) -> bool:
    """Whether a tokenizer's folder has a chat template."""
    if any(folder.glob("chat_template.*")) or (folder / "additional_chat_templates").is_dir():
        return True
    return bool((json_of(folder / "tokenizer_config.json") or {}).get("chat_template"))


def json_of(path: Path) -> dict[str, Any] | None:
    """The object in a file; None where it cannot be read or holds none."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return values if isinstance(values, dict) else None
