"""Trivial honest answers: a task that one of them solves has a weak specification.

The writer leaves the body empty, or returns a constant or a parameter. The annotator adds nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, product

from rlvr_exp.domains.dafny.guards import labelled
from rlvr_exp.domains.dafny.problem import RoleExample
from rlvr_exp.domains.dafny.syntax import Declaration, Tokens, Unreadable, parse
from rlvr_exp.domains.dafny.tokens import plain, tokens, with_inserted

MOST = 12
"""Trivial answers for one task."""
_CONSTANTS = {
    "int": ("0", "1", "-1"),
    "nat": ("0", "1"),
    "real": ("0.0",),
    "bool": ("true", "false"),
    "char": ("'a'",),
    "string": ('""',),
    "seq": ("[]",),
    "set": ("{}",),
    "multiset": ("multiset{}",),
    "map": ("map[]",),
}
_ELEMENTS = ("int", "nat", "bool", "real", "char")


def trivial_answers(part: RoleExample) -> Iterator[tuple[str, str]]:
    """The body and the whole program of each trivial answer to a task, at most MOST."""
    given = part.problem.program
    if part.role == "annotator":
        yield part.given, given
        return
    try:
        holes = [one for _, one in labelled(parse(plain(given))) if is_hole(one)]
    except Unreadable:
        return
    if holes:
        for body in islice(dict.fromkeys(_bodies(holes[-1])), MOST):
            yield body, filled(given, {holes[-1]: body})


def is_hole(one: Declaration) -> bool:
    """Whether it is a method or a lemma that waits for its body."""
    outside = any(attribute[2] in ("axiom", "extern") for attribute in one.attributes)
    return one.kind in ("method", "lemma") and one.body is None and not outside


def filled(given: str, bodies: Mapping[Declaration, str], other: str = "{ }") -> str:
    """The program with these bodies for its methods and lemmas that wait for theirs, and another for the rest of them.
    Raises Unreadable."""
    text = plain(given)
    words, put = tokens(text), dict[int, str]()
    for _, one in labelled(parse(text)):
        if is_hole(one):
            put[one.stop + (words[one.stop : one.stop + 1] == [";"])] = f" {bodies.get(one, other)} "
    return with_inserted(text, put)


def _bodies(one: Declaration) -> Iterator[str]:
    yield "{ }"
    takes, returns = _lists(one.head)
    choices = [_values(kind, takes) for _, kind in returns]
    for values in product(*choices) if returns and one.kind == "method" else ():
        sets = ", ".join(name for name, _ in returns) + " := " + ", ".join(values)
        yield f"{{ {sets}; }}"


def _values(kind: Tokens, takes: Sequence[tuple[str, Tokens]]) -> list[str]:
    """Constants of a type, and the parameters of that type."""
    found = list(_CONSTANTS.get(kind[0], ("0",) if kind[0].startswith("bv") else ()))
    if kind[0] == "array" and kind[2:3] and kind[2] in _ELEMENTS:
        found.append(f"new {kind[2]}[0]")
    return [name for name, other in takes if other == kind] + found


def results(head: Tokens) -> list[tuple[str, Tokens]]:
    """The results of a method's head, each with its type."""
    return _lists(head)[1]


def _lists(head: Tokens) -> tuple[list[tuple[str, Tokens]], list[tuple[str, Tokens]]]:
    """The parameters and the results of a method's head, each with its type."""
    split = head.index("returns") if "returns" in head else len(head)
    return _parameters(head[:split]), _parameters(head[split:])


def _parameters(tokens: Sequence[str]) -> list[tuple[str, Tokens]]:
    if "(" not in tokens:
        return []
    found: list[list[str]] = [[]]
    depth = 0
    for token in tokens[list(tokens).index("(") :]:
        depth += (token in ("(", "<", "[")) - (token in (")", ">", "]"))
        if depth == 0:
            break
        if token == "," and depth == 1:
            found.append([])
        elif depth > 1 or token != "(":
            found[-1].append(token)
    typed = [(one[: one.index(":")], one[one.index(":") + 1 :]) for one in found if ":" in one]
    return [(names[-1], tuple(kind)) for names, kind in typed if names and kind]
