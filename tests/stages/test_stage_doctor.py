"""+stage=doctor: real probes of this machine, and the same probes with a tool that is missing, broken, too old or hanging."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from program import ENVIRONMENT, INTERPRETED, run_program

from rlvr_exp.config.compose import compose
from rlvr_exp.domains.dafny.tool import passed_over
from rlvr_exp.main import main
from rlvr_exp.stages import doctor
from rlvr_exp.stages.doctor import Probe, finding_of, findings, line_of


def program(folder: Path, name: str, script: str) -> Path:
    path = folder / name
    path.write_text(script)
    path.chmod(0o755)
    return path


@pytest.fixture
def only(tmp_path, monkeypatch):
    """A folder that is the complete PATH."""
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def probed(name: str) -> doctor.Finding:
    (probe,) = (one for one in doctor.probes() if one.name == name)
    return finding_of(probe)


@pytest.mark.parametrize("name", ["python", "packages", "torch", "memory", "disk", "sandbox"])
def test_what_these_tests_need_works_here(name):
    found = probed(name)
    assert (found.state, found.remedy, found.needed) == ("works", "", True), found
    assert name != "sandbox" or "judges 10 samples correctly; isolation " in found.found


def test_a_broken_torch_is_reported_with_the_command_and_the_main_job_is_not_tried(tmp_path, monkeypatch):
    (tmp_path / "torch.py").write_text("raise ImportError('libcudart.so.13: cannot open shared object file')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    torch, job = findings([Probe("torch", doctor.torch, needed=True)])
    assert torch.state == "broken" and torch.found.endswith("libcudart.so.13: cannot open shared object file")
    assert torch.remedy == "pip install --force-reinstall --no-deps 'torch>=2.13'"
    assert (job.state, job.found) == ("skipped", "it needs torch")
    assert "fix: pip install" in line_of(torch)


def test_a_tool_that_is_missing_is_absent_and_a_tool_that_fails_is_broken(only):
    assert probed("slurm").state == probed("container").state == "absent"
    program(only, "docker", "#!/bin/sh\necho 'Cannot connect to the Docker daemon' >&2; exit 1\n")
    program(only, "sinfo", "not a program of this machine")
    assert "Cannot connect to the Docker daemon" in probed("container").found
    slurm = probed("slurm")
    assert (slurm.state, slurm.needed) == ("broken", False) and "does not start: Exec format error" in slurm.found


def test_a_container_engine_and_slurm_that_answer_work(only):
    program(only, "podman", "#!/bin/sh\n[ $1 = info ] && echo 5.4.0 || printf 'a1\\nb2\\n'\n")
    program(only, "sinfo", "#!/bin/sh\n[ $1 = --version ] && echo slurm 24.05.1 || printf 'gpu*\\ncpu\\n'\n")
    container, slurm = probed("container"), probed("slurm")
    assert (container.state, container.version) == ("works", "5.4.0") and "2 images" in container.found
    assert (slurm.state, slurm.version, slurm.found) == ("works", "24.05.1", "answers; partitions: gpu*, cpu")


def test_a_tool_that_hangs_is_killed_with_its_children(tmp_path):
    path = program(tmp_path, "tool", f"#!/bin/sh\n/bin/sleep 1000 & echo $! > {tmp_path}/pid; wait\n")
    with pytest.raises(doctor.Unusable, match="tool did not end within 1 s"):
        doctor.output_of([str(path)], 1)
    child, deadline = Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}/stat"), time.monotonic() + 20
    while child.exists() and child.read_text().split()[2] != "Z":
        assert time.monotonic() < deadline, "the tool's child is alive"
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("#!/bin/sh\n[ $1 = /version ] && echo Dafny 2.3.0.10506 || exit 1\n", "is Dafny 2.3.0.10506, older than 4.4"),
        ("#!/bin/sh\nexit 1\n", "is broken: it reports no version"),
        ("#!/bin/sh\necho 4.9.1\n", ""),
    ],
)
def test_a_dafny_that_is_too_old_or_broken_is_named(only, script, expected):
    program(only, "dafny", script)
    assert expected in passed_over() and bool(passed_over()) == bool(expected)


def test_requirements_that_are_not_met_are_named_with_the_versions(monkeypatch):
    monkeypatch.setattr(doctor, "requirements", lambda: {"": ["numpy>=1", "trl==0.1", "no-such-package>=3"]})
    found = probed("packages")
    assert found.state == "broken" and found.found.endswith("; no-such-package is not installed")
    assert found.remedy == "pip install 'trl==0.1' 'no-such-package>=3'"


@pytest.mark.slow
def test_a_verifier_with_a_wrong_verdict_is_broken(tmp_path, monkeypatch):
    rows = doctor.json_rows(doctor.rows_of("ast_grep"))
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps({**row, "expect": "passed"}) + "\n" for row in rows))
    monkeypatch.setattr(doctor, "rows_of", lambda name: tmp_path / "rows.jsonl")
    found = finding_of(Probe("ast_grep", lambda: doctor.judge("ast_grep")))
    assert found.state == "broken" and "wrong: failed wrong_answer instead of passed" in found.found


def test_the_json_object_holds_every_finding_and_the_exit_code_agrees(monkeypatch, capsys):
    def broken() -> doctor.Finding:
        raise doctor.Unusable("it does not start", "install it again")

    monkeypatch.setattr(doctor, "probes", lambda: [Probe("python", doctor.python, True), Probe("torch", broken, True)])
    assert doctor.main(compose(["+stage=doctor"]).config, as_json=True) == 2
    written = json.loads(capsys.readouterr().out)
    assert written["runs"] is False
    assert [one["state"] for one in written["findings"]] == ["works", "broken", "skipped"]
    assert written["findings"][1] | {"seconds": 0} == {
        "name": "torch",
        "state": "broken",
        "version": "",
        "found": "it does not start",
        "remedy": "install it again",
        "needed": True,
        "seconds": 0,
    }


def test_the_plan_writes_nothing_and_the_flag_is_of_this_stage_alone(tmp_path, capsys):
    assert main(["+stage=doctor", "run.dry=true"]) == 0
    assert "writes:      nothing" in capsys.readouterr().out
    assert main(["+stage=grpo", "--json"]) == 2
    assert "--json: only +stage=doctor prints JSON" in capsys.readouterr().err


@pytest.mark.slow
def test_the_main_job_runs_here_and_no_file_is_left(tmp_path):
    env = {**ENVIRONMENT, "TMPDIR": str(tmp_path), "PATH": os.environ["PATH"]}
    done = run_program(tmp_path, "+stage=doctor", "--json", env=env)
    written = json.loads(done.stdout)
    assert (done.returncode, written["runs"]) == (0, True)
    state = {one["name"]: one["state"] for one in written["findings"]}
    assert state["main job"] == state["torch"] == state["sandbox"] == "works" and state["ray"] in ("works", "absent")
    assert [*tmp_path.iterdir()] == []


@pytest.mark.slow
def test_without_torch_the_table_ends_with_exit_code_2(tmp_path):
    """The command line, the sandbox and this stage import no torch."""
    (tmp_path / "torch.py").write_text("raise ImportError('broken')")
    env = {**ENVIRONMENT, "PYTHONPATH": os.pathsep.join([str(tmp_path), ENVIRONMENT["PYTHONPATH"]])}
    command = [*INTERPRETED, "+stage=doctor"]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 2 and "torch      broken" in done.stdout and "sandbox    works" in done.stdout
    assert done.stdout.endswith("The main job (+stage=grpo with the default model) does not run here.\n"), (
        sys.executable
    )
