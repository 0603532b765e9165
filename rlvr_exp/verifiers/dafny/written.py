"""What a cascade is judged against: a program with a hole, and the code that a writer put there.

An annotator may add to that code what proves it and nothing else: its code, without annotations, is the writer's. A
writer's body may assume nothing. Both are read off the texts by the verifier's own guards; the proof, and everything
else that a candidate could do, is the inner verifier's, judged against the program with the hole.
"""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from rlvr_exp.tasks.dafny import erase
from rlvr_exp.tasks.dafny.syntax import CALLABLES, Declaration, Unreadable, parse
from rlvr_exp.tasks.dafny.tokens import plain
from rlvr_exp.tasks.problems import DafnyProblem
from rlvr_exp.verifiers.base import Request, Verdict, Verifier, settled
from rlvr_exp.verifiers.dafny import guards
from rlvr_exp.verifiers.dafny.guards import Breach


@dataclass(frozen=True)
class WrittenProblem:
    """A body to annotate."""

    hole: DafnyProblem
    """The task: the program without the body, its specification protected."""
    program: str
    """The program with the body as it was written."""


class WrittenCode(Verifier):
    """Judges `WrittenProblem`s with `inner`, and everything else as `inner` does; owns and closes it."""

    def __init__(self, inner: Verifier):
        self._inner = inner
        self.name, self.version, self.row_format = inner.name, inner.version, inner.row_format

    def submit(self, request: Request) -> Future[Verdict]:
        problem, text = request.problem, request.candidate.text
        if not isinstance(problem, WrittenProblem):
            return self._inner.submit(request)
        breach = None if text is None else breach_of_annotations(problem.program, text)
        if breach is not None:
            return settled(Verdict("rejected", rule=breach.rule, log=breach.log))
        return self._inner.submit(Request(problem.hole, request.candidate))

    def tool(self) -> Mapping[str, str]:
        return self._inner.tool()

    def metrics(self) -> Mapping[str, float]:
        return self._inner.metrics()

    def isolation(self) -> dict[str, Any]:
        return self._inner.isolation()

    def close(self) -> None:
        self._inner.close()


def breach_of_body(hole: str, program: str) -> Breach | None:
    """The rule that a written body breaks: it assumes something, or changes what is not its own.

    Args:
        hole: the program without the body.
        program: with it.
    """
    return _breach(hole, program, "specification")


def breach_of_annotations(program: str, text: str) -> Breach | None:
    """The rule that an annotated program breaks against the written one. What cannot be read is Dafny's to refuse."""
    return _breach(program, text, "program") or _filled(program, text)


def _breach(given: str, text: str, protect: guards.Protect) -> Breach | None:
    given, text = plain(given), plain(text)
    early = guards.before_parsing(given, text)
    if early is not None:
        return early
    try:
        return guards.check(guards.known(given), text, protect, holes=False)[0]
    except Unreadable:
        return None


def _filled(program: str, text: str) -> Breach | None:
    """Code in a body that was written empty: for the guards an empty body is one that is still to be written."""
    try:
        before, after = parse(plain(program)), parse(plain(text))
    except Unreadable:
        return None
    theirs = dict(_bodies(after))
    proofs = frozenset(one.name for one in _all(after) if one.ghost and one.kind in ("lemma", "method"))
    for path, one in _bodies(before):
        other = theirs.get(path)
        if other is None or one.ghost or one.kind == "function" or not _is_empty(one.body):
            continue
        if not _is_empty(erase.method_body(other.body, proofs)):
            return Breach("program-changed", f"{one.kind} {one.name} was written empty and is not")
    return None


def _bodies(declarations: Sequence[Declaration], above: tuple = ()) -> Iterator[tuple[tuple, Declaration]]:
    for one in declarations:
        path = (*above, one.key)
        if one.kind in CALLABLES and one.body is not None:
            yield path, one
        yield from _bodies(one.members or (), path)


def _all(declarations: Sequence[Declaration]) -> Iterator[Declaration]:
    for one in declarations:
        yield one
        yield from _all(one.members or ())


def _is_empty(body: Sequence[str]) -> bool:
    return all(token == ";" for token in body)
