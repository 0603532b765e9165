"""Digest of a program without its layout: equal digests, equal programs.

The digest covers the kind of every node and the text of every token, comments too. Strings and templates count in their written
form, since blanks inside them are content. Grammars of tree-sitter are written for editors and recover from errors: a text with
such an error (ERROR), or with an inserted node, has no digest, nor has Python that Python itself does not parse.

Blanks between two tokens are layout, with three exceptions:

- A line break counts unless the language skips it there. The grammars hide the token of a line break and accept line breaks that
  the language refuses. `LINES` states for each language between which tokens it skips them.
- A blank counts between tokens that have to touch, and in the languages of `BLANKS` between most tokens.
- The line breaks that end a block scalar of YAML are content.

The worker imports this file: standard library and ast_grep_py only.
"""

import ast
import hashlib
import re
import warnings
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from ast_grep_py import SgNode, SgRoot

_AS_WRITTEN = re.compile(
    r"(?<!concatenated_)string|nowdoc|str_|char|regex|scalar|heredoc|text|inline|comment|raw"
    r"|template_(?:expr|int|lit|sub)|quoted_template"
)
_CONTINUATION = re.compile(r"\\\r?\n")


class Lines(NamedTuple):
    """Between which tokens a language skips line breaks. Regular expressions of two tokens with a line feed between them.

    A token is written `KIND ROLE TEXT`. KIND is that of its node. ROLE is `prefix` or `infix` for an operator that an operand follows,
    otherwise `mark` or `word`, and for `)` the word before its bracket. A name or a value is `KIND value -`.
    """

    skipped: str = ""
    once: str = ""
    """For one line break, but not for an empty line."""
    inside: str = ""
    """A bracket inside which every line break is skipped: KIND TEXT."""


def _after(*tokens: str) -> str:
    return rf"\S+ (?:{'|'.join(tokens)})\n.*"


def _before(*tokens: str) -> str:
    return rf".*\n\S+ (?:{'|'.join(tokens)})"


_ANYWHERE = ".*\n.*"
_OPEN, _CLOSE = r"mark [^\w)\]}]*[(\[{,;]", r"\w+ [)\]}]"
_OPERATOR, _CONDITION = r"(?:infix|prefix) .*", r"(?:catch|for|if|switch|when|while) \)"
_BLOCK = r".*\n(?!lambda_literal )\S+ mark \{"
_SCRIPT = (
    r"(?!\S+ word (?:abstract|accessor|as|asserts|async|break|continue|declare|global|infer|interface|is|keyof|module|namespace"
    r"|override|private|protected|public|readonly|return|satisfies|throw|type|unique|yield)\n)"
    r"(?!.*\n\S+ \w+ (?:\+\+|--|=>|!|as|is|satisfies)$)"
) + _ANYWHERE
_FREE = "c cpp csharp css dart html java json lua nix php python rust solidity yaml zig".split()
"""Languages in which a line break is a blank, or in which the tree shows what it means."""
LINES = {
    **dict.fromkeys(_FREE, Lines(_ANYWHERE)),
    **dict.fromkeys(("javascript", "typescript", "tsx"), Lines(_SCRIPT)),
    "bash": Lines(
        "|".join(
            (
                r"(?!function_definition )" + _after(r"mark \$?[({;]", r"\w+ (?:&&|\|\||\|&|;;|&)"),
                _after("word (?:do|elif|else|if|then|until|while)"),
                r"(?!case_item )" + _after(r"infix \|"),
                r"case_statement word in\n.*|(?:case_item|function_definition) \w+ \)\n.*",
                r"(?!function_definition |.*\ncase_item \w+ \))" + _before(r"\w+ [)}]", r"\w+ ;;"),
                _before("word (?:do|done|elif|else|esac|fi|then)"),
            )
        ),
        inside=r"array \(",
    ),
    "elixir": Lines(
        "|".join(
            (
                _after(
                    _OPEN,
                    "(?:infix|prefix) [^%]*",
                    "mark <<",
                    "word (?:after|and|catch|do|else|fn|in|not|or|rescue|when)",
                ),
                _before(_CLOSE, r"infix (?!(?:\+|-|->|:|,)$).*", r"\w+ >>"),
                _before("word (?:after|and|catch|do|else|end|in|or|rescue|when)"),
            )
        )
    ),
    "go": Lines(
        "|".join(
            (
                _after(_OPEN, _OPERATOR, "word (?!(?:break|continue|fallthrough|return)\\n).*"),
                r".*\n(?!literal_value )\S+ \w+ \}|.*\n(?:\w+_declaration|\w+_spec_list) \w+ \)",
            )
        )
    ),
    "hcl": Lines(r"object_start .*\n.*|.*\nobject_end .*", inside=r".*[(\[]"),
    "kotlin": Lines(
        "|".join(
            (
                "(?!identifier )"
                + _after(_OPEN, _OPERATOR, _CONDITION, "word (?!(?:break|continue|import|package|return)\\n).*"),
                _before(_CLOSE, "mark [,;]", r"\w+ (?:\.|\?\.|\?:|&&|\|\||:|->)"),
                _before(r"word (?:as\??|by|catch|else|finally|where|while)"),
                _BLOCK,
            )
        ),
        inside=r".*[(\[]",
    ),
    "ruby": Lines(
        "|".join(
            (
                _after(_OPEN, "infix .*", "prefix [-!~*&]+", r"mark \|"),
                _after("word (?:and|begin|case|do|else|elsif|ensure|if|in|not|or|then|unless|until|when|while)"),
                _before(_CLOSE, r"\w+ &?\.", "word (?:else|elsif|end|ensure|then|when)"),
            )
        )
    ),
    "scala": Lines(
        "|".join(
            (
                _after(_OPEN, "(?:infix|prefix) [.:=@#]|infix (?:=>|<-|<:|>:)"),
                _after("word (?!(?:false|null|return|this|true|type|_)\\n).*"),
                _before(_CLOSE, r"mark [\[,;]", r"\w+ (?:\.|:|=|=>|<-|<:|<%|>:|#)"),
                _before("word (?:catch|derives|do|else|extends|finally|match|then|with|yield)"),
            )
        ),
        once=_after("infix .*", _CONDITION) + "|" + _before(r"mark \{"),
        inside=r".*[(\[]",
    ),
    "swift": Lines(
        "|".join(
            (
                _after(_OPEN, _OPERATOR, "word (?!(?:break|continue|fallthrough|return|throw)\\n).*"),
                _before(_CLOSE, "mark [,;]", r"infix (?!\.).*", r"\w+ \."),
                _before("word (?:as[?!]?|async|catch|else|in|is|rethrows|throws|where|while)"),
                _BLOCK,
            )
        )
    ),
}
"""By the definition of each language. In a language that is not here, every line break between two tokens counts."""
_REDIRECT = r"\w+ (?:&&|\|\|?|\|&|;;|&|<|>>?|<<<|[<>&]+)"
BLANKS = {
    "bash": "|".join(
        (
            _after(r"mark \$?[(;]", _REDIRECT) + r"|function_definition \w+ \)\n.*",
            _before(r"\w+ [);]", _REDIRECT),
        )
    ),
    "css": "|".join(
        (
            _after("mark [({,;]", r"\w+ [}>~]") + r"|declaration \w+ :\n.*",
            _before("mark [{,;]", r"\w+ [)}>~]") + r"|.*\ndeclaration \w+ :",
        )
    ),
    "haskell": _after(_OPEN) + "|" + _before(_CLOSE, "mark [,;]"),
    "html": r"(?!element value -\n)(?!.*\nelement value -$)" + _ANYWHERE,
    "swift": r"(?!prefix_expression prefix |.*\npostfix_expression mark |.*\n\S+ infix \?$)" + _ANYWHERE,
}
"""Between which tokens blanks do not count; in other languages between all but these."""
_TOUCHING = re.compile(r"\S+ prefix .*[$@#'%.]\n.*|\w+_tag prefix </?\n.*|.* !\n.* (?:in|is)|.* <\n.* !")
"""Tokens that mean something else with a blank between them."""


class _Unread(Exception):
    """The text does not parse without errors."""


def digest(text: str, language: str) -> str:
    """32 hexadecimal digits; empty if the text does not parse without errors."""
    if language == "python" and not _is_python(text):
        return ""
    if language != "yaml" and not text.endswith("\n"):  # Elsewhere no line end counts at the end.
        text += "\n"
    hashed = hashlib.blake2b(digest_size=16)
    try:
        for part in _parts(SgRoot(text, language).root(), text, language):
            data = part.encode("utf-8", "surrogatepass")
            hashed.update(len(data).to_bytes(8, "big") + data)
    except _Unread:
        return ""
    return hashed.hexdigest()


def _parts(root: SgNode, text: str, language: str) -> Iterator[str]:
    """Nodes and tokens in order, and what counts between them."""
    tokens = _Tokens(text, language)
    ahead: list[tuple[SgNode, str, str] | str] = [(root, "root", "mark")]
    while ahead:
        item = ahead.pop()
        if isinstance(item, str):
            tokens.leave(item)
            yield "end"
            continue
        node, kind, role = item
        children, reach = node.children(), node.range()
        if node.kind() == "ERROR" or (not children and text and reach.start.index == reach.end.index):
            raise _Unread
        if not children or _AS_WRITTEN.search(node.kind()):
            _check(children)
            yield from tokens.take(node, kind, role, reach.start.index, reach.end.index)
            continue
        yield f"node {node.kind()}{_lopsided(children) if language == 'swift' else ''}"
        ahead.append(node.kind())
        ahead += reversed([(child, node.kind(), one) for child, one in _with_roles(children)])
    yield from tokens.between(len(text))


def _check(nodes: list[SgNode]) -> None:
    """Text that counts in its written form has to parse, too. An empty leaf is no fault there: strings have them."""
    ahead = list(nodes)
    while ahead:
        node = ahead.pop()
        if node.kind() == "ERROR":
            raise _Unread
        ahead += node.children()


def _with_roles(children: list[SgNode]) -> Iterator[tuple[SgNode, str]]:
    places = [at for at, child in enumerate(children) if "comment" not in child.kind()]
    for at, child in enumerate(children):
        is_last = not places or at >= places[-1]
        yield child, "mark" if is_last else "prefix" if at <= places[0] else "infix"


class _Tokens:
    """The tokens of a text in order, and what counts between them."""

    def __init__(self, text: str, language: str):
        self._text, self._language = text, language
        self._lines, self._blanks = LINES.get(language, Lines()), BLANKS.get(language, _ANYWHERE)
        self._at, self._blank = 0, ""
        """The end of what was taken, and the blanks after the last token that is no comment."""
        self._last = ""
        self._ended = ""
        """`heredoc`, or the header of a block scalar, if the last token is one."""
        self._directive = False
        """Whether the last token is on a line of the preprocessor."""
        self._brackets = [("", "")]
        """Those that are open, each with the word before it."""

    def take(self, node: SgNode, kind: str, role: str, start: int, end: int) -> Iterator[str]:
        """A token and what counts before it."""
        written = self._text[start:end]
        yield from self.between(start)
        self._at = max(self._at, end)
        if _CONTINUATION.fullmatch(written) or (not written.strip() and "\n" in written):
            self._blank += _CONTINUATION.sub(" ", written)
            return
        yield from (node.kind(), written)
        if "comment" in node.kind():
            self._blank += "\n" * written.count("\n")
            return
        inside = self._brackets[-1][0]
        token = self._token(kind, role, written.strip(), node.is_named() and node.kind() != written)
        if self._last and self._blank:
            yield from self._marks(f"{self._last}\n{token}", inside, written)
        self._directive = self._begins_directive(written) or (self._directive and "\n" not in self._blank)
        self._last, self._blank = token, ""
        if node.kind() == "block_scalar":
            self._ended = written.split("\n")[0]
        elif node.kind().startswith("heredoc"):
            self._ended = "heredoc"

    def leave(self, kind: str) -> None:
        """The end of a node: an annotation stands before what it is about, as a word does."""
        if kind in ("annotation", "attribute"):
            self._last = f"{kind} word @"

    def between(self, start: int) -> Iterator[str]:
        """What counts of the text up to the next token or comment, whatever it is."""
        gap = self._text[self._at : start].replace("\r\n", "\n")
        blank = _CONTINUATION.sub("", gap)
        blanks = " \n" if self._language == "yaml" else " \t\n\f"  # Many readers of YAML refuse tabs.
        if blank.strip(blanks) or (gap and not blank) or (gap and not self._at and self._language == "php"):
            yield from ("between", gap)
        *lines, _ = gap.split("\n")
        if self._ended == "heredoc":
            yield from ("ends", gap.split("\n")[0])
        elif self._ended:
            yield from ("ends", *(lines if "+" in self._ended else filter(None, lines)))
            yield "ended" if lines and "-" not in self._ended else ""
        self._ended = ""
        self._blank += blank

    def _token(self, kind: str, role: str, text: str, named: bool) -> str:
        """A token as `Lines` has it."""
        if not named and re.fullmatch(r"[^\W\d]\w*[?!]?", text):
            return f"{kind} word {text}"
        if not text or (named and re.search(r"[\w\"'`]", text)):
            return f"{kind} value -"
        if text[0] in ")]}":
            word = self._brackets.pop()[1] if len(self._brackets) > 1 else ""
            role = word if word and text == ")" else "mark"
        elif text[-1] in "([{":
            _, before, word = self._last.split(" ", 2) if self._last else ("", "", "")
            self._brackets.append((f"{kind} {text[-1]}", word if before == "word" else ""))
            role = "mark"
        elif text in (",", ";"):
            role = "mark"
        return f"{kind} {role} {text}"

    def _marks(self, pair: str, inside: str, written: str) -> Iterator[str]:
        """The blank and the line break between two tokens, if they count."""
        lines = self._blank.count("\n")
        if _TOUCHING.fullmatch(pair) or not re.fullmatch(self._blanks, pair):
            yield "blank"
        directive = self._directive or self._begins_directive(written)
        if lines and (directive or not self._is_skipped(pair, inside, lines)):
            yield "break"
            if self._language == "haskell":
                yield self._blank.rpartition("\n")[2]

    def _begins_directive(self, written: str) -> bool:
        return written.startswith("#") and self._language in ("c", "cpp", "csharp", "swift")

    def _is_skipped(self, pair: str, inside: str, lines: int) -> bool:
        rules = self._lines
        once = lines == 1 and rules.once and re.fullmatch(rules.once, pair)
        return bool(once or (inside and re.fullmatch(rules.inside, inside)) or re.fullmatch(rules.skipped, pair))


def _lopsided(children: list[SgNode]) -> str:
    """Swift tells a prefix from a binary operator by the blanks on its sides: whether they are on one side alone."""
    reaches = [child.range() for child in children]
    gaps = [one.end.index < other.start.index for one, other in pairwise(reaches)]
    if len(gaps) == 1 and not children[1].is_named():
        return " apart" if gaps[0] else ""
    if len(gaps) == 2 and not children[1].is_named() and not re.match(r"[\w({[:,]|\.$", children[1].text()):
        return " lopsided" if gaps[0] != gaps[1] else ""
    return ""


def _is_python(text: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
