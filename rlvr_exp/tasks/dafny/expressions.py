"""Where an expression ends, without a grammar of expressions: by whether the next token must be an operand.

Dafny has no mark between a specification and a body. After a complete operand `{` can only begin a body; where an
operand is due it begins a set. Bars, comprehensions, `match` and let-expressions are followed as far as necessary.
"""

from collections.abc import Sequence

CLAUSES = frozenset(("requires", "ensures", "modifies", "reads", "decreases", "invariant", "yield", "free"))
MODIFIERS = frozenset(
    (
        "abstract",
        "ghost",
        "static",
        "protected",
        "extern",
        "opaque",
        "replaceable",
        "inductive",
        "twostate",
        "least",
        "greatest",
    )
)
DECLARES = frozenset(
    ("module", "import", "export", "include", "class", "trait", "datatype", "codatatype", "newtype", "type", "const")
    + ("function", "predicate", "copredicate", "method", "lemma", "colemma", "constructor", "iterator")
)
STATEMENTS = frozenset(
    (
        "while",
        "for",
        "return",
        "break",
        "continue",
        "print",
        "modify",
        "label",
        "new",
        "if",
        "match",
        "forall",
        "calc",
        "expect",
    )
)
_BEGINS = frozenset(("var", "assert", "assume", "reveal"))
_COMPREHENSIONS = frozenset(("set", "iset", "map", "imap", "forall", "exists"))
_PREFIXES = frozenset(("if", "seq", "multiset", "then", "else", "case", "in", "as", "is"))
_INFIX_WORDS = frozenset(("in", "as", "is", "then", "else", "case"))
_STOPS = frozenset(")]}")
_OPENS = {"(": ")", "[": "]", "{": "}"}


class Unbalanced(ValueError):
    """Brackets do not match: the program cannot parse."""


def partners(tokens: Sequence[str]) -> dict[int, int]:
    """The index of each bracket's closing partner. Raises Unbalanced."""
    found: dict[int, int] = {}
    opened: list[int] = []
    for index, token in enumerate(tokens):
        if token in _OPENS:
            opened.append(index)
        elif token in _STOPS:
            if not opened or _OPENS[tokens[opened[-1]]] != token:
                raise Unbalanced(f"a {token} that closes nothing")
            found[opened.pop()] = index
    if opened:
        raise Unbalanced(f"a {tokens[opened[-1]]} that is never closed")
    return found


def is_name(token: str) -> bool:
    """Whether it is an identifier or a reserved word."""
    return token[0].isalpha() or token[0] in "_?"


def _is_operand(token: str) -> bool:
    """Whether it is a name or a literal."""
    return is_name(token) or token[0] in "0123456789\"'" or token[:2] == '@"'


class Walker:
    """Walks over one list of tokens."""

    def __init__(self, tokens: Sequence[str], closes: dict[int, int]):
        self.tokens, self.closes, self.end = tokens, closes, len(tokens)

    def at(self, index: int) -> str:
        """The token at an index, or an empty string past the end."""
        return self.tokens[index] if index < self.end else ""

    def is_attribute(self, index: int) -> bool:
        """Whether an attribute `{:name ...}` begins at an index."""
        return self.at(index) == "{" and self.at(index + 1) == ":"

    def past_expression(self, index: int) -> int:
        """The index of the first token that is no part of the expression, or list of them, that begins at `index`."""
        state = _State()
        while index < self.end and self.tokens[index] not in _STOPS:
            step = self._operand(index, state) if state.due else self._operator(index, state)
            if step is None:
                break
            index = step
        return index

    def _operand(self, index: int, state: "_State") -> int | None:
        token = self.tokens[index]
        if self.is_attribute(index):
            return self.closes[index] + 1
        if token == "{" and not state.calc and ";" in self.tokens[index : self.closes[index]]:
            return None  # Statements, and no set: `as Num<int> { x := 0; }`, where the type only seems to compare.
        if token in _OPENS:
            state.due = token == "{" and state.calc
            state.calc = False
            return self.closes[index] + 1
        if token == ";":
            return state.ends_let(index)
        if token == "|":
            if state.open and state.open[-1] == "comprehension" and self.at(index - 1) == ">":
                state.open.pop()  # the bound variable's type ended in >
            else:
                state.open.append("bar")
        elif token == "::" and "comprehension" in state.open:
            state.close("comprehension")
        elif token in _BEGINS:
            state.lets += 1
        elif token == "match":
            state.matches += 1
        elif token == "calc":
            state.calc = True
        elif token in _COMPREHENSIONS:
            if self.at(index + 1) not in ("{", "[", "<"):
                state.open.append("comprehension")
        elif token in CLAUSES or token in DECLARES or token in STATEMENTS - {"if"}:
            return None
        elif token == "*" or (token not in _PREFIXES and _is_operand(token)):
            state.due = False
        return index + 1

    def _operator(self, index: int, state: "_State") -> int | None:
        token = self.tokens[index]
        if token in ("(", "["):
            return self.closes[index] + 1
        if token == "{":
            if self.is_attribute(index):
                return self.closes[index] + 1
            if not state.matches:
                return None
            state.matches -= 1
            return self.closes[index] + 1
        if token == ";":
            return state.ends_let(index)
        if token == "#" or (token in ("==", "!=") and self.at(index + 1) == "#"):
            state.due = token != "#"  # P#[k](x), and a ==#[k] b
            bracket = index + 1 if token == "#" else index + 2
            return self.closes.get(bracket, bracket) + 1
        if token in (".", "`"):
            return index + 1 if self.at(index + 1) == "(" else index + 2
        if token == "|" and state.open:
            state.due = state.open.pop() == "comprehension"
            return index + 1
        if token == "::":
            state.close("comprehension")
        if token == "case" and state.matches:
            state.matches -= 1
        if (is_name(token) and token not in _INFIX_WORDS) or token[0] in "0123456789\"'":
            return None
        state.due = True
        return index + 1


class _State:
    """The state of a walk: whether an operand is due, open bars and comprehensions, lets and matches."""

    def __init__(self) -> None:
        self.due, self.calc = True, False
        self.open: list[str] = []
        self.lets = self.matches = 0

    def ends_let(self, index: int) -> int | None:
        """A semicolon: between a let and its body, or the end."""
        if not self.lets:
            return None
        self.lets -= 1
        self.due = True
        return index + 1

    def close(self, what: str) -> None:
        """Drop the innermost open item of that kind, and items still open inside it."""
        while self.open and self.open.pop() != what:
            pass
