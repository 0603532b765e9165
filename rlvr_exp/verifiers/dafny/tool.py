"""The installed Dafny: found, its version probed once, and described for the manifest. Nothing is judged here.

Two families are supported: 2.3 (options with a slash, Debian's package) and 4.x (`dafny verify`). Only 2.3 can be kept
warm: it needs mono, its compiler `mcs` (part of Debian's package) and the folder of Dafny's libraries.
"""

import hashlib
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from rlvr_exp.config.verifier import INSTALL_DAFNY
from rlvr_exp.core.errors import InputError, InputProblem

ENVIRONMENT = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LC_ALL": "C.UTF-8", "DOTNET_CLI_TELEMETRY_OPTOUT": "1"}
_PROBE_S, _BUILD_S = 60, 240
_LIBRARY = re.compile(r"(/[^\s\"']+)/Dafny\.exe")
_FULL = re.compile(r"Dafny(?: program verifier version)? (2\.3)[.\d]*|^(4\.\d+)[.\d]*", re.MULTILINE)


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

    def described(self) -> dict[str, str]:
        """Its description for the manifest and the cache's keys."""
        return {"dafny": self.version} | ({"z3": self.prover} if self.prover else {})


@cache
def find(path: str = "", image: str = "") -> Tool:
    """The tool that the options name.

    Args:
        path: the program; empty: `dafny` on the PATH.
        image: a docker image whose entry point is Dafny; takes the place of `path`.

    Raises:
        InputError: both are set, none is there, or its version is unknown.
    """
    if image:
        if path:
            raise _problem("verifier.image", "cannot be set together with verifier.path", image, "set one of them")
        return _probed(_docker(image))
    found = shutil.which(path or "dafny")
    if found is None:
        where = "verifier.path" if path else "dafny"
        raise _problem(where, "Dafny is not there", path, INSTALL_DAFNY)
    return _probed((found,))


def _docker(image: str) -> tuple[str, ...]:
    if shutil.which("docker") is None:
        raise _problem("verifier.image", "docker is not on the PATH", image, "install docker, or set verifier.path")
    # The private folder is the working directory; the container sees it at the same path, and no network.
    return ("docker", "run", "--rm", "--interactive", "--network=none", "--volume=.:/work", "--workdir=/work", image)


def _probed(command: tuple[str, ...]) -> Tool:
    output = _ask(command, "/version") + "\n" + _ask(command, "--version")
    known = _FULL.search(output)
    if known is None:
        got = output.strip().splitlines()[0][:200] if output.strip() else "no answer to /version and --version"
        raise InputError(
            InputProblem(
                "verifier.path", "a Dafny of unknown version", got=got, allowed="2.3, 4.x", remedy=INSTALL_DAFNY
            )
        )
    if known[2]:
        return Tool(command, "4", known[0])
    prover = _ask(("z3",), "--version").strip() if shutil.which("z3") else ""
    return Tool(command, "2.3", known[0], _library(command[0]), prover)


def _library(program: str) -> str:
    """The folder that Debian's start script names, where mono and its compiler are installed too."""
    if not (shutil.which("mono") and shutil.which("mcs")):
        return ""
    head = Path(program).read_bytes()[:4096].decode("latin-1")
    named = _LIBRARY.search(head)
    return named[1] if head.startswith("#!") and named and Path(named[1], "DafnyPipeline.dll").exists() else ""


def _ask(command: tuple[str, ...], word: str) -> str:
    try:
        done = subprocess.run(
            [*command, word],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PROBE_S,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout


def build(tool: Tool, source: Path) -> Path:
    """The program of the warm process, compiled once per Dafny and source into the user's cache folder.

    Raises:
        InputError: it does not compile against this Dafny.
    """
    text = source.read_bytes()
    key = hashlib.blake2b(text + tool.version.encode() + tool.library.encode(), digest_size=10).hexdigest()
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    built = Path(base, "rlvr_exp", "dafny", key, "warm.exe")
    if built.exists():
        return built
    built.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    fresh = built.with_name(f"warm.{os.getpid()}.exe")
    names = ("DafnyPipeline", "BoogieExecutionEngine", "BoogieCore", "BoogieBasetypes", "BoogieVCGeneration")
    libraries = [f"-r:{tool.library}/{name}.dll" for name in names] + [f"-r:{tool.library}/Dafny.exe"]
    command = ["mcs", *libraries, f"-out:{fresh}", str(source)]
    remedy = "verifier.warm=false, or Debian's dafny"
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_BUILD_S, check=False)
    except subprocess.TimeoutExpired as slow:
        got = f"no end within {slow.timeout:g} s"
        raise _problem("verifier.warm", "the warm judge does not compile", got, f"try again, or {remedy}") from None
    if done.returncode:
        output = (done.stdout + done.stderr).strip()[-400:]
        raise _problem("verifier.warm", "the warm judge does not compile", output, remedy)
    fresh.replace(built)
    return built


def _problem(where: str, what: str, got: str, remedy: str) -> InputError:
    return InputError(InputProblem(where, what, got=got, remedy=remedy))
