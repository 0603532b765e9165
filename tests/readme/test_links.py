"""Every relative link of the README and the pages has a target with its heading, and every page is linked from the README or from
the index."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OTHERS = [ROOT / name for name in ("CONTRIBUTING.md", "CHANGELOG.md", "conf/README.md")]
PAGES = [ROOT / "README.md", *OTHERS, *sorted((ROOT / "rlvr_exp" / "docs").rglob("*.md"))]


INDEX = ROOT / "rlvr_exp" / "docs" / "README.md"


def targets(page: Path) -> list[Path]:
    """The files and folders that a page links to."""
    links = re.findall(r"\]\(([^)#]+)", page.read_text())
    return [(page.parent / link).resolve() for link in links if "://" not in link]


def anchors(page: Path) -> set[str]:
    """The headings of a page as GitHub links to them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}/{page.name}")
def test_anchors_are_headings(page):
    links = re.findall(r"\]\(([^)#:\s]*)#([^)]+)\)", page.read_text())
    found = [((page.parent / name).resolve() if name else page, anchor) for name, anchor in links]
    assert [(to.name, anchor) for to, anchor in found if to.suffix == ".md" and anchor not in anchors(to)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}/{page.name}")
def test_links_lead_somewhere(page):
    assert [target for target in targets(page) if not target.exists()] == []
    assert not re.search(r"^[A-Z]{6,}$", page.read_text(), re.MULTILINE), "a place left open"


def test_every_page_is_linked_from_the_readme_or_its_index():
    of_readme = targets(PAGES[0])
    assert INDEX in of_readme
    linked = {*of_readme, *targets(INDEX), *targets(INDEX.parent / "recipes" / "README.md")}
    assert [page.name for page in PAGES[1:] if page not in linked] == []
