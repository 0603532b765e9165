"""Parsing of completions: thoughts, fenced blocks and unfenced code, for all domains.

Every reader begins with `without_thoughts`, then looks at `fenced_blocks`, then at the text outside them. Nothing here
runs or repairs a program. If a completion is cut off inside its code, only lines outside any function are dropped.
"""

import ast
import builtins
import re
import symtable
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate

from rlvr_exp.tasks.base import Candidate
from rlvr_exp.tasks.python_syntax import bound_names, syntax_fault, tree

CODE_START = re.compile(r"(?:def|class|import)\s+\w|async\s+def\s+\w|from\s+[\w.]+\s+import\b|@\w|[A-Za-z_]\w*\s*=[^=]")
_TAG = re.compile(
    r"(?:<\|?|◁|\[(?=/?(?-i:[A-Z])))(?P<end>/|end_(?:of_)?)?(?:(?:begin|start)_(?:of_)?)?"
    r"(?P<name>(?:\w+:)?(?:think(?:ing)?|thoughts?|reason(?:ing)?|reflection|scratchpad))(?:\|?>|▷|\])"
    r"|(?:<\|end\|>\s*+)?(?:<\|start\|>assistant)?<\|channel\|>(?P<channel>\w++)[^<]*+(?:<\|constrain\|>\w*\s*)?<\|message\|>|<\|end\|>",
    re.IGNORECASE,
)
"""A tag of thoughts, such as `<think>`, `[/THINK]` and `<|begin_of_thought|>`, or the head or end of a message in a channel."""
_SOLUTION = re.compile(
    r"\s*<(\|?)(?:begin_of_|start_)?(answer|solution|response)\1>(.*?)(?:<(?:/|\|end_(?:of_)?)\2\1>\s*)?",
    re.DOTALL | re.IGNORECASE,
)
"""Tags around the answer, after the thoughts."""
_END = "<|end|>"
_CHANNEL = frozenset(("<|start|>", "<|channel|>", "<|constrain|>", "<|message|>", _END))
_MESSAGE_END = re.compile(r"<\|(?:end|return|call)\|>\s*\Z")
_QUOTE = re.compile(r"^ {0,3}>(?!>>|=) ?", re.MULTILINE)
"""The mark of a block quote; `>>>` is a prompt of Python."""
_QUOTED = re.compile(r"""(?<![\w\\])[rRbBfFuU]{0,2}(["'`])(?:(?!\1)[^\\]|\\.)*+\1""")
_LIST = r"[ \t]*(?:(?:[-*+]|\d{1,3}[.)])[ \t]+)?"
_MARK = re.compile(rf"({_LIST})(`{{3,}}|~{{3,}})(.*)", re.DOTALL)
_ONE_LINE = re.compile(rf"(?:{_LIST}|[^`]*:[ \t]*)(`{{3,}}|~{{3,}})(?![`~])((?:(?!\1).)+)\1[.,;]?[ \t]*")
"""A fence that is opened and closed in a line, alone or after words that end in a colon: other code in words is no block."""
_LANGUAGE = re.compile(r"[A-Za-z][\w+#-]*[ \t]*")
_LABEL = re.compile(r"\A\s*python3?[ \t]*\n(?=.*\S)")
"""The language without its fence."""
_DEEPER = 3
"""A fence indented further than this beyond the opening fence is part of the block, as in Markdown: the docstring of a function shows
an example."""
_WORDS = 4
"""Words after a fence that are prose and no language."""
_MARKDOWN = ("markdown", "md")
_ASIDE = frozenset("bash sh shell zsh console terminal powershell cmd text txt plaintext output stdout".split())
"""Languages of blocks beside an answer: how to run it, and its output."""
_KNOWN = _ASIDE | {
    *_MARKDOWN,
    *"python python3 py dafny json yaml yml c++ cpp java javascript js typescript ts rust sql".split(),
}
"""Languages that are told from code on the line of a fence."""
_STARTS = re.compile(r"(?:def|async\s+def|class|import|method|lemma|function)\s+\w|from\s+[\w.]+\s+import\b|@\w")
_OPENS = re.compile(r"(?!\{(?:[\w.,#=\s-]|=\"[^\"]*\")*\}\s*$)[\w.]*[({\[]")
"""Code after a language on the line of a fence: it begins with a call or a bracket, but for attributes such as `{.python}`."""
_MOST_PROGRAMS = 8
"""Limit of programs that are read between words of an unfenced answer."""
_MOST_ENDS = 4
"""Limit of ends of thoughts that are tried as the start of a program, since its literals may contain tags."""
_MOST_CUTS = 50
"""Limit of lines at which a tail of words is cut: each costs a parse."""


# Text.


def unified(text: str) -> str:
    """The text with one kind of line end."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def dedent(block: str) -> str:
    """Undo an indentation that all lines share, as in a fence within a list."""
    lines = block.split("\n")
    filled = [line for line in lines if line.strip()]
    margin = min((len(line) - len(line.lstrip(" ")) for line in filled), default=0)
    return "\n".join(line[margin:] for line in lines)


def fenced(program: str, language: str) -> str:
    """A program as a completion that is one code block."""
    return f"```{language}\n{program.strip(chr(10))}\n```"


# Thoughts.


def without_thoughts(completion: str) -> str:
    """The answer of a completion: its text with plain line ends, without a byte-order mark and without thoughts.

    Thoughts reach from an opening tag, such as `<think>`, to its closing tag, or to the end if they are never closed. A closing tag
    without an opening ends thoughts that the chat template has opened: all text before it is thought. The words may be part of an
    answer: tags in quotes, in a fenced block or in a valid Python program are no thoughts.
    """
    text = unified(completion).removeprefix("\ufeff")
    if _TAG.search(text) is None or _holds_tags(text):
        return text
    kept = _apart(text)
    if kept == text:
        return text
    kept = _MESSAGE_END.sub("", kept)
    if solution := _SOLUTION.fullmatch(kept):
        kept = solution[3]
    filled = re.sub(r"\A(?:[ \t]*\n)+", "", kept).rstrip(" \t\n")
    return filled + "\n" * (filled != "" and kept.endswith("\n"))


def opening_of(prompt: str) -> str:
    """The tag with which a chat template opens thoughts at the end of a prompt, in a line; empty: it opens none."""
    last = next(reversed(list(_TAG.finditer(prompt.rstrip()))), None)
    return f"{last[0]}\n" if last and last.end() == len(prompt.rstrip()) and not _named(last)[1] else ""


def closing_of(opening: str) -> str:
    """The tag that ends the thoughts of an opening one."""
    tag = opening.strip()
    if "<|channel|>" in tag:
        return "<|end|><|start|>assistant<|channel|>final<|message|>"
    closing = tag.replace("begin", "end").replace("START", "END")
    return closing if closing != tag else f"{tag[0]}/{tag[1:]}"


def tags_among(tokens: Collection[str]) -> set[str]:
    """Those of a tokenizer's special tokens that are tags of thoughts, or parts of them."""
    tags = {token for token in tokens if token != _END and _TAG.fullmatch(token)}
    return tags | _CHANNEL.intersection(tokens) if "<|channel|>" in tokens else tags


def _apart(text: str) -> str:
    kept: list[str] = []
    begin = offset = words = ends = 0  # `words`: opening tags since `begin` that are words of the answer.
    inside = ""  # The name of the tag that has opened thoughts.
    others: list[str] = []  # Names of the tags opened inside them.
    fence: _Mark | None = None
    for number, original in enumerate(text.split("\n")):
        line = _QUOTE.sub(lambda mark: " " * len(mark[0]), original)
        tags = _tags(line) if _TAG.search(line) else []
        for tag in tags:
            before, (name, closes) = line[: tag.start()], _named(tag)
            if tag[0] == _END and inside != name:
                continue
            if fence and not inside and (mark := _mark(before, number)) and mark.closes(fence):
                fence = None
            if inside and (not closes or name in others):
                if closes:
                    others.remove(name)
                elif name != inside:
                    others.append(name)
            elif inside:
                inside, others, begin, words, fence = "", [], offset + tag.end(), 0, None
                ends += 1
                if ends <= _MOST_ENDS and _holds_tags(text[begin:]):
                    return "".join([*kept, text[begin:]])
            elif not closes:
                if fence is None and _opens_thoughts(before):
                    kept.append(text[begin : offset + tag.start()])
                    inside = name
                else:
                    words += 1
            elif _ends_thoughts(before, line[tag.end() :], fence is not None, words):
                kept, begin, words, fence = [], offset + tag.end(), 0, None
            else:
                words = max(0, words - 1)
        if not inside:
            rest = line[tags[-1].end() :] if tags and offset + tags[-1].end() == begin else line
            mark = _mark(rest, number)
            if fence is None:
                fence = mark
            elif mark and mark.closes(fence):
                fence = None
        offset += len(line) + 1
    return "".join([*kept, "" if inside else text[begin:]])


def _holds_tags(text: str) -> bool:
    """Whether a text is valid Python whose tags are in literals and comments; `[THINK]` alone is a list."""
    return syntax_fault(_TAG.sub("<think>", text)) is None


def _named(tag: re.Match[str]) -> tuple[str, bool]:
    """The name of a tag, and whether it closes."""
    if tag["name"]:
        return tag["name"].lower(), bool(tag["end"])
    return "channel", tag["channel"] in (None, "final")


def _tags(line: str) -> list[re.Match[str]]:
    """The tags of a line outside quotes."""
    spans = [match.span() for match in _QUOTED.finditer(line)]
    found, place = [], 0
    for tag in _TAG.finditer(line):
        while place < len(spans) and spans[place][1] < tag.end():
            place += 1
        if place == len(spans) or spans[place][0] > tag.start():
            found.append(tag)
    return found


def _opens_thoughts(before: str) -> bool:
    """By the line up to the tag: thoughts begin a line, or follow a sentence. A docstring of unfenced code is indented."""
    return len(before) - len(before.lstrip()) <= _DEEPER and (not before.strip() or before.rstrip()[-1] in ".!?>*")


def _ends_thoughts(before: str, after: str, fenced_in: bool, words: int) -> bool:
    """Whether a closing tag outside thoughts ends those of the template: it begins or ends a line, or the prose around it goes on."""
    begins = not before.strip() and len(before) <= _DEEPER
    if fenced_in or words:
        return begins and not (fenced_in and words)
    return begins or not before.strip() or not after.strip() or not before[0].isspace()


# Fences.


@dataclass(frozen=True)
class Block:
    """A fenced block of an answer."""

    text: str
    """Its lines, without the indentation of the block."""
    tag: str
    """The language after the opening fence, in lower case; empty: none."""
    start: int
    """Index of its first line in the answer."""
    end: int
    """Index of the closing fence, or of the line after the block."""
    closed: bool

    @property
    def in_one_line(self) -> bool:
        return self.end < self.start


@dataclass(frozen=True)
class _Mark:
    """A line with a fence."""

    line: int
    fence: str
    indent: int
    info: str
    code: str = ""
    """The start of the block, on the line of the fence."""
    inline: bool = False
    """Words stand before it: `The code is: ```python`. It only opens."""

    def closes(self, opening: "_Mark") -> bool:
        return not self.info and self.reaches(opening)

    def reaches(self, opening: "_Mark") -> bool:
        """Whether it is a fence of the same level and no line of the opening's block."""
        same = self.fence[0] == opening.fence[0] and len(self.fence) >= len(opening.fence)
        return same and self.indent <= opening.indent + _DEEPER and not self.inline

    @property
    def tag(self) -> str:
        match = re.match(r"[^\w]*([\w+#-]*)", self.info.removesuffix(self.code))
        return match[1].lower() if match else ""


def fenced_blocks(text: str, cut: Callable[[str], bool] | None = None, deeper: int = 2) -> list[Block]:
    """The blocks with content in a text without thoughts, in order.

    A fence is three or more backticks or tildes, in a list and a block quote too. The closing fence is at least as
    long. A fence with a language only opens. The last block may lack its closing fence. A closing fence without an
    opening one makes no block. Blocks in one line come before all others, since the others are rather the answer.

    Args:
        cut: whether a text ends inside a literal, so that the next fence is a part of it. The work is bounded: a text
            is read at most some ten times.
        deeper: levels of blocks inside blocks of Markdown.
    """
    lines = unquoted(text).split("\n")
    marks = [mark for number, line in enumerate(lines) if (mark := _mark(line, number))]
    # Of each mark how many fences without a language are left beyond those that close a block with one.
    balance = list(accumulate(-1 if mark.info else 1 for mark in reversed(marks)))[::-1]
    left = 10 * len(text) + 50_000
    found: list[Block] = []
    free = set(range(len(lines)))
    at = 0
    while at < len(marks):
        opening, at = marks[at], at + 1
        if not opening.info and balance[at - 1] % 2 and _is_lone(lines, opening):
            continue
        ends: list[tuple[int, int, bool]] = []  # Possible ends: line, next mark, whether a fence closes the block.
        for place in range(at, len(marks)):
            mark = marks[place]
            if not mark.reaches(opening):
                continue
            ends.append((mark.line, place + 1, True) if not mark.info else (mark.line, place, False))
            content = _content(lines, opening, mark.line, True) if cut else ""
            left -= len(content)
            if cut is None or left < 0 or not cut(content):
                break
        else:
            if not ends or not (cut and cut(_content(lines, opening, len(lines), False))):
                ends.append((len(lines), len(marks), False))
            else:
                ends = ends[:1]
        end, following, closed = ends[-1]
        if not opening.info and not closed and end < len(lines):
            continue  # A fence with a language follows: this one has closed a block without an opening.
        at = following
        free.difference_update(range(opening.line, end + 1))
        content = _content(lines, opening, end, closed)
        inner = _inner(content, opening, cut, deeper)
        start = opening.line + 1
        if inner:
            found += [replace(one, start=one.start + start, end=one.end + start) for one in inner]
        elif content.strip():
            found.append(Block(content, opening.tag, start, end, closed))
    return [*(block for number in sorted(free) if (block := _one_line(lines[number], number))), *found]


def unquoted(text: str, deeper: int = 2) -> str:
    """A text without the marks of its block quotes. Fenced blocks, valid Python and the number of lines stay.

    A quote begins the text, or follows an empty line or a sentence. It ends a block that it has begun.

    Args:
        deeper: levels of quotes inside quotes.
    """
    if not deeper or not _QUOTE.search(text) or syntax_fault(text) is None:
        return text
    lines = text.split("\n")
    fence: _Mark | None = None
    quoted = fence_quoted = False
    for number, line in enumerate(lines):
        before = lines[number - 1].strip() if number else ""
        mark_of = _QUOTE.match(line) if fence is None or fence_quoted else None
        if mark_of and (quoted or not before or before[-1] in ":.!?"):
            lines[number], quoted = line[mark_of.end() :], True
        elif line.strip():
            if fence and fence_quoted and not before:
                lines[number - 1], fence = fence.fence, None
            quoted = False
        mark = _mark(lines[number], number)
        if fence is None:
            fence, fence_quoted = mark, quoted
        elif mark and mark.closes(fence):
            fence = None
    return unquoted("\n".join(lines), deeper - 1)


def _mark(line: str, number: int) -> _Mark | None:
    if "```" not in line and "~~~" not in line:
        return None
    if match := _MARK.match(line):
        indent, fence, info = match[1].expandtabs(4), match[2], match[3].strip()
        if fence[0] in info:
            return None
        code = _code_in(info)
        return _Mark(number, fence, len(indent), info if code or len(info.split()) < _WORDS else "", code)
    before, fence, info = line.partition("```")
    info = info.lstrip("`").strip()
    if fence and before.strip() and "`" not in before + info and (_LANGUAGE.fullmatch(info) or _code_in(info)):
        return _Mark(number, fence, 0, info, _code_in(info), inline=True)
    return None


def _one_line(line: str, number: int) -> Block | None:
    match = _ONE_LINE.fullmatch(line) if "```" in line or "~~~" in line else None
    if match is None:
        return None
    language, code = _language(match[2].strip())
    return Block(f"{code}\n", language, number + 1, number, True) if code else None


def _language(info: str) -> tuple[str, str]:
    """The language on the line of a fence, if code follows it, and the rest."""
    language, _, code = info.partition(" ")
    known = language.lower() in _KNOWN and code.lstrip()[:1] not in ("", *"=+-*/%.,:;)]}<>|&")
    return (language.lower(), code.strip()) if known else ("", info)


def _code_in(info: str) -> str:
    """The code that begins on the line of an opening fence."""
    language, code = _language(info)
    return code if _STARTS.match(code) or (language and _OPENS.match(code)) else ""


def _is_lone(lines: Sequence[str], mark: _Mark) -> bool:
    """Whether a fence closes the text before it: right after a line of it, with nothing right after."""
    before = lines[mark.line - 1].strip() if mark.line else ""
    after = lines[mark.line + 1].strip() if mark.line + 1 < len(lines) else ""
    return bool(before) and not before.endswith(":") and not after


def _content(lines: Sequence[str], opening: _Mark, end: int, closed: bool) -> str:
    rows = list(lines[opening.line + 1 : end])
    if not closed:  # The closing fence may stand at the end of the last line of code.
        run = opening.fence
        glued = (number for number, row in enumerate(rows) if row.rstrip().endswith(run) and row.count(run) == 1)
        last = next((number for number in glued if rows[number].strip(f" \t{run[0]}")), None)
        if last is not None:
            rows = [*rows[:last], rows[last].rstrip().rstrip(run[0])]
        while rows and not rows[-1].strip():
            rows.pop()
    rows = [row[min(opening.indent, len(row) - len(row.lstrip(" \t"))) :] for row in rows]
    return dedent("\n".join([opening.code, *rows] if opening.code else rows)) + "\n"


def _inner(content: str, opening: _Mark, cut: Callable[[str], bool] | None, deeper: int) -> list[Block]:
    """The blocks inside a block of Markdown, or inside a longer fence without a language that begins with one."""
    first = _mark(content.lstrip("\n").split("\n", 1)[0], 0)
    if deeper and (opening.tag in _MARKDOWN or (not opening.info and first is not None)):
        return fenced_blocks(content, cut, deeper - 1)
    return []


def last_block(text: str, tags: Collection[str] = ()) -> Block | None:
    """The block that is the answer, of any language: the last with a tag of `tags`, else the last that shows no command or output."""
    found = fenced_blocks(text)
    tagged = [block for block in found if block.tag in tags]
    own = [block for block in found if block.tag not in _ASIDE]
    return next(iter((tagged or own or found)[::-1]), None)


def answer_text(text: str, tags: Collection[str] = ()) -> str:
    """The answer in a text without thoughts, in a language that cannot be told from chatter: the block of `last_block`, else the
    complete text before a closing fence."""
    if block := last_block(text, tags):
        return block.text.rstrip("\n")
    quoted = all(_QUOTE.match(line) for line in text.split("\n") if line.strip())
    return before_lone_fence(unquoted(text) if quoted else text)


def before_lone_fence(text: str) -> str:
    """A text without blocks up to a closing fence without an opening one."""
    lines = text.split("\n")
    place = next(
        (number for number, line in enumerate(lines) if (mark := _mark(line, number)) and not mark.inline), None
    )
    return text if place is None or not "".join(lines[:place]).strip() else "\n".join(lines[:place]) + "\n"


def block_closes(text: str, accepts: Callable[[str], bool], python: bool = True) -> bool:
    """Whether a completion so far ends with the fence that closes a block that is accepted; nothing ends inside thoughts, nor
    with a command or an output.

    Args:
        python: the block is a program in Python, whose literals may hold fences.
    """
    if not text.rstrip().endswith(("```", "~~~")):
        return False
    answer = without_thoughts(text).rstrip(" \t\n")
    block = next(iter(fenced_blocks(answer, _ends_in_string if python else None)[::-1]), None)
    if block is None or block.in_one_line or not block.closed or block.end != answer.count("\n") or block.tag in _ASIDE:
        return False
    return accepts(block.text)


# Python.


def whole_program(completion: str, wanted: str = "") -> Candidate:
    """The complete program in a completion. Code is never cut, not even calls at its end.

    An answer that is Python is taken unchanged. Else the reader takes the last fenced block that defines the wanted
    name, else unfenced code that does, then the last block that defines a function or class, then the last block of
    Python. A block is preceded by the imports and definitions of earlier blocks that it needs.

    Args:
        wanted: name of the requested function or class, or of its method (`Class.method`), if known.
    """
    text = dedent(_LABEL.sub("", unquoted(without_thoughts(completion)), count=1))
    if not text.strip():
        return Candidate(None, "no program in the answer")
    if syntax_fault(text) is None:
        return Candidate(text)
    return _PythonAnswer(text, wanted.partition(".")[0]).program()


def defines(block: str, names: Collection[str] = ("",)) -> bool:
    """Whether a text is Python that defines a function or class of one of these names; an empty name stands for any."""
    return syntax_fault(block) is None and _defines(tree(block), names)


def cut_tail(lines: list[str]) -> tuple[list[str], tuple[int, str] | None]:
    """Drop the tail from an unindented line that is no Python, repeatedly: words after the code."""
    fault = syntax_fault("\n".join(lines))
    for _ in range(_MOST_CUTS):
        if fault is None or not 1 < fault[0] <= len(lines) or _own(lines[fault[0] - 1]):
            break
        lines = lines[: fault[0] - 1]
        fault = syntax_fault("\n".join(lines))
    return lines, fault


def _own(line: str) -> bool:
    """Whether a faulty line belongs to the program and not to the words after it."""
    return line[:1] in (" ", "\t") or CODE_START.match(line) is not None


def _ends_in_string(text: str) -> bool:
    fault = syntax_fault(text) if '"""' in text or "'''" in text else None
    return fault is not None and fault[1].startswith("unterminated triple-quoted")


def _definitions_in(module: ast.Module) -> list[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    return [node for node in module.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))]


def _defines(module: ast.Module, names: Collection[str] = ("",)) -> bool:
    """Whether it has a function or a class of one of these names, or gives one of them to a value: `double = lambda x: 2 * x`."""
    defined = {node.name for node in _definitions_in(module)}
    assigned = bound_names(node for node in module.body if isinstance(node, (ast.Assign, ast.AnnAssign)))
    return bool(defined) if "" in names else not (defined | assigned.keys()).isdisjoint(names)


def _is_stub(module: ast.Module, name: str) -> bool:
    """Whether the definitions of a program have no body, as a signature that is repeated after the program."""
    defined = [node for node in _definitions_in(module) if name in ("", node.name)]
    return bool(defined) and all(_is_empty(part) for node in defined for part in node.body)


def _is_empty(node: ast.stmt) -> bool:
    return isinstance(node, ast.Pass) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))


def _are_tests(module: ast.Module) -> bool:
    """Whether all definitions of a program are tests."""
    defined = _definitions_in(module)
    return bool(defined) and all(
        node.name.startswith("test_")
        or (isinstance(node, ast.ClassDef) and any("TestCase" in ast.dump(base) for base in node.bases))
        for node in defined
    )


@dataclass(frozen=True)
class _Code:
    """A part of an answer that is Python."""

    text: str
    line: int
    """Index of its first line in the answer."""
    aside: bool = False
    """Its language is another."""
    mended: bool = False
    """Words after it were dropped."""

    @cached_property
    def module(self) -> ast.Module:
        return tree(self.text)

    @property
    def acts(self) -> bool:
        """Whether it is more than a value, as an output is."""
        plain = (ast.Constant, ast.Name, ast.Tuple, ast.List, ast.Dict, ast.UnaryOp, ast.BinOp)
        return any(not isinstance(node, ast.Expr) or not isinstance(node.value, plain) for node in self.module.body)


class _PythonAnswer:
    """An answer that as a whole is not Python.

    Args:
        text: the answer without thoughts.
        name: the wanted name; empty if unknown.
    """

    def __init__(self, text: str, name: str):
        self._text, self._name = text, name
        self._blocks = fenced_blocks(text, _ends_in_string)
        self._fault = ""

    def program(self) -> Candidate:
        blocks = [code for block in self._blocks if (code := self._code_of(block))]
        outside = self._outside()
        found = self._chosen(blocks, outside)
        if found is None:
            return Candidate(None, self._fault or "no program in the answer")
        if _are_tests(found.module) and not (self._name and _defines(found.module, [self._name])):
            return Candidate(found.text)
        before = sorted((code for code in (*blocks, *outside) if code.line < found.line), key=lambda code: code.line)
        return Candidate(_with_needed(found, before))

    def _chosen(self, blocks: Sequence[_Code], outside: Sequence[_Code]) -> _Code | None:
        whole = [code for code in blocks if not code.mended]
        groups = [*([whole, blocks, outside] if self._name else []), whole, blocks, outside]
        names = [*[self._name] * (3 if self._name else 0), "", "", ""]
        for codes, name in zip(groups, names, strict=True):
            if named := [code for code in codes if _defines(code.module, [name])]:
                return ([code for code in named if not _is_stub(code.module, name)] or named)[-1]
        own = [code for code in whole if code.acts and not code.aside]
        acting = own[-1:] or [code for code in outside if code.acts] or whole[-1:] or outside
        return acting[0] if acting else None

    def _code_of(self, block: Block) -> _Code | None:
        if syntax_fault(block.text) is None:
            return _Code(block.text, block.start, block.tag in _ASIDE)
        return self._first_code(block.text.split("\n"), block.start)

    def _outside(self) -> list[_Code]:
        """The programs between the blocks, each from a first line of code on to the next line of words."""
        lines = self._text.split("\n")
        for block in self._blocks:
            if block.in_one_line:
                continue
            lines[block.start - 1 : block.end + block.closed] = [""] * (block.end + block.closed - block.start + 1)
        found: list[_Code] = []
        at = 0
        while len(found) < _MOST_PROGRAMS and any(line.strip() for line in lines[at:]):
            code = self._first_code(lines[at:], at)
            if code is None:
                break
            found.append(code)
            at = code.line + code.text.count("\n")
        return found

    def _first_code(self, lines: list[str], offset: int) -> _Code | None:
        """From the first line of code on, or failing that (chatter can look like code) from the definition on."""
        starts = [number for number, line in enumerate(lines) if CODE_START.match(line)]
        defining = re.compile(rf"(?:async\s+)?(?:def|class)\s+{re.escape(self._name) if self._name else ''}")
        named = [number for number in starts if defining.match(lines[number])]
        for start in dict.fromkeys([*starts[:1], *named[:1]] or [0]):
            kept, fault = cut_tail(lines[start:])
            if fault is None and any(line.strip() for line in kept):
                return _Code("\n".join(kept).rstrip("\n") + "\n", offset + start, mended=True)
            if fault is not None:
                self._fault = (
                    self._fault if self._fault and not starts else f"line {offset + start + fault[0]}: {fault[1]}"
                )
        return None


def suite_blocks(text: str) -> str:
    """The test file in the fenced blocks of a text without thoughts: all blocks with tests, after the code of other
    blocks that they need. Empty if there are no blocks."""
    found = fenced_blocks(text, _ends_in_string)
    tests = [block for block in found if "def test" in block.text or "TestCase" in block.text]
    main = "\n".join(block.text for block in tests or found)
    if syntax_fault(main) is not None:
        return main
    others = [
        _Code(block.text, block.start) for block in found if block not in tests and syntax_fault(block.text) is None
    ]
    return _with_needed(_Code(main, len(text)), others) if tests else main


# What a block needs of earlier ones.


@dataclass(frozen=True)
class _Definition:
    """A statement of an earlier block that binds names."""

    place: int
    """In the order of the answer."""
    code: _Code
    node: ast.stmt
    binds: frozenset[str]

    @cached_property
    def text(self) -> str:
        first = min([self.node.lineno, *(mark.lineno for mark in getattr(self.node, "decorator_list", ()))])
        return "\n".join(self.code.text.split("\n")[first - 1 : self.node.end_lineno])

    @property
    def runs_at_once(self) -> bool:
        """Whether the names that it reads must exist before it."""
        return not isinstance(self.node, (ast.FunctionDef, ast.AsyncFunctionDef))


def _with_needed(main: _Code, earlier: Sequence[_Code]) -> str:
    """The program after the imports and definitions of earlier blocks that it needs, in the order of the answer.

    It needs the names that it reads and does not bind. So calls, tests and examples of earlier blocks are left out,
    since they would run before the program, and so are earlier drafts of its functions.
    """
    needed, own = _names(main.text)
    fixtures = {node.arg for node in ast.walk(main.module) if isinstance(node, ast.arg)} - own
    known = [one for one in _definitions(earlier) if not (one.runs_at_once and _names(one.text)[0] & own)]
    taken: dict[int, _Definition] = {}
    of_fixtures = {name for one in known if "fixture" in one.text.partition("def ")[0] for name in one.binds}
    wanted = [(name, len(known)) for name in sorted(needed | (fixtures & of_fixtures))]
    asked = set(wanted)
    while wanted:
        name, place = wanted.pop()
        found = [one for one in known if name in one.binds and (one.place < place or place == len(known))]
        found = found or [one for one in known if name in one.binds]
        if found and found[-1].place not in taken:
            last = taken[found[-1].place] = found[-1]
            more = {(free, last.place) for free in _names(last.text)[0] - own} - asked
            asked |= more
            wanted += sorted(more)
    if not taken:
        return main.text
    parts = [_taken_of(code, [one for _, one in sorted(taken.items()) if one.code is code]) for code in earlier]
    whole = "\n".join([*filter(None, parts), main.text])
    whole = whole if "__future__" not in whole else _futures_first(whole)
    return whole if syntax_fault(whole) is None else main.text


def _definitions(codes: Sequence[_Code]) -> list[_Definition]:
    """Imports, functions, classes and variables at the top level; also those in a `try` or an `if`, but for a program's own run."""
    kinds = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Assign, ast.AnnAssign)
    found: list[_Definition] = []
    for code in codes:
        for node in code.module.body:
            whole = isinstance(node, (ast.Try, ast.If)) and "__name__" not in ast.dump(node)
            binds = set(bound_names([node])) if whole or isinstance(node, kinds) else set()
            if isinstance(node, (ast.Assign, ast.AnnAssign)):  # An example may have called its list `list`.
                binds -= set(dir(builtins))
            if binds:
                found.append(_Definition(len(found), code, node, frozenset(binds)))
    return found


def _names(source: str) -> tuple[frozenset[str], frozenset[str]]:
    """The global names that a program reads and does not bind, and those that it binds."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = symtable.symtable(source, "answer", "exec")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset(), frozenset()
    bound = {one.get_name() for one in module.get_symbols() if one.is_assigned() or one.is_imported()}
    read = {
        one.get_name()
        for table in _tables(module)
        for one in table.get_symbols()
        if one.is_referenced() and one.is_global()
    }
    return frozenset(read - bound), frozenset(bound)


def _tables(module: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    stack = [module]
    while stack:
        table = stack.pop()
        stack += table.get_children()
        yield table


def _taken_of(code: _Code, taken: Sequence[_Definition]) -> str:
    """The block as it is written if all of it is taken."""
    if not taken:
        return ""
    if len(taken) == len(code.module.body):
        return code.text
    futures = [node for node in code.module.body if _is_future(node)]
    parts = [*(ast.unparse(node) for node in futures if all(node is not one.node for one in taken))]
    return "\n".join([*parts, *(one.text for one in taken)]) + "\n"


def _is_future(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


def _futures_first(text: str) -> str:
    """Imports of `__future__` have to begin a program."""
    lines, futures = text.split("\n"), list[str]()
    try:
        body = tree(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return text
    for node in body:
        if _is_future(node) and node.end_lineno:
            futures.append(ast.unparse(node))
            lines[node.lineno - 1 : node.end_lineno] = [""] * (node.end_lineno - node.lineno + 1)
    return "\n".join([*dict.fromkeys(futures), *lines])


def extract(completion: str, entry_point: str) -> Candidate:
    """The program that defines `entry_point` at top level, or the fault with its line in the answer."""
    found = whole_program(completion, entry_point)
    if found.text is None:
        return found if completion.strip() else _without(entry_point)
    lines = found.text.split("\n")
    first = next((number for number, line in enumerate(lines) if CODE_START.match(line)), 0)
    kept = lines[first:] if syntax_fault("\n".join(lines[first:])) is None else lines
    body = tree("\n".join(kept)).body
    if not any(isinstance(node, ast.FunctionDef) and node.name == entry_point for node in body):
        return _without(entry_point)
    # Loose words after the program, such as `Done` or a call of it, bind nothing.
    last = [node for node in body if not isinstance(node, ast.Expr)][-1]
    return Candidate("\n".join(kept[: last.end_lineno]) + "\n")


def _without(entry_point: str) -> Candidate:
    return Candidate(None, f"no function {entry_point} at top level")
