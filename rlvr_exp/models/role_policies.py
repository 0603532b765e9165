"""The policies of several roles: adapters on one base where the model node has an adapter, models of their own otherwise.

A role may start from weights of its own: an adapter's folder over the shared base, or a full checkpoint. Which adapter
samples is decided here and by rlvr_exp.training.learner, nowhere else.
"""

import dataclasses
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from peft import PeftModel

from rlvr_exp.config.model import Model, continued, has_adapter, is_adapter
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.core.sealed import check_if_ours
from rlvr_exp.models.adapters import activate, load_adapter, new_adapter
from rlvr_exp.models.policy import Policy, load_base, load_policy


def load_roles(models: Mapping[str, Model], own: Mapping[str, str], seed: int) -> dict[str, Policy]:
    """A policy for each role.

    Args:
        models: the `model` node of each role.
        own: by role the folder that it starts from in place of the node's weights; empty: those.

    Raises:
        InputError: as `load_policy`; or roles share a base and one of them brings weights that are no adapter.
    """
    for folder in filter(None, own.values()):
        check_if_ours(folder)
    if any(map(has_adapter, models.values())) or any(is_adapter(folder) for folder in own.values()):
        return _on_one_base(models, own, seed)
    return {
        role: load_policy(dataclasses.replace(models[role], path=folder or models[role].path), seed)
        for role, folder in own.items()
    }


def _on_one_base(models: Mapping[str, Model], own: Mapping[str, str], seed: int) -> dict[str, Policy]:
    whole = [role for role, folder in own.items() if folder and not is_adapter(folder)]
    if whole:
        what = f"the {whole[0]} brings full weights, and roles with adapters share one base"
        remedy = "name an adapter's folder, or model.adapter.kind=none"
        raise InputError(
            InputProblem(f"cascade.{whole[0]}", what, own[whole[0]], "an adapter of the model", "", remedy)
        )
    policy = load_base(next(iter(models.values())), seed)
    network = policy.model
    for role, folder in own.items():
        folder, adapter = folder or continued(models[role]), models[role].adapter
        network = load_adapter(network, folder, role) if folder else new_adapter(network, adapter, seed, role)
    return {role: dataclasses.replace(policy, model=network) for role in own}


@contextmanager
def acting(policies: Mapping[str, Policy], role: str) -> Iterator[Policy]:
    """The role's policy, ready to sample; after the block the previous adapter is active. A policy that acts alone has no
    adapter of its role's name, and is ready."""
    policy = policies[role]
    if not isinstance(policy.model, PeftModel) or role not in policy.model.peft_config:
        yield policy
        return
    before = policy.model.active_adapter
    activate(policy.model, role)
    try:
        yield policy
    finally:
        activate(policy.model, before)
