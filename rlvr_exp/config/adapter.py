"""Options of `model.adapter`, and what the folder of a saved adapter says.

An adapter is new (`kind`), or a saved adapter is trained further: that of `path` over the base of the model node, or a
`model.path` that is itself an adapter's folder and names its base. Such a folder's JSON alone is read here, so that a
wrong combination is reported before anything heavy is loaded.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlvr_exp.config.options import option
from rlvr_exp.core.errors import InputProblem

FILE = "adapter_config.json"
BASE = "base.json"
"""File next to the adapter in our own checkpoints."""
RANK = 16
KINDS = ("none", "lora", "dora")


@dataclass
class Adapter:
    """A low-rank adapter: the base stays frozen and small matrices next to its linear layers are trained."""

    kind: str = option("none", choices=KINDS)
    """A new adapter: lora (Hu et al. 2021) or dora (Liu et al. 2024); none: all weights are trained, or `path`
    decides."""
    rank: int = option(0, low=0)
    """Rank of the update; 0: 16, or that of the loaded adapter."""
    alpha: int = option(0, low=0)
    """The update is scaled by alpha / rank; 0: twice the rank, or that of the loaded adapter."""
    dropout: float = option(0.0, low=0, high=0.9)
    """Share of a new adapter's inputs dropped in updates; sampling never drops, so RL is best without."""
    targets: list[str] = field(default_factory=list)
    """Linear layers of a new adapter, by the end of their names: [q_proj,v_proj]; empty: all but the output head."""
    path: str = ""
    """Folder of an adapter to load and train further, over the base of the model node; empty: none."""

    @property
    def effective_rank(self) -> int:
        return self.rank or RANK

    @property
    def effective_alpha(self) -> int:
        return self.alpha or 2 * self.effective_rank


def is_adapter(folder: str) -> bool:
    return bool(folder) and (Path(folder) / FILE).is_file()


def described(folder: str) -> dict[str, Any]:
    """The configuration in an adapter's folder; empty when it cannot be read."""
    return _read(Path(folder) / FILE)


def recorded(folder: str) -> dict[str, Any]:
    """The record of an adapter's base in one of our checkpoints: place, quantization, fingerprint; empty for any
    other."""
    return _read(Path(folder) / BASE)


def _read(path: Path) -> dict[str, Any]:
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return fields if isinstance(fields, dict) else {}


def recorded_base(folder: str) -> str:
    """The base that an adapter was trained on: a folder or a hub name."""
    return str(described(folder).get("base_model_name_or_path") or "")


def new_options(adapter: Adapter) -> list[str]:
    """Options of a new adapter that were set."""
    return [name for name in ("rank", "alpha", "dropout", "targets") if getattr(adapter, name)]


def problems_of_loaded(adapter: Adapter, folder: str) -> Iterator[InputProblem]:
    """A loaded adapter keeps its form; a different option would be ignored."""
    fields = described(folder)
    if not fields:
        return  # Reported as missing, with all else that is not on this machine.
    if fields.get("peft_type", "LORA") != "LORA":
        yield InputProblem(
            "adapter.path", f"the adapter at {folder} is of another kind", fields["peft_type"], "LoRA or DoRA"
        )
        return
    own = {
        "kind": "dora" if fields.get("use_dora") else "lora",
        "rank": fields.get("r"),
        "alpha": fields.get("lora_alpha"),
        "dropout": fields.get("lora_dropout"),
    }
    for name, value in own.items():
        wanted = getattr(adapter, name)
        if wanted not in (value, 0, "none"):
            remedy = f"model.adapter.{name}={value}, or a new adapter over a merged model"
            yield InputProblem(
                f"adapter.{name}", f"the adapter at {folder} has its own", str(wanted), str(value), "", remedy
            )
    targets = fields.get("target_modules")
    if adapter.targets and isinstance(targets, list) and not _same(adapter.targets, targets):
        got, allowed = str(adapter.targets), ", ".join(sorted(targets))
        yield InputProblem("adapter.targets", f"the adapter at {folder} has its own", got, allowed, "", "drop it")


def _same(ours: list[str], theirs: list[str]) -> bool:
    return {name.rpartition(".")[2] for name in ours} == {name.rpartition(".")[2] for name in theirs}
