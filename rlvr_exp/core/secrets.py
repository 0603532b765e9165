"""Secrets in text: their detection and their removal.

A value is a secret if the environment holds it under a telling name (`..._TOKEN`, `..._API_KEY`), or if it has the
shape of a secret: tokens of well-known services, passwords in addresses. This module stores no secret.
"""

import os
import re
from typing import Any, TextIO

MASK = "***"
NAMED = re.compile(r"(^|_)(token|secret|key|apikey|password|passwd|pass|credentials?)$", re.IGNORECASE)
"""Names of variables that hold a secret."""
SHORTEST = 8
"""Characters below which a variable's value is left alone: it would stand in any text by chance."""
SHAPES = re.compile(
    r"\b(?:hf_[A-Za-z0-9]{20,}|sk-[A-Za-z0-9_-]{20,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|"
    r"xox[abprs]-[A-Za-z0-9-]{10,}|AKIA[0-9A-Z]{16}|glpat-[A-Za-z0-9_-]{20,}|wandb_v1_[A-Za-z0-9_]{20,})"
    r"|(?<=://)[^\s/:@]+:[^\s/@]+(?=@)"
)
"""Tokens by their services' prefixes, and `user:password` of an address."""


def held() -> list[str]:
    """Secrets of this process's environment, the longest first."""
    values = {value for name, value in os.environ.items() if NAMED.search(name) and len(value) >= SHORTEST}
    # A path to a file of keys is no secret, and stands in every message about it.
    return sorted((value for value in values if not os.path.isabs(value)), key=len, reverse=True)


def masked(text: str) -> str:
    """The text with every secret replaced."""
    for value in held():
        text = text.replace(value, MASK)
    return SHAPES.sub(MASK, text)


def shows_secret(text: str) -> bool:
    return masked(text) != text


class Masking:
    """A text stream in front of another that masks secrets in `write`; everything else is the other stream's."""

    def __init__(self, inner: TextIO):
        self._inner = inner

    def write(self, text: str) -> int:
        self._inner.write(masked(text))
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)
