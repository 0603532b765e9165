"""Container images on this machine: which of podman and docker has one. Starts no container, fetches nothing."""

import shlex
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from rlvr_exp.core.errors import InputError, InputProblem

CONTAINERFILE = Path(__file__).resolve().parents[1] / "assets" / "dafny.Containerfile"
_ENGINES = ("podman", "docker")
_INSPECT_S = 60


@dataclass(frozen=True)
class Image:
    """An image that an engine holds."""

    engine: str
    """The path of podman or docker."""
    name: str
    id: str
    """Its content, by which it is started: a tag that moves during a run changes nothing."""


def find_image(name: str) -> Image:
    """The image, from the first engine that holds it.

    Raises:
        InputError: no engine is installed, or none holds the image; with what each says.
    """
    faults = []
    for engine in filter(None, map(shutil.which, _ENGINES)):
        found = _inspect(engine, name)
        if isinstance(found, Image):
            return found
        faults.append(f"{Path(engine).name}: {found}")
    what, first = "no engine here holds the image", ""
    if not faults:
        what, first = "neither podman nor docker is on the PATH", "apt-get install podman, then "
    remedy = first + build_command(name)
    raise InputError(InputProblem("verifier.image", what, "; ".join([name, *faults]), remedy=remedy))


def build_command(name: str) -> str:
    """The command that makes an image of Debian's Dafny, with docker in place of podman just as well."""
    return f"podman build -t {name} - < {shlex.quote(str(CONTAINERFILE))}"


def _inspect(engine: str, name: str) -> Image | str:
    command = [engine, "image", "inspect", "--format", "{{.Id}}", name]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=_INSPECT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return f"no answer within {_INSPECT_S} s"
    if done.returncode == 0 and done.stdout.strip():
        return Image(engine, name, done.stdout.strip())
    return (done.stderr.strip().splitlines() or ["no answer"])[-1][:200]
