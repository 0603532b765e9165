"""Probes: programs with `assert false` at the exits of bodies, and the results in the tool's log.

Writes the probing programs and parses the results; runs nothing. A body is probed at its end and before each `return`
and `yield`, so that its probe is proved only where no exit can be reached. Then the earlier proof means nothing, unless
the contract itself implies false: `contract_probe` finds that out from the given program alone.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from rlvr_exp.tasks.dafny.syntax import Declaration, parse
from rlvr_exp.tasks.dafny.tokens import pieces
from rlvr_exp.verifiers.dafny.declarations import PROVED, labelled
from rlvr_exp.verifiers.dafny.logs import Report

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
