"""The order of the rooms: imports point downward only, never in a circle, and light rooms load no heavy library: the
parent and the sandbox's workers stay small."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import rlvr_exp

PACKAGE = Path(rlvr_exp.__file__).parent
LEVELS = (
    {"core"},
    {"config"},
    {"tasks", "sandbox"},
    {"verifiers"},
    {"episodes", "solutions"},
    {"records"},
    {"report"},
    {"launch", "view"},
    {"rewards", "models", "curriculum"},
    {"rollouts"},
    {"algorithms"},
    {"training", "self_play"},
    {"memory"},
    {"evaluation"},
    {"inference"},
    {"benchmarks", "corpora", "runs", "serve"},
    {"stages"},
    {"domains"},
    {"main", "__main__", "child"},
)
"""From the lowest up; rooms of one level are neighbours and do not import each other."""
LEVEL = {room: level for level, rooms in enumerate(LEVELS) for room in rooms}
LIGHT = sorted(room for room, level in LEVEL.items() if level <= LEVEL["launch"])
HEAVY = {"torch", "transformers", "trl", "numpy", "datasets"}
FILES = sorted(PACKAGE.rglob("*.py"))


def room_of(file: Path) -> str:
    return file.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(source: str, package: tuple[str, ...]) -> Iterator[str]:
    """The dotted name of all that a module imports, at top level and inside functions."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            yield from (".".join((*base, *filter(None, [node.module]), alias.name)) for alias in node.names)


def faults(source: str, package: tuple[str, ...], room: str) -> list[str]:
    """Imports that a module of this room must not have: rooms of its own level or above, another domain, the makers of corpora,
    heavy libraries in light rooms."""
    found = []
    for name in imported(source, package):
        top, *below = name.split(".")
        target = below[0] if below and top == "rlvr_exp" else ""
        if (
            target in LEVEL
            and target != room
            and LEVEL[target] >= LEVEL[room]
            and room not in ("main", "__main__", "child")
        ):
            found.append(name)
        if target == "corpora" and room not in (
            "corpora",
            "domains",
        ):  # +stage=prepare finds makers by a node's target.
            found.append(name)
        if target == "domains" == room and len(below) > 1 and below[1] != package[2]:
            found.append(name)
        if room in LIGHT and top in HEAVY:
            found.append(name)
    return found


def test_imports_point_downward() -> None:
    found = {}
    for file in FILES:
        package, room = ("rlvr_exp", *file.relative_to(PACKAGE).parts[:-1]), room_of(file)
        if room == "__init__":
            found[file] = list(imported(file.read_text(), ()))  # The package itself imports nothing.
        else:
            assert room in LEVEL, f"{room} has no place in the order of rooms"
            found[file] = faults(file.read_text(), package, room)
    assert len(found) > 300 and {file: names for file, names in found.items() if names} == {}


def file_of(name: str) -> Path | None:
    """The file of this package that an imported name is in."""
    parts = name.split(".")[1:]
    places = [PACKAGE.joinpath(*parts[:count]) for count in range(len(parts), -1, -1)]
    found = (file for place in places for file in (place.with_suffix(".py"), place / "__init__.py") if file.is_file())
    return next(found, None) if name.partition(".")[0] == "rlvr_exp" else None


def test_no_circle_between_files() -> None:
    """Imports inside functions and those for types alone count, too."""
    graph = {
        file: {
            file_of(name) for name in imported(file.read_text(), ("rlvr_exp", *file.relative_to(PACKAGE).parts[:-1]))
        }
        - {file, None}
        for file in FILES
    }
    assert sum(map(len, graph.values())) > 1000
    TopologicalSorter(graph).prepare()  # Raises CycleError with the files of a circle.


@pytest.mark.parametrize(
    ("room", "source"),
    [
        ("tasks", "import rlvr_exp.verifiers.base"),
        ("tasks", "from rlvr_exp.sandbox import pool"),
        ("tasks", "from rlvr_exp import stages"),
        ("tasks", "from ..records import directory"),
        ("core", "def late():\n    from rlvr_exp.config import schema"),
        ("verifiers", "def late():\n    import torch.nn"),
        ("sandbox", "from numpy import array"),
        ("stages", "from rlvr_exp.corpora.rows import make"),
        ("main", "def late():\n    import rlvr_exp.corpora.models"),
        ("stages", "def late():\n    from rlvr_exp.domains.arc import puzzle"),
    ],
)
def test_the_scan_sees_every_kind_of_import(room: str, source: str) -> None:
    assert len(faults(source, ("rlvr_exp", room), room)) == 1


def test_a_domain_imports_no_other() -> None:
    package = ("rlvr_exp", "domains", "arc")
    assert len(faults("from rlvr_exp.domains.dafny import tasks", package, "domains")) == 1
    assert faults("from rlvr_exp.domains.arc import puzzle\nimport rlvr_exp.stages", package, "domains") == []


def test_there_is_one_command_line() -> None:
    """The other programs are children of a run, started by their parents."""
    programs = {str(file.relative_to(PACKAGE)) for file in FILES if '\nif __name__ == "__main__":' in file.read_text()}
    assert programs == {"__main__.py", "child.py", "domains/code/naive.py", "models/quantization.py"}
    assert not [file for file in FILES if "import argparse\n" in file.read_text()]


def test_what_is_below_or_allowed_is_no_fault() -> None:
    source = "import json\nimport torch\nfrom rlvr_exp.core.errors import X\nfrom ..tasks import base\nfrom . import y"
    assert faults(source, ("rlvr_exp", "rollouts"), "rollouts") == []


def test_light_rooms_load_no_heavy_library() -> None:
    modules = [
        ".".join(("rlvr_exp", *file.relative_to(PACKAGE).with_suffix("").parts))
        for file in FILES
        if room_of(file) in LIGHT and file.stem != "__main__"
    ]
    code = f"import importlib, sys\nfor name in {modules!r}: importlib.import_module(name)\n"
    code += f"print(*sorted({HEAVY!r} & set(sys.modules)))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert loaded.returncode == 0, loaded.stderr
    assert loaded.stdout.split() == []
