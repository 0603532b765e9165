"""Rules for a writer's body, checked on the text before it is annotated or given to Dafny."""

from rlvr_exp.tasks.dafny.syntax import Unreadable
from rlvr_exp.tasks.dafny.tokens import plain
from rlvr_exp.verifiers.dafny import guards
from rlvr_exp.verifiers.dafny.declarations import read_declarations
from rlvr_exp.verifiers.dafny.guards import Violation


def body_violation(hole: str, program: str) -> Violation | None:
    """The rule that a written body breaks: it assumes something, or changes what is not its own. A body that cannot be
    read is left to Dafny to refuse.

    Args:
        hole: the program without the body.
        program: the program with it.
    """
    given, text = plain(hole), plain(program)
    early = guards.before_parsing(given, text)
    if early is not None:
        return early
    try:
        return guards.check(read_declarations(given), text, "specification", holes=False)[0]
    except Unreadable:
        return None
