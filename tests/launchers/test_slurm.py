"""The Slurm script: what each machine of a job is told, with stand-ins for Slurm's own commands."""

import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "launchers" / "slurm.sh"
STAND_INS = {
    "scontrol": "echo first; echo second",
    "srun": """while [[ $1 == --* ]]; do shift; done
    for ((n = 0; n < SLURM_JOB_NUM_NODES; n++)); do SLURM_NODEID=$n "$@"; done""",
}


@pytest.fixture
def told(tmp_path: Path):
    """The words that each machine's launcher is given."""
    commands, launchers = tmp_path / "bin", tmp_path / "checkout" / "launchers"
    commands.mkdir()
    launchers.mkdir(parents=True)
    for name, body in STAND_INS.items():
        (commands / name).write_text(f"#!/usr/bin/env bash\n{body}\n")
        (commands / name).chmod(0o755)
    (launchers / "local.sh").write_text('printf "%s\\n" "$*"\n')

    def run(*words: str, nodes: int) -> list[list[str]]:
        slurm = {"SLURM_SUBMIT_DIR": str(launchers.parent), "SLURM_JOB_ID": "41000", "SLURM_JOB_NODELIST": "some[1-2]"}
        env = {**os.environ, **slurm, "SLURM_JOB_NUM_NODES": str(nodes), "SLURM_GPUS_ON_NODE": "4"}
        env["PATH"] = f"{commands}{os.pathsep}{env['PATH']}"
        done = subprocess.run(["bash", SCRIPT, *words], env=env, capture_output=True, text=True, check=True)
        first, *each = done.stdout.splitlines()
        assert first == "--version", "the environment is made once, before the machines start"
        return [line.split() for line in each]

    return run


def test_machines_differ_in_their_number_alone(told) -> None:
    given = ["+stage=grpo", "parallel=zero2", "run.dir=/shared/run"]
    common = [*given, "parallel.processes=4", "parallel.nodes=2", "parallel.address=first", "parallel.port=21000"]
    assert told(*given, nodes=2) == [[*common, "parallel.node=0"], [*common, "parallel.node=1"]]


def test_one_machine_needs_no_place_to_meet(told) -> None:
    words = ["+stage=grpo", "run.dir=outputs/slurm_41000", "parallel=ddp", "parallel.processes=4"]
    assert told("+stage=grpo", nodes=1) == [words]
