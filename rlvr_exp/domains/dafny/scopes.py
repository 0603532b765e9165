"""Names of a specification that can mean a declaration, as opposed to variables that it binds itself.

Follows comprehensions, quantifiers, let-expressions and the variable of a subset type, as far as that is certain: a
scope that is ended too early only counts one more name as free. Lambdas and patterns bind nothing here, since a
pattern's name may be a constructor's. Names of types are not distinguished, except parameters: callers compare new
types with every name.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rlvr_exp.domains.dafny.tokens import COMPREHENSIONS, is_name, partners

_TYPE_FOLLOWS = frozenset((":", "as", "is", "->", "-->", "~>"))
_MEMBER = "."


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
    scopes = list(_scopes(tokens))
    sites = frozenset(index for scope in scopes for index in scope.sites)
    for index, token in enumerate(tokens):
        if not is_name(token) or index in sites:
            continue
        before = tokens[index - 1] if index else ""
        bound = any(scope.start <= index < scope.stop and token in scope.names for scope in scopes)
        if token in parameters and not bound:  # Not in a list between < and >, judged by its neighbours.
            after = tokens[index + 1] if index + 1 < len(tokens) else ""
            argument = (before == "<" and after in (">", ",", "<")) or (before == "," and after == ">")
            bound = before not in _TYPE_FOLLOWS and not argument
        if before == _MEMBER or not bound:
            yield Use(token, before == _MEMBER)


def _scopes(tokens: Sequence[str]) -> Iterator[_Scope]:
    closes = partners(tokens)
    for index, token in enumerate(tokens):
        scope = None
        if token in COMPREHENSIONS:
            scope = _comprehension(tokens, closes, index)
        elif token == "var":  # A let-expression.
            given = _next(tokens, closes, index + 1, (":=", ":|"))
            body = None if given is None else _next(tokens, closes, given + 1, (";",), lets=True)
            if given is not None and body is not None:
                scope = _scope(tokens, closes, (index, given), body, body + 1)
        elif token in ("type", "newtype"):  # A subset type.
            equals = _next(tokens, closes, index + 1, ("=",))
            bar = None if equals is None else _next(tokens, closes, equals + 1, ("|",))
            if equals is not None and bar is not None:
                scope = _scope(tokens, closes, (equals, bar), bar, bar + 1)
        if scope is not None:
            yield scope


def _comprehension(tokens: Sequence[str], closes: dict[int, int], index: int) -> _Scope | None:
    bar = _next(tokens, closes, index + 1, ("|", "::")) if _binds(tokens, index) else None
    if bar is None:
        return None
    marks = (at for at in range(index, bar) if tokens[at] == "{" and tokens[at + 1] == ":")
    return _scope(tokens, closes, (index, bar), next(marks, bar), bar + 1)


def _binds(tokens: Sequence[str], index: int) -> bool:
    """Whether variables follow the word, and not a display or the arguments of a type."""
    return index + 1 < len(tokens) and tokens[index + 1] not in ("{", "[", "<", ">", ",", ")")


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
    """The scope, from `start` on, of the variables between the two indices of `binder`; `after`: the index of their expression.

    Variables are names after the binding word or a comma, outside all brackets, followed by a type, a comma or the end.
    """
    (first, stop), sites, angles = binder, set(), 0
    index = first + 1
    while index < stop:
        token, before, following = tokens[index], tokens[index - 1], tokens[index + 1]
        angles += (token == "<" and following != "-") - (token == ">")
        separated = index == first + 1 or (before == "," and not angles)
        if separated and is_name(token) and (index + 1 == stop or following in (",", ":", "{", "<")):
            sites.add(index)
        index = closes[index] + 1 if token in ("(", "[", "{") else index + 1
    return _Scope(frozenset(tokens[site] for site in sites), frozenset(sites), start, _end(tokens, closes, after))


def _end(tokens: Sequence[str], closes: dict[int, int], index: int) -> int:
    """The index at which the scope that continues at `index` certainly ends, or an earlier one."""
    ifs = lets = binders = 0
    while index < len(tokens):
        token = tokens[index]
        if token in (")", "]", "}", "case", "=>", "witness", "ghost"):
            return index
        if token == "{" and _is_operand(tokens[index - 1]):
            return index
        binders += token in COMPREHENSIONS and _binds(tokens, index)
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
