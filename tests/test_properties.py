"""Each of the fifty properties that the project promises has a test that bears its number."""

import re
from pathlib import Path

MARK = re.compile(r"^@pytest\.mark\.property\((\d+(?:, *\d+)*)\)$", re.MULTILINE)


def test_each_has_a_test() -> None:
    files = Path(__file__).parent.rglob("test_*.py")
    found = {int(number) for file in files for each in MARK.findall(file.read_text()) for number in each.split(",")}
    assert found == set(range(1, 51))
