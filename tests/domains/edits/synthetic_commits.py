"""Synthetic commits in CommitPackFT's layout, of any size.

Every row follows from its number. Of 20 rows one is nearly equal to the one before it; of 1,000 one is no JSON and one makes a file.
"""

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path

LANGUAGES = {"python": "Python", "go": "Go", "java": "Java", "javascript": "JavaScript", "rust": "Rust"}
_PARTS = "ba ce di fo gu ha je ki lo mu na pe ri so tu va we xi yo zu".split()
WORDS = [one + two + three for one in _PARTS for two in _PARTS for three in _PARTS[:10]]


def rows(megabytes: float, language: str, seed: int = 0) -> Iterator[str]:
    """Lines of one language's file, until they have a fifth of the size."""
    left, number = megabytes * 1e6 / len(LANGUAGES), 0
    while left > 0:
        line = row(language, number, seed)
        yield line
        left, number = left - len(line), number + 1


def row(language: str, number: int, seed: int) -> str:
    if number % 1000 == 999:
        return '{"commit": \n'
    near = number % 20 == 19
    draw = random.Random(f"{seed}/{language}/{number - near}")
    before = program(draw, language)
    lines = before.splitlines()
    at = draw.randrange(2, len(lines) - 1)
    lines[at : at + 1] = statements(draw, 2)
    if near:
        lines[-2] = f"    near_{number} = {number}"
    after = "\n".join(lines) + "\n"
    values = {
        "commit": f"{random.Random(f'{seed}/{language}/{number}').getrandbits(160):040x}",
        "old_file": f"src/{language}/{number}.txt",
        "new_file": f"src/{language}/{number}.txt",
        "old_contents": "" if number % 1000 == 500 else before,
        "new_contents": after,
        "subject": f"Change {draw.choice(WORDS)} of {draw.choice(WORDS)}",
        "message": "Change\n",
        "lang": LANGUAGES[language],
        "license": draw.choice(("mit", "apache-2.0", "bsd-3-clause")),
        "repos": f"{draw.choice(WORDS)}/{draw.choice(WORDS)}",
    }
    return json.dumps(values) + "\n"


def program(draw: random.Random, language: str) -> str:
    head = {"python": "def {}({}):", "go": "func {}({}) int {{", "rust": "fn {}({}) -> i64 {{"}
    first = head.get(language, "function {}({}) {{").format(draw.choice(WORDS), draw.choice(WORDS))
    last = "    return " + draw.choice(WORDS)
    return "\n".join([first, *statements(draw, draw.randrange(12, 40)), last]) + "\n"


def statements(draw: random.Random, count: int) -> list[str]:
    word: Callable[[], str] = lambda: draw.choice(WORDS)  # noqa: E731
    return [f"    {word()} = {word()}({word()}, {draw.randrange(1000)}) + {word()}" for _ in range(count)]


def write(folder: Path, megabytes: float, seed: int = 0) -> None:
    """Write all files, `data/LANGUAGE/data.jsonl`."""
    for language in LANGUAGES:
        (folder / "data" / language).mkdir(parents=True, exist_ok=True)
        with open(folder / "data" / language / "data.jsonl", "w", encoding="ascii") as out:
            out.writelines(rows(megabytes, language, seed))
