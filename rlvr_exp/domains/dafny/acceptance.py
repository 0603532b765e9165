"""Acceptance of programs that the tool calls proved: each promise is in its log, and false is not proved as well.

Dafny 2.3 writes a line for each body that must keep a promise. If a line is missing, a probe (`assert false` at the end of
that body) must be reported as an error. With `vacuity` every body is probed, at its end and before each `return` and `yield`,
so that its probe is proved only if no exit can be reached. Then the proof means nothing, for a given body and for a new body
that requires nothing. A given contract that implies false is no fault of the candidate: `contract_probe` finds that out from
the given program. The guards decide about declarations.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from rlvr_exp.domains.dafny.guards import PROVED, Facts, ProgramDeclarations, Violation, labelled
from rlvr_exp.domains.dafny.logs import Report
from rlvr_exp.domains.dafny.syntax import Declaration, parse
from rlvr_exp.domains.dafny.tokens import pieces
from rlvr_exp.domains.dafny.tool import Run

_PROBE = " assert false; "


def probed(text: str, wanted: Callable[[str], bool] = lambda label: True) -> tuple[str, Counter[str]]:
    """The program with probes in the bodies of the callables with wanted labels, and the number of bodies of each."""
    before: dict[int, str] = {}
    labels: Counter[str] = Counter()
    words = [piece.text for piece in pieces(text) if piece.token]
    for label, one in labelled(parse(text)):
        if one.kind in PROVED and one.body is not None and not _endless(one) and wanted(label):
            labels[label] += 1
            inside = range(one.end - len(one.body), one.end)
            before |= {at: _PROBE for at in inside if words[at] in ("return", "yield")} | {one.end: _PROBE}
    return _with(text, before), labels


def contract_probe(text: str, labels: Collection[str]) -> str:
    """The program whose bodies of those labels assume their own `ensures` clauses (lemmas) and then assert false."""
    put: dict[int, str] = {}
    left_out: set[int] = set()
    words = [piece.text for piece in pieces(text) if piece.token]
    for label, one in labelled(parse(text)):
        if label not in labels or one.kind not in PROVED:
            continue
        body = "{ " + "".join(f"assume {promise}; " for promise in _promised(one)) + "assert false; }"
        if one.body is None:
            put[one.stop + (words[one.stop : one.stop + 1] == [";"])] = f" {body} "
        else:
            put[one.end] = body.removeprefix("{").removesuffix("}")
            left_out |= set(range(one.end - len(one.body), one.end))
    return _with(text, put, left_out)


def ends(report: Report) -> Mapping[str, Sequence[str]]:
    """How each body's proof ended, by label; a label may stand for several bodies."""
    found: dict[str, list[str]] = {}
    for procedure in report.procedures:
        if procedure.part == "Impl":
            found.setdefault(procedure.name.removesuffix("#"), []).append(procedure.result)
    return found


def silent(report: Report, expected: Mapping[str, int]) -> frozenset[str]:
    """Labels of which fewer bodies are reported as verified than expected."""
    found = ends(report)
    return frozenset(label for label, count in expected.items() if found.get(label, []).count("verified") < count)


def proved(report: Report, labels: Iterable[str]) -> list[str]:
    """Labels one of whose probes is proved."""
    found = ends(report)
    return sorted(label for label in labels if "verified" in found.get(label, ()))


def refuted(report: Report, labels: Iterable[str]) -> frozenset[str]:
    """Labels all of whose probes show as errors."""
    found = ends(report)
    return frozenset(one for one in labels if found.get(one) and all(end.startswith("error") for end in found[one]))


def undecided(report: Report, labels: Iterable[str]) -> frozenset[str]:
    """Labels one of whose probes fell to a limit."""
    found = ends(report)
    decided = ("verified", "error")
    return frozenset(one for one in labels if any(not end.startswith(decided) for end in found.get(one, ())))


def _endless(one: Declaration) -> bool:
    """Whether it need not end: an end that is never reached is allowed."""
    return any(clause.word == "decreases" and "*" in clause.text and len(clause.text) == 1 for clause in one.clauses)


def _promised(one: Declaration) -> list[str]:
    if one.kind != "lemma":
        return []
    return [" ".join(clause.text) for clause in one.clauses if clause.word == "ensures"]


def _with(text: str, before: Mapping[int, str], left_out: Collection[int] = ()) -> str:
    """The text with words inserted before some of its tokens, by their index, and without others."""
    parts: list[str] = []
    index = 0
    for piece in pieces(text):
        if piece.token:
            parts.append(before.get(index, ""))
            index += 1
        if not piece.token or index - 1 not in left_out:
            parts.append(piece.text)
    return "".join([*parts, before.get(index, "")])


@dataclass(frozen=True)
class Proof:
    """A candidate that the tool calls proved. `run` runs further programs within the candidate's limits, `read` parses
    their output; `named`: the tool's log names each body as `declarations.labelled` does."""

    given: ProgramDeclarations
    text: str
    facts: Facts
    report: Report
    named: bool
    run: Callable[[str, Sequence[str]], Run]
    read: Callable[[str, int], Report]

    def objection(
        self, careful: Sequence[str], probing: Sequence[str], searching: Sequence[str], every: bool
    ) -> Violation | Run | None:
        """Why it is not accepted, or a Run that reached a limit, which leaves a doubt.

        Args:
            careful: options of the run that proved it.
            probing: further options of a run that only searches for false, with a small count of resources.
            searching: the same with the count of the proof, for the bodies whose probes fell to the small one.
            every: probe all bodies, not only those missing in the log.
        """
        quiet = silent(self.report, self.facts.promising) if self.named else frozenset[str]()
        if not self.report.procedures and self.facts.promising and not self.named:
            return Violation("unproved", "Dafny proved nothing where there is something to prove")
        if not (quiet or every):
            return None
        text, labels = probed(self.text, lambda label: every or label in quiet)
        run = self.run(text, [*careful, *probing])
        if run.end != "done":
            return run
        report = self.read(run.output, run.code)
        unheard = self._unheard(report, labels, quiet)
        if unheard:
            return Violation("unproved", f"Dafny's log does not report the body of {unheard} as verified")
        found = self._vacuous(proved(report, labels), probing)
        late = undecided(report, labels)
        if late and not found:
            run = self.run(probed(self.text, late.__contains__)[0], [*careful, *searching])
            found = self._vacuous(proved(self.read(run.output, run.code), late), probing)
        if found:
            return Violation("vacuous", f"`assert false` is proved at the end of {found}")
        return None if run.end == "done" else run

    def _unheard(self, report: Report, labels: Mapping[str, int], silent: frozenset[str]) -> str:
        """A body whose probe is in no line of the log, or is no error though the log had no line before."""
        if not self.named:
            return ""
        found = ends(report)
        missing = {label for label, count in labels.items() if len(found.get(label, ())) < count}
        return min(missing | (silent - refuted(report, silent)), default="")

    def _vacuous(self, falsified: Sequence[str], probing: Sequence[str]) -> str:
        given = [label for label in falsified if label in self.given.labels]
        new = [label for label in falsified if label not in self.given.labels and label in self.facts.unconditional]
        if given and self.given.text:
            run = self.run(contract_probe(self.given.text, given), probing)
            if run.end == "done":
                excused = proved(self.read(run.output, run.code), given)
                given = [label for label in given if label not in excused]
        return next(iter(given + new), "")
