"""Every relative link of the README and the pages has a target, and no page is missing."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "conf" / "README.md", *sorted((ROOT / "rlvr_exp" / "docs").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    targets = [target for target in re.findall(r"\]\(([^)#]+)", page.read_text()) if "://" not in target]
    assert [target for target in targets if not (page.parent / target).exists()] == []
    assert not re.search(r"^[A-Z]{6,}$", page.read_text(), re.MULTILINE), "a place left open"


def test_every_page_is_linked_from_the_readme():
    readme = (ROOT / "README.md").read_text()
    assert [page.name for page in PAGES[2:] if page.name not in readme] == []
