"""The vacuity probe: where `assert false` at the end of a body can be proved, what was proved there means nothing.

Makes the probing program and reads its answer; runs nothing. A body whose last statement leaves it, or that never
ends, is not probed: its end cannot be reached, and that is no fault.
"""

from collections.abc import Sequence

from rlvr_exp.tasks.dafny.syntax import Declaration, Tokens, parse
from rlvr_exp.tasks.dafny.tokens import pieces
from rlvr_exp.verifiers.dafny.logs import Report

_PROBE = " assert false; "


def probed(text: str, names: Sequence[str]) -> tuple[str, frozenset[str]]:
    """The program with a probe at the end of the bodies of these declarations, and the names that have one."""
    ends: dict[int, str] = {}
    _collect(parse(text), frozenset(names), ends)
    parts: list[str] = []
    index = 0
    for piece in pieces(text):
        if piece.token:
            if index in ends:
                parts.append(_PROBE)
            index += 1
        parts.append(piece.text)
    return "".join(parts), frozenset(ends.values())


def vacuous(report: Report, names: frozenset[str]) -> str:
    """The first body whose probe was proved; empty where none was."""
    for procedure in report.procedures:
        name = procedure.name.rpartition(".")[2]
        if procedure.part == "Impl" and procedure.result == "verified" and name in names:
            return name
    return ""


def _collect(declarations: Sequence[Declaration], names: frozenset[str], ends: dict[int, str]) -> None:
    for one in declarations:
        _collect(one.members or (), names, ends)
        if one.kind in ("method", "lemma") and one.name in names and one.body is not None and _falls_through(one.body):
            ends[one.end] = one.name


def _falls_through(body: Tokens) -> bool:
    """Whether the end may be reached as far as a look at the last statement tells."""
    depth, start = 0, 0
    for index, token in enumerate(body):
        depth += (token in ("(", "[", "{")) - (token in (")", "]", "}"))
        if depth == 0 and token in (";", "}") and index + 1 < len(body):
            start = index + 1
    return not body or not ({"return", "while"} & set(body[start:]))
