"""The installed Dafny, on this machine or in a container's image: found, its version probed once, and described for the
manifest. Nothing is judged here.

Two families are supported: 2.3 (options with a slash, Debian's package) and 4.x (`dafny verify`). Only 2.3 can be kept
warm: it needs mono, its compiler `mcs` (part of Debian's package) and the folder of Dafny's libraries.
"""

import hashlib
import os
import re
import select
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from rlvr_exp.config.images import Image, find_image
from rlvr_exp.config.verifier import INSTALL_DAFNY
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.core.files import cache_home, replacing
from rlvr_exp.sandbox.containers import Container, ContainerLimits
from rlvr_exp.sandbox.tools import Lost, Program

ENVIRONMENT = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LC_ALL": "C.UTF-8", "DOTNET_CLI_TELEMETRY_OPTOUT": "1"}
_PROBE_S, _BUILD_S = 60, 240
_PROBE_MB = 1024
_LIBRARY = re.compile(r"(/[^\s\"']+)/Dafny\.exe")
_FULL = re.compile(r"Dafny(?: program verifier version)? (2\.3)[.\d]*|^(4\.\d+)[.\d]*", re.MULTILINE)
_START_SCRIPT = 'command -v mono >/dev/null && command -v mcs >/dev/null && head -c 4096 "$(command -v "$1")"'
_COMPILE = '"$@" >said 2>&1 && cat warm.exe || { cat said; exit 1; }'


@dataclass(frozen=True)
class Tool:
    """A Dafny that runs. `command` starts it; `family` is "2.3" or "4"; `version` is its complete version text."""

    command: tuple[str, ...]
    family: str
    version: str
    library: str = ""
    """The folder of Dafny's libraries, where it can be kept warm; else empty."""
    prover: str = ""
    """The version of the installed z3, where Dafny has none of its own."""
    image: Image | None = None
    """The image that holds all of it; None: this machine."""

    def start(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        files: Mapping[str, bytes],
        limits: ContainerLimits,
    ) -> Program | Container:
        """A program beside this Dafny; `limits` are those of its container, where it has one.

        Raises:
            Lost: its container does not start.
        """
        return _started(self.image, command, environment, files, limits)

    def described(self) -> dict[str, str]:
        """Its description for the manifest and the cache's keys."""
        return {"dafny": self.version} | ({"z3": self.prover} if self.prover else {})


@cache
def find(path: str = "", image: str = "") -> Tool:
    """The tool that the options name.

    Args:
        path: the program; empty: `dafny` on the PATH.
        image: an image of podman or docker with Dafny; takes the place of `path`.

    Raises:
        InputError: both are set, none is there, or its version is unknown.
    """
    if not image:
        if (found := shutil.which(path or "dafny")) is None:
            raise _problem("verifier.path" if path else "dafny", "Dafny is not there", path, INSTALL_DAFNY)
        return _probed(os.path.abspath(found), None)
    if path:
        raise _problem("verifier.image", "cannot be set together with verifier.path", image, "set one of them")
    try:
        return _probed("dafny", find_image(image))
    except Lost as fault:
        remedy = "see that podman or docker starts containers on this machine, or set verifier.path"
        raise _problem("verifier.image", "the image does not run", f"{image}: {fault}", remedy) from fault


def _probed(program: str, image: Image | None) -> Tool:
    output = _ask(image, [program, "/version"]) + "\n" + _ask(image, [program, "--version"])
    known = _FULL.search(output)
    if known is None:
        got = output.strip().splitlines()[0][:200] if output.strip() else "no answer to /version and --version"
        where = "verifier.path" if image is None else "verifier.image"
        raise InputError(
            InputProblem(where, "a Dafny of unknown version", got=got, allowed="2.3, 4.x", remedy=INSTALL_DAFNY)
        )
    if known[2]:
        return Tool((program,), "4", known[0], image=image)
    return Tool((program,), "2.3", known[0], _library(program, image), _ask(image, ["z3", "--version"]).strip(), image)


def _library(program: str, image: Image | None) -> str:
    """The folder that Debian's start script names, where mono and its compiler are installed too."""
    head = _ask(image, ["sh", "-c", _START_SCRIPT, "sh", program])
    named = _LIBRARY.search(head)
    if not head.startswith("#!") or named is None:
        return ""
    return named[1] if _ask(image, ["ls", f"{named[1]}/DafnyPipeline.dll"]) else ""


def _ask(image: Image | None, words: Sequence[str]) -> str:
    """What a command prints; empty where it does not end in time."""
    return _output(image, words, {}, _PROBE_S)[1].decode(errors="replace")


def _started(
    image: Image | None,
    command: Sequence[str],
    environment: Mapping[str, str],
    files: Mapping[str, bytes],
    limits: ContainerLimits,
) -> Program | Container:
    if image is None:
        return Program(command, {**ENVIRONMENT, **environment}, files)
    inside = {name: value for name, value in ENVIRONMENT.items() if name != "PATH"}
    return Container(image, command, {**inside, **environment}, files, limits)


def _output(image: Image | None, words: Sequence[str], files: Mapping[str, bytes], seconds: float) -> tuple[int, bytes]:
    """A command's exit code and output; the code is -1 where it does not end in time."""
    program = _started(image, words, {}, files, ContainerLimits(_PROBE_MB))
    deadline, output = time.monotonic() + seconds, b""
    try:
        while select.select([program.output], [], [], max(0.0, deadline - time.monotonic()))[0]:
            data = program.output.read(1 << 16)
            if not data:
                return program.wait(), output
            output += data
        return -1, output
    finally:
        program.end()


def build(tool: Tool, source: Path) -> bytes:
    """The program of the warm process, compiled once per Dafny and source into the user's cache folder.

    Raises:
        InputError: it does not compile against this Dafny.
    """
    text = source.read_bytes()
    key = hashlib.blake2b(text + tool.version.encode() + tool.library.encode(), digest_size=10).hexdigest()
    built = cache_home() / "dafny" / key / "warm.exe"
    if built.exists():
        return built.read_bytes()
    names = ("DafnyPipeline", "BoogieExecutionEngine", "BoogieCore", "BoogieBasetypes", "BoogieVCGeneration")
    libraries = [f"-r:{tool.library}/{name}.dll" for name in names] + [f"-r:{tool.library}/Dafny.exe"]
    words = ["sh", "-c", _COMPILE, "sh", "mcs", *libraries, "-out:warm.exe", source.name]
    code, output = _output(tool.image, words, {source.name: text}, _BUILD_S)
    if code:
        fault = f"no end within {_BUILD_S} s" if code < 0 else output.decode(errors="replace").strip()[-400:]
        remedy = "try again, or verifier.warm=false, or Debian's dafny"
        raise _problem("verifier.warm", "the warm judge does not compile", fault, remedy)
    built.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with replacing(built) as fresh:
        fresh.write_bytes(output)
    return output


def _problem(where: str, what: str, got: str, remedy: str) -> InputError:
    return InputError(InputProblem(where, what, got=got, remedy=remedy))
