"""From a checkpoint of a solver, or of a solver and a tester, to an engine; worded as in the run that wrote it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from rlvr_exp.config.compose import compose
from rlvr_exp.config.environment import ADVERSARIAL
from rlvr_exp.config.infer import Infer, of_answers
from rlvr_exp.config.load import build
from rlvr_exp.config.load import load as load_config
from rlvr_exp.config.model import at_checkpoint
from rlvr_exp.config.needs import weights_missing
from rlvr_exp.config.roles import of_role
from rlvr_exp.config.schema import Config
from rlvr_exp.core.errors import InputError
from rlvr_exp.episodes.environments.reasoning import InStages
from rlvr_exp.episodes.environments.solving import Solving
from rlvr_exp.episodes.environments.tested import SOLVER, TESTER
from rlvr_exp.inference.problems_engine import ProblemsEngine
from rlvr_exp.models.policy import load_policy, load_roles
from rlvr_exp.tasks.base import Domain
from rlvr_exp.tasks.problems.domain import Problems
from rlvr_exp.verifiers.base import Verifier

SOLVING = f"{Solving.__module__}.{Solving.__qualname__}"


def from_checkpoint(
    path: str | Path = "",
    options: Infer | None = None,
    *,
    verifier: Verifier | None = None,
    domain: Problems | None = None,
    environment: Any = None,
    seed: int = 0,
) -> ProblemsEngine:
    """An engine that works problems out in stages.

    Args:
        path: `step_N/` of a run of two roles, with `solver/` and `tester/`; or a folder of a solver alone. Empty: the embedded solver, with
            the embedded tester where the environment has one.
        options: how a problem is searched; by default greedily, one chain.
        verifier: `PythonTests`, which runs programs and tests, and is closed by the caller; None: nothing is run.
        domain: words the problems; None: as in the run that wrote the checkpoint, else as the embedded ones.
        environment: options `Adversarial(...)` or `Reasoning()` (rlvr_exp.config.environment); None: as in the run, else by the folder.
        seed: the seed of the draws.

    Raises:
        InputError: no such checkpoint, a damaged one, or options that cannot work; names every problem.
    """
    folder = Path(path) if path else None
    folders = _by_role(folder)
    config = _written(folder, two=len(folders) > 1 or getattr(environment, "_target_", "") == ADVERSARIAL)
    options, node = replace(options or Infer(), verify=verifier is not None), environment or config.environment
    shown = environment_of(node, domain or config.data)
    models = {role: of_role(config, role).model for role in shown.roles}
    if folders:
        models = {role: at_checkpoint(model, str(folders.get(role, folders[SOLVER]))) for role, model in models.items()}
    needed = [need.problem for model in models.values() for need in weights_missing(model)]
    if problems := [*options.problems(), *of_answers(options, node), *needed]:
        raise InputError(*problems)
    if len(models) > 1:
        policies = load_roles(models, dict.fromkeys(models, ""), seed)
    else:
        policies = {role: load_policy(model, seed) for role, model in models.items()}
    return ProblemsEngine(policies, options, models, verifier, shown, seed)


def environment_of(node: Any, data: Any) -> InStages:
    """The environment of a node in which problems are solved and nothing is learned.

    Args:
        data: their domain, or its node.

    Raises:
        InputError: the tasks have no stages, or no tests can be written for them.
    """
    used = replace(node, _target_=SOLVING) if node._target_ == ADVERSARIAL else node
    domain = data if isinstance(data, Domain) else build(data)
    return build(used, domain=domain)


def _by_role(folder: Path | None) -> dict[str, Path]:
    """A folder without roles is a solver's."""
    if folder is None:
        return {}
    both = {role: folder / role for role in (SOLVER, TESTER)}
    return both if all(place.is_dir() for place in both.values()) else {SOLVER: folder}


def _written(folder: Path | None, two: bool) -> Config:
    """The options of the run that wrote a checkpoint, as far as there is one and they are of its kind."""
    own = ["environment=adversarial", "roles.tester.model.embedded=tiny_tester"] if two else ["environment=reasoning"]
    fresh = compose(["+stage=infer", "data=problems", *own]).config
    above = list(folder.resolve().parents)[1:3] if folder else []
    run = next((place / "config.yaml" for place in above if (place / "config.yaml").is_file()), None)
    if run is None or folder is None:
        return fresh
    made = load_config(run)
    alike = getattr(made.environment, "_target_", "") == fresh.environment._target_
    found = replace(fresh, data=made.data, model=of_role(made, folder.name).model)
    return replace(found, model=made.model, roles=made.roles, environment=made.environment) if two and alike else found
