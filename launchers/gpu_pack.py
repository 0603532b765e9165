"""`launchers/gpu.sh pack`: the packages that a machine without network lacks, in gpu_pack/, which goes along with the
checkout.

What the project and its tests need is followed through the packages that are installed here, in the pinned versions; a
package that the other machine has is left to it, but for those that the project pins exactly.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
TESTS = ("pytest", "hypothesis")
OPTIONAL = ("bitsandbytes",)
LEFT = re.compile(r"nvidia|cuda|triton|^torch$")
"""The torch that is there is used, with what it brings."""
PLATFORMS = (
    "manylinux_2_28_x86_64",
    "manylinux_2_27_x86_64",
    "manylinux_2_24_x86_64",
    "manylinux_2_17_x86_64",
    "manylinux2014_x86_64",
)


def pins() -> dict[str, str]:
    text = (ROOT / "launchers" / "requirements.txt").read_text()
    return {canonicalize_name(name): version for name, version in re.findall(r"^([\w.-]+)==(\S+)$", text, re.MULTILINE)}


def had(path: Path) -> dict[str, str]:
    """Versions by name, of `pip list` or `pip freeze`; a name alone counts as any version."""
    rows = (re.match(r"([A-Za-z0-9][\w.-]*)(?:(?:==|\s+)(\S+))?\s*$", line) for line in path.read_text().splitlines())
    return {canonicalize_name(row[1]): row[2] or "" for row in rows if row and row[1] != "Package"}


def needed(names: list[str], python: str) -> set[str]:
    """The names and all that they need on Linux under that Python."""
    about = {
        **default_environment(),
        "python_version": python,
        "python_full_version": f"{python}.0",
        "sys_platform": "linux",
        "extra": "",
    }
    found: set[str] = set()
    open_ends = [canonicalize_name(name) for name in names]
    while open_ends:
        name = open_ends.pop()
        if name in found or LEFT.search(name):
            continue
        found.add(name)
        for requirement in map(Requirement, metadata.requires(name) or []):
            if requirement.marker is None or requirement.marker.evaluate(about):
                open_ends.append(canonicalize_name(requirement.name))
    return found


def lacking(names: set[str], there: dict[str, str], asked: list[Requirement]) -> list[str]:
    """Those that are not there, or there in a version that the project does not take."""
    wanted = {canonicalize_name(one.name): one.specifier for one in asked}
    return sorted(
        name
        for name in names
        if name not in there
        or (there[name] and name in wanted and not wanted[name].contains(there[name].split("+")[0]))
    )


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="launchers/gpu.sh pack", description=__doc__)
    parser.add_argument("--python", required=True, help="the other machine's, such as 3.12")
    parser.add_argument("--have", type=Path, required=True, metavar="FILE", help="its `pip list`, or names one a line")
    parser.add_argument("--into", type=Path, default=ROOT / "gpu_pack", help="folder, made anew")
    asked = parser.parse_args(words)
    project = [
        Requirement(one) for one in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    ]
    there = had(asked.have)
    main_names = needed([*(one.name for one in project), *TESTS], asked.python)
    parts = {"needed": lacking(main_names, there, project)}
    parts["optional"] = lacking(needed(list(OPTIONAL), asked.python) - main_names, there, [])
    shutil.rmtree(asked.into, ignore_errors=True)
    for part, names in parts.items():
        if names and (code := install(names, asked.into / part, asked.python)):
            return code
        drop_other_cudas(asked.into / part, there.get("torch", ""))
        size = sum(file.stat().st_size for file in (asked.into / part).rglob("*") if file.is_file()) / 1e6
        print(f"{part}: {size:.1f} MB: {', '.join(names) or 'nothing is lacking'}")
    return 0


def install(names: list[str], folder: Path, python: str) -> int:
    """What is of any Python as it is installed here; the others as the pinned wheels of that Python, unpacked."""
    pure = [
        name
        for name in names
        if re.search(r"py3-none-any$", metadata.distribution(name).read_text("WHEEL") or "", re.MULTILINE)
    ]
    for name in pure:
        copy(metadata.distribution(name), folder)
    versions = pins()
    wheels = [f"{name}=={versions[name]}" for name in names if name not in pure]
    if not wheels:
        return 0
    platforms = [word for platform in PLATFORMS for word in ("--platform", platform)]
    options = ["--no-deps", "--only-binary=:all:", "--no-compile", "--quiet", "--disable-pip-version-check"]
    command = [
        sys.executable,
        "-I",
        "-m",
        "pip",
        "install",
        *options,
        "--target",
        str(folder),
        "--python-version",
        python,
    ]
    return subprocess.run([*command, "--implementation", "cp", *platforms, *wheels]).returncode


def copy(package: metadata.Distribution, folder: Path) -> None:
    """Its files but for scripts and bytecode."""
    for file in package.files or []:
        if ".." in file.parts or file.suffix == ".pyc":
            continue
        place = folder / file
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file.locate(), place)


def drop_other_cudas(folder: Path, torch: str) -> None:
    """bitsandbytes brings a library for each CUDA; where torch's version there tells it, such as 2.11.0+cu130, one stays."""
    own = re.search(r"\+cu(\d+)", torch)
    for library in folder.glob("bitsandbytes/libbitsandbytes_*"):
        if own and f"cuda{own[1]}" not in library.name:
            library.unlink()
