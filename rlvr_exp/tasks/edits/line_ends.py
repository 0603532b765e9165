"""The line ends of an edited text: those of the text before it, since neither a completion nor a rule's fix means to change them."""

import re

_ALONE = re.compile(r"(?<!\r)\n")


def ended_as(text: str, before: str) -> str:
    """The text with the line ends at its end that the text before it has."""
    return text.rstrip("\r\n") + _end(before)


def lines_as(text: str, before: str) -> str:
    """The text with `\\r\\n` for every line end where the text before it has no other."""
    return _ALONE.sub("\r\n", text) if _has_windows_ends(before) else text


def edited_line_ends(text: str, before: str, after: str) -> str:
    """What rules have made of `before`, with its line ends as far as `after` has them, too: a fix is written with any."""
    if _has_windows_ends(before) and _has_windows_ends(after):
        text = lines_as(text, before)
    return ended_as(text, before) if _end(before) == _end(after) else text


def _end(text: str) -> str:
    return text[len(text.rstrip("\r\n")) :]


def _has_windows_ends(text: str) -> bool:
    return "\r\n" in text and not _ALONE.search(text)
