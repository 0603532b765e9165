"""Where a run of each stage is killed in the tests that always run: drawn from the commit's hash, and printed at their
head."""

import hashlib
import subprocess
from pathlib import Path

POINTS = ("backward", "generation", "logging", "verification", "writing", "written")
STAGES = ("sft", "grpo", "ppo")


def commit() -> str:
    """Empty outside of a checkout."""
    command = ["git", "rev-parse", "HEAD"]
    return subprocess.run(
        command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False
    ).stdout.strip()


def drawn(stage: str, of: str) -> str:
    """A point that depends on the stage and the commit alone."""
    return POINTS[int(hashlib.sha256(f"{of} {stage}".encode()).hexdigest(), 16) % len(POINTS)]


def told() -> str:
    """A line for the head of a test run."""
    of = commit()
    return f"killed at, drawn from commit {of[:10] or '(none)'}: " + ", ".join(
        f"{one} {drawn(one, of)}" for one in STAGES
    )
