"""The domain of a stage. With `data.usable=check` it has only tasks whose gold Dafny proves."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from rlvr_exp.config.load import build
from rlvr_exp.config.schema import Config
from rlvr_exp.core.errors import InputError, InputProblem, RlvrError
from rlvr_exp.records import manifest
from rlvr_exp.records.context import RunContext
from rlvr_exp.sandbox.tools import Lost
from rlvr_exp.tasks.base import Domain
from rlvr_exp.tasks.dafny.domain import DafnyDomain
from rlvr_exp.tasks.dafny.role_examples import RoleExample
from rlvr_exp.verifiers.dafny.resolver import Resolver
from rlvr_exp.verifiers.dafny.usable import UsableCheck

CHOOSE = ("folds", "families", "unseen_families", "resample")
"""Options that `Domain.in_folds` reads."""
Golds = dict[str, Any]
"""`checked`: how many golds Dafny was asked for; `left_out`: those that do not pass, each with the reason."""
Once = Callable[[Callable[[], Golds]], Golds]
"""Calls a function in one process, and gives its result to all."""


def build_domain(config: Config, context: RunContext, once: Once = lambda find: find()) -> Domain:
    """The domain of the `data` node; where `data.usable=check` without the tasks whose gold does not pass. A resumed run
    leaves out the same tasks: a busy machine may end a proof that it had finished before.

    Raises:
        InputError: the data are faulty.
        RlvrError: Dafny broke down while it proved golds; what is proved by then is cached.
    """
    domain = build(config.data)
    if not domain.as_read and not domain.makes_folds:
        chosen = next(name for name in CHOOSE if getattr(domain, name))
        what, remedy = "this domain makes no folds", "let its splits() return self.in_folds(...) and set makes_folds"
        raise InputError(InputProblem(f"data.{chosen}", what, domain.name, "", "", f"{remedy}, or drop it"))
    if not isinstance(domain, DafnyDomain) or domain.usable != "check":
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
    return domain.checked(lambda parts: [left_out.get(_name(part), "") for part in parts])


def _recorded(context: RunContext) -> Golds:
    """Of the run that is resumed; empty for a new one."""
    return manifest.section(context.directory, "golds") if manifest.resumed_from(context.directory) else {}


def _name(part: RoleExample) -> str:
    return f"{part.example.id}/{part.role}"


def _golds(domain: DafnyDomain, config: Config, context: RunContext) -> Golds:
    """What Dafny says of every gold that is asked for until each split is full."""
    known: dict[str, str] = {}

    def proved(done: int, total: int) -> None:
        context.progress(kind="phase", name="prove golds", done=done, total=total)

    try:
        with (
            build(config.verifier, sandbox=config.sandbox, cache=config.cache) as verifier,
            Resolver(config.verifier.path, config.verifier.image) as resolver,
        ):
            usable = UsableCheck(verifier, resolver, proved)

            def check(parts: Sequence[RoleExample]) -> list[str]:
                usable.ask(part.example.gold for part in parts)
                faults = [usable(part.example, part.role) for part in parts]
                known.update(zip(map(_name, parts), faults, strict=True))
                return faults

            domain.checked(check).splits()
    except Lost as fault:
        raise RlvrError(f"{fault}: run the command again, what is proved by now is cached") from fault
    return {"checked": len(known), "left_out": {name: fault for name, fault in known.items() if fault}}
