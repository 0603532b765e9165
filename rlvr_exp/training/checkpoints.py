"""Checkpoints of a run: folders that plain `from_pretrained` loads, complete or absent, each with its checksums.

`checkpoints/step_000050/` appears by one rename; `latest` and `best` are links to checkpoints, replaced atomically. A
checkpoint contains the weights, the model card (rlvr_exp.report.card), `state.json` (everything that is no tensor), `training/`
(rlvr_exp.training.learner) and the manifest `checkpoint.json` (rlvr_exp.core.sealed). docs/checkpoints.md describes
them.

A policy with an adapter is written as a plain PEFT folder, without its base; each further adapter is in a folder of its
name. Several roles have a folder each, named after the role: models of their own, or the adapters of one base.
"""

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from peft import PeftModel, load_peft_weights, set_peft_model_state_dict
from torch import nn
from transformers import AutoModelForCausalLM

from rlvr_exp.config.model import BASE, FILE
from rlvr_exp.config.run import Checkpoint
from rlvr_exp.core.errors import GuardStop, InputError, InputProblem
from rlvr_exp.core.files import write_json, write_text
from rlvr_exp.core.phase import CHECKPOINT, phase
from rlvr_exp.core.sealed import CARD, OTHER, STEP, check_if_ours, check_sound, seal
from rlvr_exp.models.adapters import DEFAULT, base_record
from rlvr_exp.models.parameters import gathered_weights, unsharded_loading
from rlvr_exp.models.policy import Policies, Policy
from rlvr_exp.records.directory import writing
from rlvr_exp.rollouts.distributed import broadcast_object, rank
from rlvr_exp.training.learner import Learner, Stateful

__all__ = ["Checkpoints", "check_sound", "restore"]

STATE = "state.json"
TRAINING = "training"


@dataclass(frozen=True)
class Contents:
    """The parts of a checkpoint."""

    policies: Policies
    learners: Mapping[str, Learner]
    """By role."""
    parts: Mapping[str, Any]
    """Further parts by name: a module writes its weights by its own `save(folder)` and reads them by `load(folder)`;
    `state.json` holds the `state_dict()` of every other part."""

    @property
    def named(self) -> bool:
        """There are several roles, whether or not all learn."""
        return isinstance(self.policies, Mapping)

    @property
    def modules(self) -> list[nn.Module]:
        return [part for part in self._all.values() if isinstance(part, nn.Module)]

    @property
    def stateful(self) -> dict[str, Stateful]:
        return {name: part for name, part in self._all.items() if not isinstance(part, nn.Module)}

    @property
    def _all(self) -> dict[str, Any]:
        found = dict(self.parts)
        for role, learner in self.learners.items():
            prefix = f"{role}/" if self.named else ""
            found |= {prefix + name: part for name, part in learner.checkpoint_parts.items()}
        return found

    def training(self, checkpoint: Path) -> dict[str, Path]:
        """The folder of each role's training state inside a checkpoint."""
        root = checkpoint / TRAINING
        return {role: root / role if self.named else root for role in self.learners}


class Checkpoints:
    """Writes, prunes and reads the checkpoints of one run directory. All ranks call every method together.

    Args:
        settings: the `run.checkpoint` node.
        about: further records of the run in the manifest (rlvr_exp.records.manifest).
        ends_phase: whether a checkpoint is due after so many steps besides.
        card: the text of the model card, from the step and the folder of a checkpoint; None: no card.
    """

    def __init__(
        self,
        run_dir: Path,
        settings: Checkpoint,
        about: Mapping[str, Any] | None = None,
        ends_phase: Callable[[int], bool] | None = None,
        card: Callable[[int, Path], str] | None = None,
    ):
        self.root, self._ends_phase = run_dir / "checkpoints", ends_phase
        self.every_steps, self.keep = settings.every_steps, settings.keep
        self._about, self._card = about or {}, card

    def due(self, step: int) -> bool:
        ends = self._ends_phase is not None and self._ends_phase(step)
        return step > 0 and (ends or step % self.every_steps == 0)

    def save(self, step: int, contents: Contents) -> Path:
        """Write the contents as of `step`; an existing checkpoint of the step is kept as it is.

        Raises:
            GuardStop: a weight is not a number, or the disk refuses the write. Existing checkpoints are kept.
        """
        final = self.at(step)
        if broadcast_object(not final.exists()):
            with phase(CHECKPOINT):
                self._write(step, contents, final)
        if rank() == 0:
            self._link("latest", final)
            self._prune()
        broadcast_object(True)  # The other ranks continue once it exists.
        return final

    def mark_best(self, step: int) -> None:
        if rank() == 0:
            self._link("best", self.at(step))
        broadcast_object(True)

    def at(self, step: int) -> Path:
        """The folder of a step's checkpoint."""
        return self.root / f"step_{step:06d}"

    @property
    def best(self) -> Path | None:
        """The folder that `best` links to, if it exists."""
        link = self.root / "best"
        return link.resolve() if link.exists() else None

    def load(self, checkpoint: Path, contents: Contents, trust_remote_code: bool = False) -> None:
        """Restore everything but the training state of the learners, which begin with it (`Contents.training`).

        All files are checked against the manifest first: DeepSpeed's files are pickles, which execute code when opened.

        Raises:
            InputError: the checkpoint is not sound, or holds other parts than this run has.
        """
        check_sound(checkpoint)
        with ExitStack() as stack:
            for policy, _ in placed(contents.policies, checkpoint):
                stack.enter_context(gathered_weights(policy.model, write=True))
            restore(contents.policies, checkpoint, trust_remote_code)
        for module in contents.modules:
            with gathered_weights(module, write=True):
                module.load(checkpoint)
        state = json.loads((checkpoint / STATE).read_text(encoding="utf-8"))
        stateful = contents.stateful
        if state.keys() != stateful.keys():
            got, allowed = (", ".join(sorted(names)) or "nothing" for names in (state, stateful))
            raise InputError(
                InputProblem(str(checkpoint / STATE), "holds the state of other parts", got, allowed, "", OTHER)
            )
        for name, part in stateful.items():
            part.load_state_dict(state[name])
        if rank() == 0:
            self._link("latest", checkpoint)

    def _write(self, step: int, contents: Contents, final: Path) -> None:
        """Every rank writes its part into a temporary folder, which is renamed once it is complete."""
        temporary = self.root / f".{final.name}.tmp"
        with ExitStack() as stack:
            for module in self._models(contents):
                stack.enter_context(gathered_weights(module))
            _by_rank_0(lambda: self._write_weights(step, contents, temporary))
        with _or_nothing(temporary):
            for role, folder in contents.training(temporary).items():
                contents.learners[role].save(folder)
        broadcast_object(True)  # Wait until every rank has written its part.

        def close() -> None:
            with _or_nothing(temporary):
                if self._card is not None:
                    write_text(temporary / CARD, self._card(step, temporary))
                seal(temporary, {"step": step, **self._about})
                os.replace(temporary, final)

        _by_rank_0(close)

    def _write_weights(self, step: int, contents: Contents, temporary: Path) -> None:
        self._refuse_broken(step, contents)
        with _or_nothing(temporary):
            shutil.rmtree(temporary, ignore_errors=True)
            (temporary / TRAINING).mkdir(parents=True)
            for folder in contents.training(temporary).values():
                folder.mkdir(exist_ok=True)
            write_weights(contents.policies, temporary)
            for module in contents.modules:
                module.save(temporary)
            write_json(temporary / STATE, {name: part.state_dict() for name, part in contents.stateful.items()})

    def _models(self, contents: Contents) -> list[nn.Module]:
        return [*(policy.model for policy, _ in placed(contents.policies, self.root)), *contents.modules]

    def _refuse_broken(self, step: int, contents: Contents) -> None:
        weights = chain.from_iterable(module.named_parameters() for module in self._models(contents))
        # The adapter of an inactive role takes no gradient at the moment.
        trained = ((name, value) for name, value in weights if value.requires_grad or ".lora_" in name)
        broken = [name for name, value in trained if not torch.isfinite(value).all()]
        if broken:
            raise GuardStop(
                f"step {step}: {len(broken)} weights hold values that are not finite, first {broken[0]}; no checkpoint was "
                "written and the last one is sound. Lower optimizer.lr, or look at this step's samples in rollouts/"
            )

    def _link(self, name: str, target: Path) -> None:
        temporary = self.root / f".{name}.tmp"
        temporary.unlink(missing_ok=True)
        temporary.symlink_to(target.name)
        os.replace(temporary, self.root / name)

    def _prune(self) -> None:
        """Remove all but the newest. The checkpoint just written is among them, so that a sound one always remains."""
        steps = sorted(path for path in self.root.iterdir() if STEP.fullmatch(path.name))
        for path in steps[: -self.keep]:
            if path.resolve() != self.best:
                # Renamed first: a folder with a checkpoint's name is complete, also during its removal.
                doomed = self.root / f".{path.name}.tmp"
                os.replace(path, doomed)
                shutil.rmtree(doomed)


def _by_rank_0(work: Callable[[], None]) -> None:
    """Run `work` on rank 0 while the others wait; if it fails, all ranks stop with the reason."""
    fault: Exception | None = None
    if rank() == 0:
        try:
            work()
        except Exception as found:  # Raised below, once the other ranks know.
            fault = found
    reason = broadcast_object("" if fault is None else str(fault) or type(fault).__name__)
    if fault is not None:
        raise fault
    if reason:
        raise GuardStop(reason)


@contextmanager
def _or_nothing(temporary: Path) -> Iterator[None]:
    """Remove a partial write, so that it does not fill the disk."""
    try:
        with writing(temporary.with_name(temporary.stem.removeprefix("."))):
            yield
    except Exception:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


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
    for folder in adapter_folders(policy.model, root).values():
        write_json(folder / BASE, base_record(policy.model))  # A later load checks the base against it.
        # PEFT keeps some options as sets, whose order differs between processes: sorted, equal runs write equal files.
        config = json.loads((folder / FILE).read_text(encoding="utf-8"))
        for key, value in config.items():
            if isinstance(value, list) and all(isinstance(part, str) for part in value):
                config[key] = sorted(value)
        write_json(folder / FILE, config)
    if isinstance(policy.model, PeftModel):
        (root / CARD).unlink()  # PEFT's empty model card.


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
