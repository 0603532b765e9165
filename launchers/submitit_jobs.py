"""Hand the jobs of a sweep to Slurm one by one, by submitit: an extra, pip install 'rlvr_exp[submitit]'.

    .venv/bin/python launchers/submitit_jobs.py --set gpus_per_node=2 --set timeout_min=600 +stage=grpo seed=0,1,2

Words are those of `python -m rlvr_exp --multirun`. All jobs are checked before any is submitted; each is a run of its
own in its own run directory, which is printed with its number. --set gives parameters of submitit's executor; --cluster
local runs the jobs on this machine, --wait stays until all have ended and ends with 1 where one has failed. Works from
any folder.
"""

import argparse
import os
import subprocess
import sys
from datetime import datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import submitit

from rlvr_exp.core.errors import InputError
from rlvr_exp.runs.sweep import expand, sweep_directories


class Run:
    """One run, as submitit calls it on the machine that the job was given: this checkout, in a process of its own."""

    def __init__(self, words: list[str]):
        self.command = [sys.executable, "-m", "rlvr_exp", *words]
        self.path = sys.path[0]

    def __call__(self) -> None:
        subprocess.run(self.command, env={**os.environ, "PYTHONPATH": self.path}, check=True)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cluster", choices=("slurm", "local"), default="slurm")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a parameter of the executor")
    parser.add_argument("--folder", default="outputs/submitit", help="for submitit's own files")
    parser.add_argument("--wait", action="store_true")
    asked, words = parser.parse_known_args(arguments)
    try:
        jobs = expand([word for word in words if word != "--multirun"])
        _, directories = sweep_directories(jobs, datetime.now())
    except InputError as fault:
        print(fault, file=sys.stderr)
        return fault.exit_code
    executor = submitit.AutoExecutor(folder=asked.folder, cluster=asked.cluster)
    executor.update_parameters(**dict(_parameter(text) for text in asked.set))
    submitted = []
    for job, directory in zip(jobs, directories, strict=True):
        own = [word for word in job.words if not word.startswith("run.dir=")]
        submitted.append(executor.submit(Run([*own, f"run.dir={directory.absolute()}"])))
        print(submitted[-1].job_id, directory, flush=True)
    return int(asked.wait and any(job.exception() is not None for job in submitted))


def _parameter(text: str) -> tuple[str, int | str]:
    name, _, value = text.partition("=")
    return name, int(value) if value.isdigit() else value


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
