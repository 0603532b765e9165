"""Which names of a specification can mean a declaration, and which can only mean a variable that it binds itself.

Follows comprehensions, quantifiers, let-expressions and the variable of a subset type, as far as that is certain: a
scope that is ended too early only counts one more name as free. Lambdas and patterns bind nothing here, since a
pattern's name may be a constructor's. Names of types are not distinguished, except parameters: callers compare new
types with every name.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rlvr_exp.domains.dafny.tokens import is_name, partners

_COMPREHENSIONS = frozenset(("forall", "exists", "set", "iset", "map", "imap"))
_TYPE_FOLLOWS = frozenset((":", "as", "is", "->", "-->", "~>"))
_MEMBER = "."
_VALUES = frozenset(("int", "nat", "bool", "char", "real"))


@dataclass(frozen=True)
class Use:
    """A name that may mean a declaration. `member`: it follows a dot."""

    name: str
    member: bool


@dataclass(frozen=True)
class _Scope:
    names: frozenset[str]
    sites: frozenset[int]
    """The range of tokens in which they are bound."""
    start: int
    stop: int


def uses(tokens: Sequence[str], parameters: frozenset[str] = frozenset()) -> Iterator[Use]:
    """The uses in one clause, head or body, balanced. `parameters` are bound in all of it."""
    scopes = _scopes(tokens)
    sites = frozenset(index for scope in scopes for index in scope.sites)
    for index, token in enumerate(tokens):
        if not is_name(token) or index in sites:
            continue
        before = tokens[index - 1] if index else ""
        bound = any(scope.start <= index < scope.stop and token in scope.names for scope in scopes)
        if token in parameters and not bound:
            bound = before not in _TYPE_FOLLOWS and not _may_be_type_argument(tokens, index)
        if before == _MEMBER or not bound:
            yield Use(token, before == _MEMBER)


def unbounded(tokens: Sequence[str]) -> Iterator[str]:
    """Comprehensions of sets and maps, as text, with a variable that may be any reference: its type is not that of a
    plain value, it is not compared, and no part of the range, all of which has to hold, says what it is in or equal to."""
    closes = partners(tokens)
    for index, token in enumerate(tokens):
        scope = _comprehension(tokens, closes, index) if token in _COMPREHENSIONS - {"forall", "exists"} else None
        if scope is None:
            continue
        start = scope.start
        while tokens[start] == "{":  # an attribute
            start = closes[start] + 1
        held = _held(list(_conjuncts(tokens, closes, start + 1)), scope.names)
        for site in scope.sites:
            name, kind = tokens[site], tokens[site + 2] if tokens[site + 1] == ":" else ""
            compared = token in ("set", "map") and _is_compared(tokens[start : scope.stop], name)
            if kind not in _VALUES and name not in held and not compared:
                yield " ".join(tokens[index : scope.stop])


def _conjuncts(tokens: Sequence[str], closes: dict[int, int], index: int) -> Iterator[Sequence[str]]:
    """The parts of a range that `&&` joins outside all brackets; none where another word there may weaken one."""
    start, found, bars = index, [], 0
    while index < len(tokens) and tokens[index] not in ("::", ";", ")", "]", "}"):
        if tokens[index] == "|":
            bars += -1 if tokens[index - 1] != "in" and _is_operand(tokens[index - 1]) else 1
        if bars < 0:
            break
        if tokens[index] in ("||", "==>", "<==", "<==>", "if", "match", "var", "forall", "exists"):
            return
        if tokens[index] == "&&":
            found.append(tokens[start:index])
            start = index + 1
        index = closes[index] + 1 if tokens[index] in ("(", "[", "{") else index + 1
    yield from (*found, tokens[start:index])


def _held(parts: Sequence[Sequence[str]], names: frozenset[str]) -> set[str]:
    """The names that one of these parts puts into a set, or equals with a value, that the others do not depend on."""
    found: set[str] = set()
    for part in parts:
        if len(part) > 2 and part[1] in ("in", "==") and not (names - found).intersection(part[2:]):
            found.update(names.intersection(part[:1]))
    return found


def _is_compared(span: Sequence[str], name: str) -> bool:
    """Whether it stands before or behind a sign that orders numbers, and not one of its members or elements."""
    signs = ("<", "<=", ">", ">=")
    for before, token, after, then in zip(("", *span), span, (*span[1:], ""), (*span[2:], "", ""), strict=False):
        if token == name and before != "." and after in signs:
            return True
        if token in signs and after == name and then not in (".", "[", "(", "`"):
            return True
    return False


def _may_be_type_argument(tokens: Sequence[str], index: int) -> bool:
    """Whether it is in a list between < and >, judged by its neighbours."""
    before = tokens[index - 1] if index else ""
    after = tokens[index + 1] if index + 1 < len(tokens) else ""
    return (before == "<" and after in (">", ",", "<")) or (before == "," and after == ">")


def _scopes(tokens: Sequence[str]) -> list[_Scope]:
    closes = partners(tokens)
    found = []
    for index, token in enumerate(tokens):
        scope = None
        if token in _COMPREHENSIONS:
            scope = _comprehension(tokens, closes, index)
        elif token == "var":
            scope = _let(tokens, closes, index)
        elif token in ("type", "newtype"):
            scope = _subset(tokens, closes, index)
        if scope is not None:
            found.append(scope)
    return found


def _comprehension(tokens: Sequence[str], closes: dict[int, int], index: int) -> _Scope | None:
    if not _binds(tokens, index):
        return None
    bar = _next(tokens, closes, index + 1, ("|", "::"))
    if bar is None:
        return None
    marks = (at for at in range(index, bar) if tokens[at] == "{" and tokens[at + 1] == ":")
    return _scope(tokens, closes, (index, bar), next(marks, bar), bar + 1)


def _binds(tokens: Sequence[str], index: int) -> bool:
    """Whether variables follow the word, and not a display or the arguments of a type."""
    return index + 1 < len(tokens) and tokens[index + 1] not in ("{", "[", "<", ">", ",", ")")


def _let(tokens: Sequence[str], closes: dict[int, int], index: int) -> _Scope | None:
    given = _next(tokens, closes, index + 1, (":=", ":|"))
    if given is None:
        return None
    body = _next(tokens, closes, given + 1, (";",), lets=True)
    if body is None:
        return None
    return _scope(tokens, closes, (index, given), body, body + 1)


def _subset(tokens: Sequence[str], closes: dict[int, int], index: int) -> _Scope | None:
    equals = _next(tokens, closes, index + 1, ("=",))
    bar = _next(tokens, closes, equals + 1, ("|",)) if equals is not None else None
    if equals is None or bar is None:
        return None
    return _scope(tokens, closes, (equals, bar), bar, bar + 1)


def _next(
    tokens: Sequence[str], closes: dict[int, int], index: int, wanted: tuple[str, ...], lets: bool = False
) -> int | None:
    """The first of these tokens at this depth; with `lets`, semicolons of lets in between are skipped."""
    opened = 0
    while index < len(tokens) and tokens[index] not in (")", "]", "}"):
        token = tokens[index]
        if token in wanted and not opened:
            return index
        opened += (lets and token == "var") - (token == ";")
        if opened < 0:
            return None
        index = closes[index] + 1 if token in ("(", "[", "{") else index + 1
    return None


def _scope(tokens: Sequence[str], closes: dict[int, int], binder: tuple[int, int], start: int, after: int) -> _Scope:
    """The scope of the variables between two indices, from `start` on; `after`: where their expression begins."""
    sites = _bound(tokens, closes, *binder)
    return _Scope(frozenset(tokens[site] for site in sites), sites, start, _end(tokens, closes, after))


def _bound(tokens: Sequence[str], closes: dict[int, int], first: int, stop: int) -> frozenset[int]:
    """Names after the binding word or a comma, outside all brackets, followed by a type, a comma or the end."""
    found, index, angles = set(), first + 1, 0
    while index < stop:
        token, before, after = tokens[index], tokens[index - 1], tokens[index + 1]
        angles += (token == "<" and after != "-") - (token == ">")
        separated = index == first + 1 or (before == "," and not angles)
        if separated and is_name(token) and (index + 1 == stop or after in (",", ":", "{") or (after == "<")):
            found.add(index)
        index = closes[index] + 1 if token in ("(", "[", "{") else index + 1
    return frozenset(found)


def _end(tokens: Sequence[str], closes: dict[int, int], index: int) -> int:
    """Where the scope that continues at `index` certainly ends, or earlier."""
    ifs = lets = binders = 0
    while index < len(tokens):
        token = tokens[index]
        if token in (")", "]", "}", "case", "=>", "witness", "ghost"):
            return index
        if token == "{" and _is_operand(tokens[index - 1]):
            return index
        binders += token in _COMPREHENSIONS and _binds(tokens, index)
        if token in ("::", "|") and binders:
            binders -= 1
        ifs += token == "if"
        lets += token == "var"
        if (token == "," and not (binders or lets)) or (token == ";" and not lets):
            return index
        if token in ("then", "else") and not ifs:
            return index
        ifs -= token == "else"
        lets -= token == ";"
        index = closes[index] + 1 if token in ("(", "[", "{") else index + 1
    return index


def _is_operand(token: str) -> bool:
    return is_name(token) or token[0] in "0123456789\"')]}"
