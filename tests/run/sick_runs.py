"""Runs that are sick, made for real by the command line in one process.

    python tests/run/sick_runs.py FOLDER [full] [NAME ...]

Each leaves FOLDER/NAME/report.html, and its first cause on the terminal. `full`: with the batches of the default run.
"""

import json
import sys
from pathlib import Path

from rlvr_exp.main import main

OWN = f"hydra.searchpath=[{Path(__file__).parent / 'sick'}]"
TINY = (
    "+stage=grpo", "evaluation.tasks=16", "evaluation.samples=4", "algorithm.prompts_per_step=8", "algorithm.max_steps=6",
    "scheduler.warmup_steps=2", "run.checkpoint.every_steps=100", "run.inline=true", "sandbox.workers=1",
)  # fmt: skip
FULL = ("+stage=grpo", "algorithm.max_steps=40", "evaluation.tasks=100")
NO_GOLDS = "verifier.validate=0"
RUNS = {
    "healthy": (),
    "learning_rate": ("optimizer.lr=1e-30",),
    "parse": (OWN, "data=deaf", NO_GOLDS),
    "no_verdict": (OWN, "verifier=down", NO_GOLDS, "verifier.max_no_verdict_rate=1"),
    "entropy_collapse": ("algorithm.temperature=0.01",),
    "truncation": ("model.max_completion_tokens=4",),
    "constant_reward": (OWN, "reward=constant"),
    "reward_hacking": (OWN, "reward=long", "optimizer.lr=2e-3"),
    "exploding": ("optimizer.lr=1.0",),
}
"""By the first cause that is to be found."""


def make(folder: Path, size: tuple[str, ...], names: list[str]) -> None:
    """Each run in FOLDER/NAME; how it ended is in its summary."""
    for name in names:
        main([*size, *RUNS[name], f"run.dir={folder / name}"])
        summary = json.loads((folder / name / "summary.json").read_text())
        print(f"{name}: {summary['status']}: {summary.get('diagnosis')}", flush=True)


if __name__ == "__main__":
    place, *words = sys.argv[1:]
    wanted = [word for word in words if word != "full"] or list(RUNS)
    make(Path(place), FULL if "full" in words else TINY, wanted)
