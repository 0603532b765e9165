"""The page of the architecture: every folder with its level, as tests/test_rooms.py orders them, files to begin with, and pages."""

import re

from page_commands import PACKAGE
from test_rooms import FILES, LEVEL, LIGHT, room_of

PAGE = (PACKAGE / "docs" / "architecture.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (\d+)(, light)? \| (`.+?) \| (.+?) \| (.+?) \| (.+?) \|$", PAGE, re.MULTILINE)


def names(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def test_every_room_has_its_row_and_its_level() -> None:
    shown = {room: int(level) - 1 for level, _, rooms, *_ in ROWS for room in names(rooms)}
    assert shown == LEVEL and set(shown) == {room_of(file) for file in FILES} - {"__init__"}
    assert [int(level) for level, *_ in ROWS] == sorted(int(level) for level, *_ in ROWS)


def test_light_rooms_are_marked() -> None:
    assert sorted(room for _, light, rooms, *_ in ROWS if light for room in names(rooms)) == LIGHT


def test_every_row_has_a_file_of_its_room_and_a_page() -> None:
    for _, _, rooms, _, begin, pages in ROWS:
        files = names(begin)
        assert files and [file for file in files if not (PACKAGE / file).is_file()] == []
        assert {file.partition("/")[0].removesuffix(".py") for file in files} <= set(names(rooms))
        links = re.findall(r"\]\(([^)#]+)", pages)
        assert links and [link for link in links if not (PACKAGE / "docs" / link).is_file()] == [], rooms


def test_every_folder_of_the_package_is_named() -> None:
    folders = {path.name for path in PACKAGE.iterdir() if path.is_dir() and not path.name.startswith(("_", "."))}
    assert folders <= set(names(PAGE)) | {"conf"}
