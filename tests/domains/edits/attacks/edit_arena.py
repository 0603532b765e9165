"""Shared parts of the attack tests on edits. An attack is an action that must not pass, whatever it does to its
process; a control is an honest action that a naive guard breaks."""

import itertools
import json

from rlvr_exp.config.verifier import Sandbox
from rlvr_exp.domains.edits.problem import AstGrepProblem
from rlvr_exp.domains.edits.verifier import AstGrep
from rlvr_exp.tasks.base import Candidate
from rlvr_exp.tasks.formats.fields import Limits
from rlvr_exp.verifiers.base import Request, Verdict

LIMITS = Limits(cpu_s=0.3, wall_s=20.0)
PATIENCE_S = 120.0
"""Far above any limit: a verdict that takes longer hangs."""
_fresh = itertools.count()


def make(**options: object) -> AstGrep:
    return AstGrep(Sandbox(workers=1, memory_mb=256), **options)


def judge(
    verifier: AstGrep, action: object, before: str = "f(1)\n", after: str = "g(1)\n", language: str = "python"
) -> Verdict:
    """`action`: its text, or a value to encode as JSON."""
    text = action if isinstance(action, str) else json.dumps(action)
    problem = AstGrepProblem(language, before, after, limits=LIMITS)
    return verifier.submit(Request(problem, Candidate(text))).result(timeout=PATIENCE_S)


def honest(verifier: AstGrep) -> Verdict:
    """A new edit each time, by the engine that attacks break most: the program."""
    number = next(_fresh)
    rule = {"transform": {"B": {"substring": {"source": "$A"}}}, "rule": {"pattern": "f($A)"}, "fix": "g($B)"}
    return judge(verifier, rule, f"f({number})\n", f"g({number})\n")


def rename(**more: object) -> dict:
    """The right answer, with something added."""
    return {"rule": {"pattern": "f($A)"}, "fix": "g($A)", **more}


def nested(kind: str, depth: int, inner: dict | None = None) -> dict:
    """`{kind: {kind: ... inner}}`."""
    built = inner or {"kind": "call"}
    for _ in range(depth):
        built = {kind: built}
    return built
