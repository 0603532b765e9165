"""The data and the verifier of a run, built from the configuration and described for the manifest and the metrics. No torch."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from rlvr_exp.config import verifier as options
from rlvr_exp.config.load import build
from rlvr_exp.config.options import SCHEMAS
from rlvr_exp.config.schema import Config
from rlvr_exp.core.errors import InputError, InputProblem, RlvrError
from rlvr_exp.launch.preflight import problem_formats, verifier_mismatch
from rlvr_exp.records import manifest
from rlvr_exp.records.context import RunContext
from rlvr_exp.sandbox.tools import Lost
from rlvr_exp.tasks.base import Domain, ProvesGolds, Task
from rlvr_exp.verifiers.base import Verifier
from rlvr_exp.verifiers.guarded import OutsideVerifier

CHOOSE = ("folds", "families", "unseen_families", "resample")
"""Options that `Domain.in_folds` reads."""

Section = dict[str, Any]
"""A section of the manifest. `checked` is the number of judged reference answers. `left_out` has the reason for each
one that does not pass."""

Once = Callable[[Callable[[], Section]], Section]
"""Calls a function in one process, and returns its result in all processes."""


def build_domain(config: Config, context: RunContext, once: Once = lambda find: find()) -> Domain:
    """The domain of the `data` node. With `data.usable=check`, it lacks the tasks with a reference answer that does not
    pass. A resumed run leaves out the same tasks, because a busy machine may not finish a proof that it finished
    before.

    Raises:
        InputError: the data are faulty.
        RlvrError: the verifier broke down while it judged reference answers. The finished verdicts are cached.
    """
    domain = build(config.data)
    if not domain.as_read and not domain.makes_folds:
        chosen = next(name for name in CHOOSE if getattr(domain, name))
        what, remedy = "this domain makes no folds", "let its splits() return self.in_folds(...) and set makes_folds"
        raise InputError(InputProblem(f"data.{chosen}", what, domain.name, "", "", f"{remedy}, or drop it"))
    if not isinstance(domain, ProvesGolds) or not domain.proves_golds:
        return domain
    golds = once(lambda: _recorded(context) or _golds(domain, config, context))
    manifest.update(context.directory, golds=golds)
    left_out = golds["left_out"]
    reasons = Counter(fault.partition(":")[0] for fault in left_out.values()).most_common()
    shown = "".join(f"\n  {count} {reason}" for reason, count in reasons)
    passed = golds["checked"] - len(left_out)
    context.progress(
        kind="note", text=f"golds: {passed} of {golds['checked']} are proved, the others are left out{shown}"
    )
    return domain.without_golds(left_out, golds.get("notes", {}))


def _recorded(context: RunContext) -> Section:
    """The section of the resumed run. Empty for a new run."""
    return manifest.section(context.directory, "golds") if manifest.resumed_from(context.directory) else {}


def _golds(domain: ProvesGolds, config: Config, context: RunContext) -> Section:
    def proved(done: int, total: int) -> None:
        context.progress(kind="phase", name="prove golds", done=done, total=total)

    try:
        found = domain.refused_golds(config, proved)
    except Lost as fault:
        raise RlvrError(f"{fault}: run the command again, what is proved by now is cached") from fault
    return {"checked": found.checked, "left_out": dict(found.refused), "notes": dict(found.notes)}


STRONG = ("strict", "namespaces")
"""Levels of isolation that need no note."""


def build_verifier(config: Config) -> Verifier:
    """Build the configured verifier. Raises InputError if one of its tools is missing, or if a user's class is not a
    verifier."""
    verifier = build(config.verifier, sandbox=config.sandbox, cache=config.cache)
    return verifier if config.verifier._target_ in SCHEMAS else OutsideVerifier(verifier)


def description(verifier: Verifier) -> dict[str, Any]:
    """Describe the verifier for the manifest: its version and tools, which determine verdicts, and the isolation of
    candidates."""
    return {
        "name": verifier.name,
        "version": verifier.version,
        "tool": dict(verifier.tool()),
        "isolation": verifier.isolation(),
        **({"nodes": nodes} if (nodes := verifier.nodes()) else {}),
    }


def checked_description(verifier: Verifier, context: RunContext) -> dict[str, Any]:
    """Describe a verifier that is ready to judge, and report a weak isolation.

    Raises:
        InputError: no worker can be started, or only at a weaker level than `sandbox.require`.
    """
    found = description(verifier)
    isolation = found["isolation"]
    if isolation.get("fault"):
        raise InputError(
            InputProblem("sandbox", "no worker can be started", isolation["fault"], remedy="see sandbox.level")
        )
    if isolation.get("guarded") is False:
        context.progress(
            kind="note", text="not guarded: solutions share their tests' process, and can pass without solving"
        )
    if isolation.get("level") not in STRONG and isolation.get("not_isolated"):
        missing = ", ".join(isolation["not_isolated"])
        context.progress(
            kind="note", text=f"isolation level {isolation['level']}: candidates are not isolated from: {missing}"
        )
    return found


def system_metrics(verifier: Verifier) -> Mapping[str, float]:
    """The verifier's counters, named as machine-dependent metrics because they depend on the cache."""
    return {f"system/verifier_{name}": value for name, value in verifier.metrics().items()}


def check_verifier_match(verifier: Verifier, tasks: Iterable[Task]) -> None:
    """Raise InputError if a built-in verifier does not support the problems. A user's verifier may take any problem."""
    name = verifier.row_format or verifier.name
    if problem := verifier_mismatch(name, problem_formats(tasks), verifier.also_judges):
        raise InputError(problem)


def all_tasks(domain: Domain) -> Sequence[Task]:
    return [task for tasks in domain.splits().values() for task in tasks]


def decides(config: Config, description: Mapping[str, Any]) -> dict[str, Any]:
    """Everything besides the rows that determines verdicts."""
    node, sandbox = config.verifier, config.sandbox
    of_every = {spec.name for spec in fields(options.Pooled if isinstance(node, options.Pooled) else options.Verifier)}
    own = {spec.name: getattr(node, spec.name) for spec in fields(node) if spec.name not in of_every}
    limits = {name: getattr(sandbox, name) for name in ("cpu_s", "wall_s", "memory_mb", "output_kb")}
    limits["level"] = description["isolation"].get("level")
    return {**{name: description[name] for name in ("name", "version", "tool")}, "options": own, "sandbox": limits}
