"""From a folder to an engine: any checkpoint, full or an adapter's, checked before anything heavy is loaded."""

from dataclasses import replace
from pathlib import Path

from rlvr_exp.config.compose import compose
from rlvr_exp.config.load import load as load_config
from rlvr_exp.config.model import Model, at_checkpoint
from rlvr_exp.config.needs import formatter_missing, weights_missing
from rlvr_exp.config.stage_options import Infer
from rlvr_exp.core.errors import InputError
from rlvr_exp.inference.engine import Engine
from rlvr_exp.models.policy import load_policy
from rlvr_exp.tasks.base import Domain
from rlvr_exp.verifiers.base import Verifier


def load(
    path: str | Path = "",
    options: Infer | None = None,
    *,
    verifier: Verifier | None = None,
    domain: Domain | None = None,
    model: Model | None = None,
    seed: int = 0,
) -> Engine:
    """An engine for a checkpoint.

    Args:
        path: folder of a checkpoint or of an adapter; empty: the embedded policy, or what `model` names.
        options: how a task is searched; by default greedily, once. It is verified where a verifier is given.
        verifier: verifies completions, and is closed by the caller; None: they are not verified.
        domain: the tasks' domain, where they are given as `Task`; rows need none.
        model: how the policy is loaded; None: as in the run that wrote the checkpoint, else by the defaults.
        seed: the seed of the draws.

    Raises:
        InputError: no such checkpoint, a damaged one, or options that cannot work; names every problem.
    """
    options = replace(options or Infer(), verify=verifier is not None)
    node = replace(model, path=str(path) or model.path) if model else _model_of(Path(path) if path else None)
    needed = [*weights_missing(node), *formatter_missing(options)]
    problems = [*options.problems(), *node.problems(), *(need.problem for need in needed)]
    if problems:
        raise InputError(*problems)
    return Engine(load_policy(node, seed), options, node, verifier, domain, seed)


def _model_of(path: Path | None) -> Model:
    """The `model` node for the policy at `path`: a run's checkpoint as in its run, prompts and lengths included."""
    if path is None:
        return compose(["+stage=infer"]).config.model
    run = path.resolve().parent.parent / "config.yaml"
    node = load_config(run).model if run.is_file() else Model()
    return at_checkpoint(node, str(path))
