"""launchers/slurm.sh under a real Slurm of two nodes, which are two names of this machine."""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import trajectories
from program import ENVIRONMENT

from rlvr_exp.launch.children import free_port

ROOT = Path(__file__).parents[2]
NAMES = (socket.gethostname(), "localhost")
CONF = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
NodeName={names[0]} NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=1
NodeName={names[1]} NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=1
PartitionName=low Nodes=ALL Default=YES PriorityTier=1 PreemptMode=REQUEUE GraceTime=120
PartitionName=high Nodes=ALL PriorityTier=10 PreemptMode=OFF
"""
WAIT_S = 300
SMALL = [*trajectories.STAGES["grpo"], "parallel.threads=1", "sandbox.workers=1"]


def missing() -> str:
    """Why no Slurm can be started here; empty if one can."""
    absent = [name for name in ("munged", "slurmctld", "slurmd", "sbatch") if shutil.which(name) is None]
    if absent or os.geteuid() != 0:
        return f"needs root and {', '.join(absent) or 'nothing else'} (Debian: slurm-wlm, munge)"
    return "" if NAMES[0] != NAMES[1] else "needs a machine with a name of its own"


REASON = missing()
pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(REASON), reason=REASON)]


class Cluster:
    """Commands of Slurm, and the jobs that they submit."""

    def __init__(self, folder: Path):
        self.environment = {**ENVIRONMENT, "SLURM_CONF": str(folder / "slurm.conf"), "OMP_NUM_THREADS": "1"}

    def __call__(self, *command: str) -> str:
        done = subprocess.run(command, env=self.environment, cwd=ROOT, capture_output=True, text=True, check=True)
        return done.stdout

    def submit(self, said: Path, *words: str) -> str:
        """The number of a job of the script; what it prints is in `said`."""
        return self("sbatch", "--parsable", f"--output={said}", *words).strip()

    def wait(self, job: str, state: str, said: Path) -> str:
        """Until the job has this state; what Slurm knows of it."""
        deadline = time.monotonic() + WAIT_S
        while f"JobState={state} " not in (about := self("scontrol", "show", "job", job)):
            assert time.monotonic() < deadline, about + said.read_text()
            time.sleep(0.5)
        return about


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("slurm")
    ports = [free_port() for _ in range(3)]
    (folder / "state").mkdir()
    (folder / "slurm.conf").write_text(CONF.format(host=NAMES[0], names=NAMES, folder=folder, ports=ports))
    (folder / "munge.key").write_bytes(os.urandom(1024))
    (folder / "munge.key").chmod(0o400)
    cluster, daemons = Cluster(folder), []
    files = [f"--{name}-file={folder}/munge.{name}" for name in ("key", "log", "pid", "seed")]
    commands = [
        ["munged", "--foreground", "--force", f"--socket={folder}/munge.socket", *files],
        ["slurmctld", "-D"],
        *(["slurmd", "-D", "-N", name] for name in NAMES),
    ]
    try:
        for command in commands:
            with open(folder / f"daemon{len(daemons)}.txt", "wb") as log:
                daemons.append(subprocess.Popen(command, env=cluster.environment, stdout=log, stderr=log))
        deadline = time.monotonic() + 60
        while "idle" not in (
            nodes := subprocess.run(
                ["sinfo", "-h", "-p", "low", "-t", "idle", "-o", "%D %t"],
                env=cluster.environment,
                capture_output=True,
                text=True,
            ).stdout
        ) or not nodes.startswith("2"):
            assert time.monotonic() < deadline, [path.read_text() for path in folder.glob("daemon*")]
            time.sleep(0.5)
        yield cluster
    finally:
        for one in reversed(daemons):
            one.terminate()
            one.wait(30)


def test_two_nodes_compute_what_two_processes_of_one_machine_do(slurm: Cluster, tmp_path: Path) -> None:
    said, words = tmp_path / "said.txt", [*SMALL, f"data.path={trajectories.data('grpo')}", "parallel=ddp"]
    job = slurm.submit(said, "--nodes=2", "launchers/slurm.sh", *words, f"run.dir={tmp_path / 'run'}")
    slurm.wait(job, "COMPLETED", said)
    (tmp_path / "local").mkdir()
    local = trajectories.whole(
        trajectories.program, [*SMALL, "parallel=ddp", "parallel.processes=2"], tmp_path / "local"
    )
    differing = trajectories.differences(local, tmp_path / "run")
    assert all(name.endswith("/checkpoint.json") for name in differing), "these name the plan of the processes"


@pytest.mark.parametrize("nodes", [1, 2])
def test_a_preempted_job_goes_on_where_it_stopped(nodes: int, slurm: Cluster, tmp_path: Path) -> None:
    said, run, steps = tmp_path / "said.txt", tmp_path / "run", "algorithm.max_steps=40"
    words = [*SMALL, f"data.path={trajectories.data('grpo')}", steps, f"run.dir={run}"]
    job = slurm.submit(said, f"--nodes={nodes}", "launchers/slurm.sh", *words)
    deadline = time.monotonic() + WAIT_S
    while not (run / "checkpoints" / "latest").exists():
        assert time.monotonic() < deadline, said.read_text()
        time.sleep(0.1)
    other = slurm.submit(tmp_path / "other.txt", "--partition=high", "--nodes=2", "--wrap=sleep 3")
    slurm.wait(other, "COMPLETED", said)
    about = slurm.wait(job, "COMPLETED", said)
    text = said.read_text()
    assert "Restarts=1" in about, about + text
    assert "a checkpoint was written" in text and "resuming after step" in text, text
    (tmp_path / "whole").mkdir()
    alike = [*SMALL, steps, "parallel=ddp", f"parallel.processes={nodes}"]
    whole = trajectories.whole(trajectories.program, alike, tmp_path / "whole")
    differing = trajectories.without_extra(whole, run)
    assert all(nodes == 2 and name.endswith("/checkpoint.json") for name in differing), "these name the plan"


def test_a_job_whose_time_is_up_ends_with_a_checkpoint_and_is_not_queued_again(slurm: Cluster, tmp_path: Path) -> None:
    said, run = tmp_path / "said.txt", tmp_path / "run"
    words = [*SMALL, f"data.path={trajectories.data('grpo')}", "algorithm.max_steps=4000", f"run.dir={run}"]
    job = slurm.submit(said, "--time=3", "launchers/slurm.sh", *words)
    about = slurm.wait(job, "FAILED", said)
    assert "ExitCode=130:0" in about and "Restarts=0" in about
    assert (run / "checkpoints" / "latest").exists() and "continue with:" in said.read_text()
