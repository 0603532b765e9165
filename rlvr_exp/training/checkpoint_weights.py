"""Writes the weights of a policy into a checkpoint and restores them into the policy that they were written from.

A policy with an adapter is written as a plain PEFT folder, without its base; each further adapter is in a folder of its
name. Several roles have a folder each, named after the role: models of their own, or the adapters of one base.
"""

import json
from collections.abc import Mapping
from pathlib import Path

from peft import PeftModel, load_peft_weights, set_peft_model_state_dict
from torch import nn
from transformers import AutoModelForCausalLM

from rlvr_exp.config.adapter import BASE, FILE
from rlvr_exp.core.files import write_json
from rlvr_exp.core.sealed import check_if_ours
from rlvr_exp.models.adapters import DEFAULT, base_record
from rlvr_exp.models.policy import Policy
from rlvr_exp.models.zero3 import unsharded_loading

Policies = Policy | Mapping[str, Policy]
"""One policy, or one for each role."""


def placed(policies: Policies, root: Path) -> list[tuple[Policy, Path]]:
    """Each model of the policies once, with its folder inside a checkpoint."""
    if isinstance(policies, Policy):
        return [(policies, root)]
    found = {
        id(one.model): (one, root if isinstance(one.model, PeftModel) else root / role)
        for role, one in policies.items()
    }
    return list(found.values())


def write_weights(policies: Policies, root: Path) -> None:
    """Write folders that plain `from_pretrained` loads, with the tokenizer in each."""
    for policy, folder in placed(policies, root):
        _write(policy, folder)


def _write(policy: Policy, root: Path) -> None:
    policy.model.save_pretrained(root)
    for folder in adapter_folders(policy.model, root).values() or [root]:
        policy.tokenizer.save_pretrained(folder)
    _describe_base(policy.model, root)


def adapter_folders(model: nn.Module, root: Path) -> dict[str, Path]:
    """The folder of each adapter inside a checkpoint, as PEFT places them; empty for a model without adapters."""
    names = model.peft_config if isinstance(model, PeftModel) else ()
    return {name: root if name == DEFAULT else root / name for name in names}


def restore(policies: Policies, checkpoint: Path, trust_remote_code: bool = False) -> None:
    """Restore the weights of a checkpoint into the policies that it was written from.

    Raises:
        InputError: the checkpoint is not sound.
    """
    check_if_ours(checkpoint)
    for policy, folder in placed(policies, checkpoint):
        _restore(policy, folder, trust_remote_code)


def _restore(policy: Policy, checkpoint: Path, trust_remote_code: bool) -> None:
    folders = adapter_folders(policy.model, checkpoint)
    for name, folder in folders.items():
        outcome = set_peft_model_state_dict(policy.model, load_peft_weights(str(folder), "cpu"), adapter_name=name)
        if outcome.unexpected_keys:
            raise ValueError(f"{folder}: the adapter has other layers, first {outcome.unexpected_keys[0]}")
    if not folders:
        with unsharded_loading():
            kept = AutoModelForCausalLM.from_pretrained(
                checkpoint, dtype=policy.model.dtype, trust_remote_code=trust_remote_code
            )
        policy.model.load_state_dict(kept.state_dict())


def _describe_base(model: nn.Module, root: Path) -> None:
    """Write the record that a later load checks the base against, in place of PEFT's empty model card."""
    for folder in adapter_folders(model, root).values():
        write_json(folder / BASE, base_record(model))
        _sort_sets(folder / FILE)
    if isinstance(model, PeftModel):
        (root / "README.md").unlink()


def _sort_sets(path: Path) -> None:
    """Sort the options that PEFT keeps as sets, whose order differs between processes, so that equal runs write equal
    files."""
    config = json.loads(path.read_text(encoding="utf-8"))
    write_json(path, {key: sorted(value) if _names(value) else value for key, value in config.items()})


def _names(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(part, str) for part in value)
