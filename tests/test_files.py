"""Each of the fifty properties that the project promises has a test that bears its number, and no test file has the name of another."""

import re
from collections import Counter
from pathlib import Path

MARK = re.compile(r"^@pytest\.mark\.property\((\d+(?:, *\d+)*)\)$", re.MULTILINE)


def test_each_has_a_test() -> None:
    files = Path(__file__).parent.rglob("test_*.py")
    found = {int(number) for file in files for each in MARK.findall(file.read_text()) for number in each.split(",")}
    assert found == set(range(1, 51))


def test_files_have_names_of_their_own() -> None:
    """They are imported by their names, without packages."""
    names = Counter(path.name for path in Path(__file__).parent.rglob("*.py") if path.name != "conftest.py")
    assert [name for name, count in names.items() if count > 1] == []
