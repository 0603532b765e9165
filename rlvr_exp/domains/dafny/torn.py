"""Programs without hints that were cut in the middle of an annotation, and what takes their place.

DafnyBench removed every line that begins with `assert`, `invariant` or `decreases`. Of a longer annotation, the rest is left: such
a text cannot be parsed, or has other code. The program with erased bodies takes its place: the reference program
(`erased_program`), or an answer (`untorn`). An answer takes it only if it adds nothing but lines with hints, so that its
specification is that of the torn text.
"""

import re
from collections.abc import Sequence
from itertools import pairwise

from rlvr_exp.domains.dafny.annotations import erased, function_body, hollow, method_body
from rlvr_exp.domains.dafny.syntax import Method, Split, Unreadable, qualified, split
from rlvr_exp.domains.dafny.tokens import CLAUSES, Unbalanced, plain, tokens, tokens_with_starts

HINTS = frozenset(("assert", "invariant", "decreases"))
"""Words that begin the lines which DafnyBench removed."""
_MARKER = re.compile(r"//\s*(?:invariants?|assert|lemma-use)-(?:start|end|line)")


def without_annotations(method: Method, proofs: frozenset[str]) -> str:
    """The method's own body, erased. Comments that only mark annotations are erased with them."""
    if method.ghost:
        return hollow(method.body)
    return erased(method.body, proofs, lambda comment: _MARKER.fullmatch(comment) is not None)


def erased_program(text: str, whole: Split) -> str:
    """The program with all bodies erased."""
    for method in reversed(whole.methods):
        start = _opens(method)
        text = text[:start] + without_annotations(method, whole.proofs) + text[start + len(method.body) :]
    return text


def is_torn(stripped: str, whole: Split) -> bool:
    """Whether a program without hints cannot be parsed, has other code than the program, or must end where the program need not."""
    try:
        return _code(split(stripped)) != _code(whole)
    except (Unreadable, Unbalanced):
        return True


def untorn(given: str, answer: str) -> str | None:
    """The answer with erased bodies, if the given program is the answer without some lines of hints; else None."""
    given, answer = plain(given), plain(answer)
    try:
        whole = split(answer)
        added = _added(_lines(given), _lines(answer))
        if added is None or not all(_is_proof(line, whole) for line in added):
            return None
        result = erased_program(answer, whole)
    except (Unreadable, Unbalanced):
        return None
    clauses = {line for _, line in added}
    rest = iter(tokens(given))
    kept = (token for _, line in _lines(result) if line not in clauses for token in line)
    return result if all(token in rest for token in kept) else None


def _code(whole: Split) -> list[tuple[str, ...]]:
    """The functions, and the bodies of methods without annotations."""
    functions = (one for _, one in qualified(whole.declarations) if one.kind == "function" and one.body is not None)
    methods = (method for method in whole.methods if not method.ghost and method.kind != "function")
    endless = (words for method in whole.methods for words in pairwise(tokens(plain(method.spec))))
    return [
        *(words for words in endless if words == ("decreases", "*")),
        *(function_body(one.body or ()) for one in functions),
        *(method_body(tokens(plain(one.body)), whole.proofs) for one in methods),
    ]


def _opens(method: Method) -> int:
    return len(method.before + method.header + method.spec)


Line = tuple[int, tuple[str, ...]]
"""The offset of a line's first token, and its tokens."""


def _lines(text: str) -> list[Line]:
    found: list[tuple[int, list[str]]] = []
    last = -1
    for token, start in zip(*tokens_with_starts(text), strict=True):
        if last < 0 or "\n" in text[last:start]:
            found.append((start, []))
        found[-1][1].append(token)
        last = start
    return [(start, tuple(line)) for start, line in found]


def _added(given: Sequence[Line], answer: Sequence[Line]) -> list[Line] | None:
    """The lines of the answer that the given text lacks; None if it lacks more than hints, or has others."""
    at, added = 0, []
    for start, line in answer:
        if at < len(given) and line == given[at][1]:
            at += 1
        elif line[0] in HINTS:
            added.append((start, line))
        else:
            return None
    return added if at == len(given) else None


def _is_proof(line: Line, whole: Split) -> bool:
    """Whether an added line is in the body of a method, or a clause that says why a callable terminates."""
    start, words = line
    if any(_opens(method) < start < _opens(method) + len(method.body) for method in whole.methods):
        return True
    others = CLAUSES | {"{", "}", "*"}
    return words[0] == "decreases" and not others & set(words[1:])
