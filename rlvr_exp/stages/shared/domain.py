"""The domain of a stage. With `data.usable=check` it has only tasks whose gold its verifier accepts."""

from collections import Counter
from collections.abc import Callable
from typing import Any

from rlvr_exp.config.load import build
from rlvr_exp.config.schema import Config
from rlvr_exp.core.errors import InputError, InputProblem, RlvrError
from rlvr_exp.records import manifest
from rlvr_exp.records.context import RunContext
from rlvr_exp.sandbox.tools import Lost
from rlvr_exp.tasks.base import Domain, ProvesGolds

CHOOSE = ("folds", "families", "unseen_families", "resample")
"""Options that `Domain.in_folds` reads."""
Section = dict[str, Any]
"""Of the manifest. `checked`: the number of golds that were judged; `left_out`: those that do not pass, each with the reason."""
Once = Callable[[Callable[[], Section]], Section]
"""Calls a function in one process, and gives its result to all."""


def build_domain(config: Config, context: RunContext, once: Once = lambda find: find()) -> Domain:
    """The domain of the `data` node; where `data.usable=check` without the tasks whose gold does not pass. A resumed run
    leaves out the same tasks: a busy machine may end a proof that it had finished before.

    Raises:
        InputError: the data are faulty.
        RlvrError: the verifier broke down while it judged golds; what is judged by then is cached.
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
    return domain.without_golds(left_out)


def _recorded(context: RunContext) -> Section:
    """Of the run that is resumed; empty for a new one."""
    return manifest.section(context.directory, "golds") if manifest.resumed_from(context.directory) else {}


def _golds(domain: ProvesGolds, config: Config, context: RunContext) -> Section:
    def proved(done: int, total: int) -> None:
        context.progress(kind="phase", name="prove golds", done=done, total=total)

    try:
        found = domain.refused_golds(config, proved)
    except Lost as fault:
        raise RlvrError(f"{fault}: run the command again, what is proved by now is cached") from fault
    return {"checked": found.checked, "left_out": dict(found.refused)}
