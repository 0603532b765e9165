"""The wording of Dafny prompts, for both roles and in both styles, and the body inside a completion.

`bare` is for small models trained here; the first token is the role: `W` for a body, `A` for a body's annotations. Then
the text around the method, its header and specification, for `A` also its code, and `P`. An answer is the body alone,
from its opening to its closing brace, and then the end token. If the task is a whole program, that program is shown and a
whole program is the answer. `instruct` says the same in words. Solved examples
(shots) precede the task, each as its own prompt with its answer. A program is never cut to make a prompt fit.

A body is found by Dafny's own tokens, so that braces in comments and strings do not count, within fences, chatter and repeats
of the header, the specification or the program. Only the target's body is taken, so a completion cannot change the
specification. Nothing is run or repaired.
"""

from collections.abc import Sequence
from pathlib import Path

from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.domains.dafny.options import DafnyPrompt as Wording
from rlvr_exp.domains.dafny.problem import Dafny, DafnyExample, RoleExample
from rlvr_exp.domains.dafny.syntax import parse
from rlvr_exp.domains.dafny.tokens import CLAUSES, DECLARES, Walker, plain, tokens_with_starts
from rlvr_exp.tasks.base import Candidate
from rlvr_exp.tasks.completion import fenced_blocks, unquoted, without_thoughts

MARKS = {"writer": "W", "annotator": "A"}
ANSWER = "P"
"""The line after which a bare answer starts."""
NEWLINE = "\n"
HOLE = "{ /* the body that you write */ }"

HEADS = {
    "writer": "Write the body of {title} in the Dafny program below, so that Dafny proves its specification.",
    "annotator": (
        "Annotate the body of {title} in the Dafny program below, so that Dafny proves its specification: add loop"
        " invariants,\nassertions, decreases clauses, calls of lemmas, calc statements or ghost variables where the"
        " proof needs them.\nLeave the code that runs exactly as it is."
    ),
}
ASKS = {
    "strict": (
        "Answer with the {what} alone, from its opening to its closing brace, in one code block and without another"
        " word:\n```dafny\n{{\n  ...\n}}\n```\n"
    ),
    "permissive": (
        "You may reason first. End your answer with one code block that holds the {what}; a whole method or program is"
        " taken\ntoo, of which the body of {title} counts. Nothing may be assumed:\n```dafny\n{{\n  ...\n}}\n```\n"
    ),
}
WHOLE_HEADS = {
    "writer": (
        "Complete the Dafny program below, so that Dafny verifies it: write the missing bodies, and the lemmas and functions"
        " that the\nproof needs. Keep everything that is given as it stands."
    ),
    "annotator": (
        "Add annotations to the Dafny program below, so that Dafny verifies it: loop invariants, assertions, decreases"
        " clauses, calls of\nlemmas, calc statements or ghost variables. Leave the specification and the code exactly as they"
        " are."
    ),
}
WHOLE_ASKS = {
    "strict": "Answer with the whole program in one code block and without another word.\n",
    "permissive": (
        "You may reason first. End your answer with one code block that holds the whole program. Nothing may be assumed.\n"
    ),
}
FORMS = tuple(ASKS)
WHAT = {"writer": "body", "annotator": "annotated body"}


def with_context(options: Wording) -> Wording:
    """The options with the text of `context_file` as their context. Raises InputError if it cannot be read."""
    if not options.context_file:
        return options
    try:
        text = Path(options.context_file).read_text(encoding="utf-8")
    except (OSError, ValueError) as fault:
        problem = InputProblem("data.prompt.context_file", "cannot be read", options.context_file, remedy=str(fault))
        raise InputError(problem) from fault
    return Wording(style=options.style, answer=options.answer, shots=options.shots, context=text)


def write(part: RoleExample, options: Wording, shots: Sequence[RoleExample] = ()) -> str:
    """The full prompt: the context, each shot with its answer, then the task."""
    if options.style == "bare":
        solved = [f"{_bare(shot, options.context)}{answer_of(shot, options)}\n\n" for shot in shots]
        return "".join(solved) + _bare(part, options.context)
    context = f"{options.context.strip(NEWLINE)}\n\n" if options.context.strip() else ""
    solved = [
        f"Here is a solved example.\n\n{_worded(shot, options)}\n{answer_of(shot, options)}\n\n" for shot in shots
    ]
    return context + "".join(solved) + _worded(part, options)


def answer_of(part: RoleExample, options: Wording) -> str:
    """The gold completion: in the bare style the body alone, else in a code block."""
    return shown(part.gold, options)


def shown(body: str, options: Wording) -> str:
    """A body in the form of an answer."""
    return body if options.style == "bare" else f"```dafny\n{body}\n```"


def retry(part: RoleExample, options: Wording, shots: Sequence[RoleExample], previous: str, feedback: str) -> str:
    """The bare prompt after a completion that did not pass: that completion precedes the task like a shot, with
    Dafny's log of it as comments."""
    comments = "".join(f"// {line}\n" for line in feedback.splitlines() if line.strip())
    return f"{write(part, options, shots)}{previous.strip(NEWLINE)}\n{comments}\n{_bare(part, options.context)}"


def _bare(part: RoleExample, context: str) -> str:
    one = part.example
    lines = [MARKS[part.role], context, one.before, one.after, one.header + one.spec, part.given, ANSWER]
    return "".join(f"{plain(text).strip(NEWLINE).rstrip()}\n" for text in lines if text.strip())


def _worded(part: RoleExample, options: Wording) -> str:
    """One task in words: the request, the program, the form of the answer."""
    if part.example.whole:
        return f"{WHOLE_HEADS[part.role]}\n\n```dafny\n{part.given}\n```\n\n{WHOLE_ASKS[options.answer]}"
    words = {"title": f"`{part.example.title}`", "what": WHAT[part.role]}
    program = plain(part.example.program(part.given or HOLE)).strip(NEWLINE)
    lead, form = HEADS[part.role].format(**words), ASKS[options.answer].format(**words)
    return f"{lead}\n\n```dafny\n{program}\n```\n\n{form}"


_PAIRS = {")": "(", "]": "[", "}": "{"}
_WORDS = frozenset(("method", "lemma", "colemma", "function", "predicate", "copredicate", "constructor", "iterator"))


def body_of(completion: str, example: DafnyExample) -> Candidate:
    """The target's body in its braces, or why there is none.

    The last fenced block with a body counts, else the complete text. A text has a body if it begins with a brace, declares
    the target or continues the target's header. If no block has such a body, the first line that begins with a brace counts.
    """
    text = plain(unquoted(without_thoughts(completion)))
    blocks = [_Text(block.text) for block in fenced_blocks(text)][::-1]
    known = (block.body(example, sure=True) for block in blocks)
    guessed = (block.body(example) for block in (*blocks, _Text(text)))
    found = next(filter(None, (*known, *guessed)), "")
    return Candidate(found) if found else Candidate(None, _Text(text).fault())


def answer_in(completion: str, example: DafnyExample) -> Candidate:
    """The target's body, or the program if the whole program is the task."""
    return Dafny().parse(completion) if example.whole else body_of(completion, example)


def closed(completion: str) -> bool:
    """Whether a completion that begins with a brace has closed it: the rest is no part of the body."""
    text = _Text(plain(without_thoughts(completion)))
    return text.at(0) == "{" and 0 in text.closes


class _Closes(dict[int, int]):
    """Closing partners; an unclosed bracket reaches to the end, and is not `in` it."""

    def __init__(self, tokens: list[str]):
        super().__init__()
        self._last = len(tokens) - 1
        opened: list[int] = []
        braces = 0
        for index, token in enumerate(tokens):
            if token in _PAIRS.values():
                opened.append(index)
                braces += token == "{"
            elif token == "}" and braces:
                while tokens[opened[-1]] != "{":  # round brackets end with the braces around them
                    opened.pop()
                self[opened.pop()] = index
                braces -= 1
            elif token in _PAIRS and opened and tokens[opened[-1]] == _PAIRS[token]:
                self[opened.pop()] = index

    def __missing__(self, index: int) -> int:
        return self._last


class _Text(Walker):
    """A text that may hold Dafny, walked over by its tokens; unmatched brackets are skipped."""

    def __init__(self, text: str):
        self._text = text
        found, self._starts = tokens_with_starts(text)
        super().__init__(found, _Closes(found))

    def body(self, example: DafnyExample, sure: bool = False) -> str:
        """The target's body, or nothing. `sure`: none that only stands in braces."""
        opening = next((index for index in self._openings(example, sure) if index in self.closes), None)
        return "" if opening is None else self._text[self._starts[opening] : self._starts[self.closes[opening]] + 1]

    def fault(self) -> str:
        """Why the text has no body."""
        if "{" not in self.tokens:
            return "no body in braces in the answer"
        line = self._text.count("\n", 0, self._starts[self.tokens.index("{")]) + 1
        return f"line {line}: the brace that opens the body is never closed"

    def _openings(self, example: DafnyExample, sure: bool) -> list[int]:
        """Braces that may open the body: those of the surest kind found, the last first."""
        if self._opens(0):
            return [0]
        by_method = example.spec.split()[-2:] == ["by", "method"]
        (target,) = parse(plain(example.header))
        starts = self._targets(target.name, example) or [0] * (self.at(0) in CLAUSES or self.at(0) in ("(", "returns"))
        found = [index for index in (self._opening(start, by_method) for start in starts) if self._opens(index)]
        if found or sure:
            return found[::-1]
        braces = [index for index in range(self.end) if self._opens(index)]
        lines = (self._text[: self._starts[index]].rpartition("\n")[2] for index in braces)
        return [index for index, lead in zip(braces, lines, strict=True) if not lead.strip()][:1] or braces[:1]

    def _opens(self, index: int) -> bool:
        return self.at(index) == "{" and not self.is_attribute(index)

    def _targets(self, name: str, example: DafnyExample) -> list[int]:
        """Places of the target's name; in a text with as many declarations of it as the program, its own."""
        named = self._named(name)
        if len(named) < 2:
            return named
        earlier, others = (len(_Text(plain(text))._named(name)) for text in (example.before, example.after))
        return named[earlier : earlier + 1] if len(named) == earlier + 1 + others else named

    def _named(self, name: str) -> list[int]:
        """Places of the name in every declaration of it, or what may be a declaration."""
        found = []
        for index, token in enumerate(self.tokens):
            at = index + 1
            while token in _WORDS and self.is_attribute(at):
                at = self.closes[at] + 1
            if token in _WORDS and (self.at(at) == name or not name):
                found.append(at)
        return found

    def _opening(self, index: int, by_method: bool) -> int:
        """The index after the head that continues at `index` and its clauses: the callable's body opens there, if it has one."""
        while index < self.end and not self._opens(index) and self.at(index) not in CLAUSES | DECLARES | {"}", ";"}:
            index = self.closes[index] + 1 if self.at(index) in ("(", "[", "{") else index + 1
        while self.at(index) in CLAUSES or (self.at(index) == ";" and self.at(index + 1) in CLAUSES | {"{"}):
            words = 1
            while self.at(index + words - 1) in ("yield", "free") and self.at(index + words) in CLAUSES:
                words += 1
            index = index + 1 if self.at(index) == ";" else self.past_expression(index + words)
        after = self.closes[index] + 1 if self._opens(index) else index
        return after + 2 if by_method and (self.at(after), self.at(after + 1)) == ("by", "method") else index
