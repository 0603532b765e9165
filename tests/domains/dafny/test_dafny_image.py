"""An image is looked for in each engine here, and what is missing is told before the start."""

import re
import shlex
from pathlib import Path

import pytest

from rlvr_exp.core.errors import InputError
from rlvr_exp.domains.dafny.options import DafnyVerifierOptions, build_command
from rlvr_exp.domains.dafny.package import RUNTIME, SOLVER
from rlvr_exp.sandbox.tools import find_image


def engine(folder: Path, name: str, lines: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{lines}\n")
    (folder / name).chmod(0o755)


def test_the_engine_that_holds_the_image_is_taken_with_what_the_name_means_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine(tmp_path, "podman", "echo 'no such image' >&2; exit 125")
    engine(tmp_path, "docker", f'[ "$1$2 $5" = "imageinspect own" ] && echo sha256:12; : {tmp_path}')
    monkeypatch.setenv("PATH", str(tmp_path))
    found = find_image("own", "BUILD")
    assert (found.engine, found.name, found.id) == (str(tmp_path / "docker"), "own", "sha256:12")
    assert list(DafnyVerifierOptions(image="own").missing()) == []


def test_without_engine_or_image_the_command_that_builds_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match="neither podman nor docker is on the PATH"):
        find_image("own", "BUILD")
    engine(tmp_path, "podman", "echo own: image not known >&2; exit 125")
    ((problem, command),) = DafnyVerifierOptions(image="own").missing()
    assert problem.what == "no engine here holds the image" and command == build_command("own")
    assert problem.got == "own; podman: own: image not known"
    *_, file, context = shlex.split(command)
    copied = re.findall(r"^COPY (.+) /opt/$", Path(file).read_text(), re.MULTILINE)
    assert [(Path(context) / name).is_file() for name in copied[0].split()] == [True, True]
    assert all("==".join(wheel) in Path(file).read_text() for wheel in (RUNTIME, SOLVER))
