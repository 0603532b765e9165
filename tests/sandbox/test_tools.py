"""What an engine is told, held against an engine that writes down what it hears; tests/attacks has the real one."""

from pathlib import Path

import pytest

from rlvr_exp.sandbox.tools import Container, ContainerLimits, Image, Lost, run_words

LIMITS = ContainerLimits(memory_mb=512, cpu_s=7)


def test_every_limit_is_told_and_nothing_of_this_machine() -> None:
    words = run_words(Image("/bin/podman", "own", "id1"), "rlvr-1", 20_001, {"A": "b"}, LIMITS)
    assert words[:3] == ("/bin/podman", "run", "--rm") and words[-2:] == ("--entrypoint=sh", "id1")
    wanted = {
        *("--name=rlvr-1", "--network=none", "--read-only", "--user=20001:20001", "--cap-drop=all", "--pull=never"),
        *("--security-opt=no-new-privileges", "--memory=512m", "--memory-swap=512m", "--pids-limit=256", "--env=A=b"),
        *("--ulimit=cpu=7:7", "--ulimit=core=0:0", "--ulimit=nofile=1024:1024", "--ulimit=nproc=1024:1024"),
    }
    assert wanted <= set(words)
    assert not [word for word in words if word.startswith(("--volume", "--mount", "--privileged", "--device"))]
    assert not any("cpu=" in word for word in run_words(Image("e", "own", "i"), "n", 1, {}, ContainerLimits(512)))


def heard(tmp_path: Path, run: str) -> Image:
    """An image of an engine that writes its words to `heard` and then does this when told to run."""
    engine = tmp_path / "podman"
    engine.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/heard\n[ "$1" = run ] || exit 0\n{run}\n')
    engine.chmod(0o755)
    return Image(str(engine), "own", "id1")


@pytest.mark.parametrize(
    ("run", "told"),
    [
        ("sleep 600", "not ready in time"),
        ("echo no such runtime >&2; exit 126", "no such runtime"),
        ("exit 125", "it ended before it was ready"),
        ("echo ready; sleep 600", "its processes are not on this machine"),
    ],
)
def test_a_container_that_does_not_start_is_removed_by_its_name(tmp_path: Path, run: str, told: str) -> None:
    with pytest.raises(Lost, match=f"the container does not start: {told}"):
        Container(heard(tmp_path, run), ["true"], {}, {}, LIMITS, start_s=0.5)
    first, *_, last = (tmp_path / "heard").read_text().splitlines()
    name = next(word for word in first.split() if word.startswith("--name="))
    assert last == f"rm --force {name.removeprefix('--name=')}"
