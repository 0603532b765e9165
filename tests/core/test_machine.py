"""Memory of the machine, with the limits of control groups of both versions."""

from pathlib import Path

import pytest

from rlvr_exp.core import machine

GIB = 2**30
MEMINFO = "MemTotal: 8388608 kB\nMemAvailable: 4194304 kB\n"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "meminfo").write_text(MEMINFO)
    (tmp_path / "groups").mkdir()
    for name, path in (("MEMINFO", "meminfo"), ("OWN_GROUPS", "own"), ("GROUPS", "groups")):
        monkeypatch.setattr(machine, name, tmp_path / path)
    return tmp_path


def limited(folder: Path, files: dict[str, object]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in files.items():
        (folder / name).write_text(f"{value}\n")


def test_without_a_limit_the_machine_counts(place: Path) -> None:
    (place / "own").write_text("0::/\n")
    limited(place / "groups", {"memory.max": "max", "memory.current": GIB, "memory.stat": "inactive_file 0"})
    assert machine.available() == 4 * GIB and machine.total() > 0


def test_the_lowest_limit_above_the_process_counts_without_its_cache(place: Path) -> None:
    (place / "own").write_text("0::/job/step\n")
    stat = f"anon 5\ninactive_file {GIB // 2}"
    limited(place / "groups/job", {"memory.max": GIB, "memory.current": 3 * GIB // 4, "memory.stat": stat})
    limited(place / "groups/job/step", {"memory.max": 2 * GIB, "memory.current": 0, "memory.stat": "inactive_file 0"})
    assert machine.total() == GIB and machine.available() == 3 * GIB // 4


def test_limits_of_the_first_version_count(place: Path) -> None:
    (place / "own").write_text("4:memory:/job\n3:cpu,cpuacct:/job\n0::/\n")
    files = {"memory.limit_in_bytes": GIB, "memory.usage_in_bytes": GIB, "memory.stat": "total_inactive_file 0"}
    limited(place / "groups/memory/job", files)
    assert machine.total() == GIB and machine.available() == 0
