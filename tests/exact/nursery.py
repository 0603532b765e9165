"""A process that has imported everything once and forks for each run: twelve seconds of imports less each time.

`python -m nursery` reads requests, one JSON object a line, and answers each with the exit status of its run, which was
made in a process of its own with `run.inline=true`. A run that is killed takes that process alone with it.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


class Nursery:
    """Its owner's side; a context manager."""

    def __enter__(self) -> "Nursery":
        env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), str(HERE.parents[1])]), "OMP_NUM_THREADS": "1"}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "env": env}
        self._process = subprocess.Popen([sys.executable, "-m", "nursery"], **pipes)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.stdin.close()
        self._process.wait(timeout=60)

    def run(self, words: list[str], place: Path, env: dict[str, str], said: Path) -> int:
        """The exit code, negative where a signal ended the run; what it printed goes to the file `said`."""
        request = {"words": words, "place": str(place), "env": env, "said": str(said)}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())


def _one(request: dict) -> int:
    """Fork, run, wait."""
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        return os.waitstatus_to_exitcode(status)
    code = 1
    try:
        os.setsid()
        out = os.open(request["said"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(out, 1)
        os.dup2(out, 2)
        os.environ.update(request["env"])
        os.chdir(request["place"])
        import killing

        from rlvr_exp.main import main

        killing.install()
        code = main([*request["words"], "run.inline=true"])
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def serve() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # Libraries print as they are imported.
    import rlvr_exp.stages.reinforcement
    import rlvr_exp.stages.sft  # noqa: F401

    for line in sys.stdin:
        answers.write(f"{_one(json.loads(line))}\n")
        answers.flush()


if __name__ == "__main__":
    serve()
