"""When an edited text counts as the wanted text. Texts come from hostile rules: everything here is linear in them."""

from itertools import zip_longest

from rlvr_exp.tasks.edits.languages import language_of
from rlvr_exp.verifiers.ast_grep.python_trees import parsed, syntax_key

_SHOWN = 120


def equal_text(got: str, wanted: str) -> bool:
    """Whether every character is equal."""
    return got == wanted


def equal_but_blanks(got: str, wanted: str, language: str) -> bool:
    """Whether they are equal but for blanks at the ends of lines, empty lines, and line endings. Indentation counts, and where the
    wanted text is Python, so do blanks and lines inside its strings."""
    if _lines(got) != _lines(wanted):
        return False
    tree = parsed(wanted) if got != wanted and language_of(language) == "python" else None
    if tree is None:
        return True
    other = parsed(got)
    return other is not None and syntax_key(other) == syntax_key(tree)


def first_difference(got: str, wanted: str) -> str:
    """The first line in which they differ, as a short diff."""
    if got.rstrip("\n") == wanted.rstrip("\n"):
        counts = (len(text) - len(text.rstrip("\n")) for text in (wanted, got))
        return "line ends at the end of the text: wanted {}, got {}".format(*counts)
    ours, theirs = got.split("\n"), wanted.split("\n")
    for number, (one, other) in enumerate(zip_longest(ours, theirs), 1):
        if one != other:
            shown = [f"{mark} {_cut(line)}" for mark, line in (("-", other), ("+", one)) if line is not None]
            return "\n".join([f"line {number} (- wanted, + got):", *shown])
    return ""


def _lines(text: str) -> list[str]:
    lines = (line.rstrip() for line in text.replace("\r\n", "\n").split("\n"))
    return [line for line in lines if line]


def _cut(line: str) -> str:
    line = line.replace("\r", "\\r")
    return line if len(line) <= _SHOWN else f"{line[:80]} ... {line[-30:]}"
