"""The domain of a stage. With `data.usable=check` it has only tasks whose gold Dafny proves."""

from collections import Counter
from collections.abc import Callable, Sequence

from rlvr_exp.config import Config, build
from rlvr_exp.core.errors import RlvrError
from rlvr_exp.records import manifest
from rlvr_exp.records.context import RunContext
from rlvr_exp.sandbox.tools import Lost
from rlvr_exp.tasks.base import Domain
from rlvr_exp.tasks.dafny.domain import DafnyDomain
from rlvr_exp.tasks.dafny.role_examples import RoleExample
from rlvr_exp.verifiers.dafny.resolver import Resolver
from rlvr_exp.verifiers.dafny.usable import UsableCheck

Faults = dict[RoleExample, str]
"""What Dafny says of a gold; empty where it passes."""
Once = Callable[[Callable[[], Faults]], Faults]
"""Calls a function in one process, and gives its result to all."""


def build_domain(config: Config, context: RunContext, once: Once = lambda find: find()) -> Domain:
    """The domain of the `data` node; where `data.usable=check` without the tasks whose gold does not pass.

    Raises:
        InputError: the data are faulty.
        RlvrError: Dafny broke down while it proved golds; what is proved by then is cached.
    """
    domain = build(config.data)
    if not isinstance(domain, DafnyDomain) or domain.usable != "check":
        return domain
    known = once(lambda: _faults(domain, config, context))
    found = domain.checked(lambda parts: [known[part] for part in parts])
    left_out = {f"{part.example.id}/{part.role}": fault for part, fault in known.items() if fault}
    manifest.update(context.directory, golds={"checked": len(known), "left_out": left_out})
    reasons = Counter(fault.partition(":")[0] for fault in left_out.values()).most_common()
    shown = "".join(f"\n  {count} {reason}" for reason, count in reasons)
    text = f"golds: {len(known) - len(left_out)} of {len(known)} are proved, the others are left out{shown}"
    context.progress(kind="note", text=text)
    return found


def _faults(domain: DafnyDomain, config: Config, context: RunContext) -> Faults:
    """Of every gold that is asked for until each split is full."""
    known: Faults = {}

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
                known.update(zip(parts, faults, strict=True))
                return faults

            domain.checked(check).splits()
    except Lost as fault:
        raise RlvrError(f"{fault}: run the command again, what is proved by now is cached") from fault
    return known
