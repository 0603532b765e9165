"""Checkpoints of a run: folders that plain `from_pretrained` loads, whole or absent, with checksums.

A policy with an adapter is written as a plain PEFT folder, without its base; each further adapter in a folder of its name.
`checkpoints/step_000050/` appears by one rename; `latest` and `best` are links to one of them, replaced in one step.
"""

import hashlib
import os
import re
import shutil
from collections.abc import Mapping
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import Any, Protocol

import torch
from peft import PeftModel, load_peft_weights, set_peft_model_state_dict
from torch import nn
from transformers import AutoModelForCausalLM

from rlvr_exp.config.adapter import BASE
from rlvr_exp.core.errors import GuardStop
from rlvr_exp.core.files import write_json
from rlvr_exp.models.adapters import DEFAULT, base_record
from rlvr_exp.models.policy import Policy
from rlvr_exp.models.whole import whole_weights
from rlvr_exp.rollouts.sharing import agreed, rank

STEP = re.compile(r"step_(\d{6,})")


class Stateful(Protocol):
    """Anything whose state is part of a checkpoint."""

    def state_dict(self) -> Mapping[str, Any]: ...


class Checkpoints:
    """Writes and prunes the checkpoints of one run directory.

    Args:
        settings: the `run.checkpoint` node.
        stateful: what else belongs to a checkpoint, by name (see `add`).
    """

    def __init__(self, run_dir: Path, settings, stateful: Mapping[str, Stateful] | None = None):
        self.root = run_dir / "checkpoints"
        self.every_steps, self.keep = settings.every_steps, settings.keep
        self._stateful: dict[str, Stateful] = {}
        self._modules: list[nn.Module] = []
        self.add(stateful or {})

    def add(self, parts: Mapping[str, Any]) -> None:
        """More that belongs to a checkpoint: a module writes its weights by its own `save(folder)`; `state.json` holds
        the `state_dict()` of everything else by name."""
        self._modules += [part for part in parts.values() if isinstance(part, nn.Module)]
        self._stateful |= {name: part for name, part in parts.items() if not isinstance(part, nn.Module)}

    def due(self, step: int) -> bool:
        return step > 0 and step % self.every_steps == 0

    def save(self, step: int, policy: Policy) -> Path:
        """Write the policy as of `step`; a step already there stays as it is.

        Raises:
            GuardStop: a weight is not a number; nothing is written, so `latest` stays sound.
        """
        final = self.root / f"step_{step:06d}"
        missing = agreed(not final.exists())
        with ExitStack() as whole:
            for module in (policy.model, *self._modules):
                whole.enter_context(whole_weights(module))
            if missing and rank() == 0:
                self._write(step, policy, final)
        if rank() == 0:
            self._link("latest", final)
            self._prune()
        agreed(True)  # The others go on once it is there.
        return final

    def mark_best(self, step: int) -> None:
        if rank() == 0:
            self._link("best", self.root / f"step_{step:06d}")
        agreed(True)

    @property
    def best(self) -> Path | None:
        """The folder that `best` names, if any does."""
        link = self.root / "best"
        return link.resolve() if link.exists() else None

    def _write(self, step: int, policy: Policy, final: Path) -> None:
        weights = chain.from_iterable(module.named_parameters() for module in (policy.model, *self._modules))
        trained = ((name, value) for name, value in weights if value.requires_grad)
        broken = [name for name, value in trained if not torch.isfinite(value).all()]
        if broken:
            raise GuardStop(
                f"step {step}: {len(broken)} weights hold values that are not finite, first {broken[0]}; no checkpoint was "
                "written and the last one is sound. Lower optimizer.lr, or look at this step's samples in rollouts/"
            )
        temporary = self.root / f".{final.name}.tmp"
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(parents=True)
        policy.model.save_pretrained(temporary)
        for module in self._modules:
            module.save(temporary)
        for folder in adapter_folders(policy.model, temporary).values() or [temporary]:
            policy.tokenizer.save_pretrained(folder)
        write_json(temporary / "state.json", {name: part.state_dict() for name, part in self._stateful.items()})
        _describe_base(policy.model, temporary)
        files = sorted(path for path in temporary.rglob("*") if path.is_file())
        sums = {path.relative_to(temporary).as_posix(): _checksum(path) for path in files}
        write_json(temporary / "checkpoint.json", {"step": step, "sha256": sums})
        os.replace(temporary, final)

    def _link(self, name: str, target: Path) -> None:
        temporary = self.root / f".{name}.tmp"
        temporary.unlink(missing_ok=True)
        temporary.symlink_to(target.name)
        os.replace(temporary, self.root / name)

    def _prune(self) -> None:
        steps = sorted(path for path in self.root.iterdir() if STEP.fullmatch(path.name))
        for path in steps[: -self.keep]:
            if path != self.best:
                # Renamed first: what stands under a checkpoint's name is whole, also while it is being removed.
                doomed = self.root / f".{path.name}.tmp"
                os.replace(path, doomed)
                shutil.rmtree(doomed)


def adapter_folders(model: nn.Module, root: Path) -> dict[str, Path]:
    """Where each adapter of a model stands below a checkpoint, as PEFT places them; empty for a model without any."""
    names = model.peft_config if isinstance(model, PeftModel) else ()
    return {name: root if name == DEFAULT else root / name for name in names}


def restore(policy: Policy, checkpoint: Path, trust_remote_code: bool = False) -> None:
    """Put the weights of a checkpoint back into the policy that it was written from."""
    folders = adapter_folders(policy.model, checkpoint)
    for name, folder in folders.items():
        outcome = set_peft_model_state_dict(policy.model, load_peft_weights(str(folder), "cpu"), adapter_name=name)
        if outcome.unexpected_keys:
            raise ValueError(f"{folder}: the adapter has other layers, first {outcome.unexpected_keys[0]}")
    if not folders:
        kept = AutoModelForCausalLM.from_pretrained(
            checkpoint, dtype=policy.model.dtype, trust_remote_code=trust_remote_code
        )
        policy.model.load_state_dict(kept.state_dict())


def _describe_base(model: nn.Module, root: Path) -> None:
    """What a later load checks the base against, in place of the card that PEFT writes with nothing in it."""
    for folder in adapter_folders(model, root).values():
        write_json(folder / BASE, base_record(model))
    if isinstance(model, PeftModel):
        (root / "README.md").unlink()


def _checksum(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
