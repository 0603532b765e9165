"""The style of pages and docstrings, by counts: words that mark noun-less clauses, the number and size of pages, their titles."""

import ast
import re
from collections.abc import Iterable
from pathlib import Path

import pytest
from page_commands import PACKAGE, ROOT

UNCOUNTED = {"dafny_issues.md"}
"""A table that is printed from data. It does not count towards the size of the documentation, and recipes do not either."""
PAGES = [ROOT / "README.md", *sorted((PACKAGE / "docs").rglob("*.md"))]
MOST_PAGES, MOST_WORDS = 30, 28_000
"""Of all pages that count. A word has a letter or a digit, so that the bars of tables do not count."""
PER_THOUSAND_WORDS = {
    "pages": {"where": 0.5, "what": 0.5, "which": 1.0},
    "docstrings": {"where": 3, "what": 2, "which": 3},
}
"""Most occurrences. A docstring or page with more of them has noun-less clauses."""
CLAUSE = re.compile(r"^#+ (?:What|Which|Where|How|Who|When)\b.*", re.MULTILINE)


def docstrings(file: Path) -> Iterable[str]:
    """Docstrings of a file, and the strings that stand behind its assignments."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.value.value


TEXTS = {
    "pages": "\n".join(page.read_text(encoding="utf-8") for page in PAGES),
    "docstrings": "\n".join(text for file in sorted(PACKAGE.rglob("*.py")) for text in docstrings(file)),
}


@pytest.mark.parametrize("kind", TEXTS)
def test_clauses_have_subjects(kind: str) -> None:
    words = re.findall(r"[a-z]+", TEXTS[kind].lower())
    rates = {word: 1000 * words.count(word) / len(words) for word in PER_THOUSAND_WORDS[kind]}
    assert len(words) > 10_000
    assert {word: round(rate, 2) for word, rate in rates.items() if rate > PER_THOUSAND_WORDS[kind][word]} == {}


def test_the_documentation_stays_small() -> None:
    counted = [page for page in PAGES if page.name not in UNCOUNTED and page.parent.name != "recipes"]
    assert len(counted) <= MOST_PAGES
    words = [word for page in counted for word in page.read_text(encoding="utf-8").split() if re.search(r"\w", word)]
    assert len(words) <= MOST_WORDS


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}/{page.name}")
def test_titles_are_nouns(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert CLAUSE.findall(text) == []
