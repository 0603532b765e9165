#!/usr/bin/env python
"""Compare the quick runs of two revisions: python launchers/same_bits.py REVISION [STAGE ...]

Trains 3 steps of each stage with the code of REVISION and with the code of this checkout, on the same machine. Compares
metrics (without times), SHA-256 of the weights, rollout rows and evaluation rows. Exits 1 if a file differs. A change of
structure must leave every bit as it was.
"""

import gzip
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
STAGES = ("grpo", "ppo", "sft", "srl", "cascade", "adversarial", "self_play")
WORDS = "+experiment=quick seed=0 cache.enabled=false parallel.threads=1".split()
DEMO = ("algorithm.pass_k=2", "algorithm.kl_coef=0", "algorithm.advantage_scale=batch")
STEPS = dict.fromkeys(STAGES, ("algorithm.max_steps=3",)) | {"adversarial": (), "self_play": ()}
STEPS["grpo"] += DEMO
"""Adversarial training and self-play need more than three steps: they take those of the quick experiment. GRPO takes the options
of the demonstration, which `+stage=grpo` composed until version 0.1."""
UNEQUAL = re.compile(r"^(time|system)/|seconds$|_s$|^log$")
"""Keys whose values depend on the machine's load, and a verdict's log: of several faults a tool names any."""
ROWS = ("metrics.jsonl", "rollouts/*.jsonl.gz", "evaluation/*.jsonl.gz")
WEIGHTS = "checkpoints/**/*.safetensors"


def main(revision: str, stages: tuple[str, ...]) -> int:
    with tempfile.TemporaryDirectory() as folder:
        before = Path(folder, "before")
        subprocess.run(["git", "-C", CHECKOUT, "worktree", "add", "-q", "--detach", before, revision], check=True)
        try:
            different = [stage for stage in stages if not same(before, Path(folder, stage), stage)]
        finally:
            subprocess.run(["git", "-C", CHECKOUT, "worktree", "remove", "--force", before], check=True)
    return 1 if different else 0


def same(before: Path, folder: Path, stage: str) -> bool:
    """Run a stage with both checkouts, one on each core, and print the differences."""
    with ThreadPoolExecutor(2) as pool:
        old, new = pool.map(run, (before, CHECKOUT), (folder / "before", folder / "after"), (stage, stage))
    differences = list(compared(contents(old), contents(new)))
    count = len(contents(old))
    print(f"{stage}: {'; '.join(differences) or f'{count} files are equal'}", flush=True)
    return bool(count) and not differences


def run(checkout: Path, folder: Path, stage: str) -> Path:
    folder.mkdir(parents=True)
    command = [sys.executable, "-m", "rlvr_exp", f"+stage={stage}", *WORDS, *STEPS[stage], "run.dir=run"]
    environment = os.environ | {"PYTHONPATH": str(checkout)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 3):
        sys.exit(f"{stage} of {checkout} exited {done.returncode}:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    return folder / "run"


def contents(run_folder: Path) -> dict[str, list[str]]:
    """Lines to compare of each file, by its path in the run folder."""
    found = {
        str(path.relative_to(run_folder)): list(rows(path))
        for pattern in ROWS
        for path in sorted(run_folder.glob(pattern))
    }
    for path in sorted(run_folder.glob(WEIGHTS)):
        found[str(path.relative_to(run_folder))] = [hashlib.sha256(path.read_bytes()).hexdigest()]
    return found


def rows(path: Path) -> Iterator[str]:
    text = gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text()
    for line in text.splitlines():
        yield json.dumps(comparable(json.loads(line)), sort_keys=True)


def comparable(value: object) -> object:
    if isinstance(value, dict):
        return {key: comparable(each) for key, each in value.items() if not UNEQUAL.search(key)}
    return [comparable(each) for each in value] if isinstance(value, list) else value


def compared(old: dict[str, list[str]], new: dict[str, list[str]]) -> Iterator[str]:
    for name in sorted(old.keys() | new.keys()):
        if name not in new or name not in old:
            yield f"{name} exists only {'before' if name in old else 'after'}"
        elif old[name] != new[name]:
            yield f"{name} differs{where(old[name], new[name])}"


def where(old: list[str], new: list[str]) -> str:
    """Row and keys of the first difference."""
    for number, (one, other) in enumerate(zip(old, new, strict=False), 1):
        if one != other:
            try:
                first, second = json.loads(one), json.loads(other)
            except json.JSONDecodeError:
                return ""
            keys = [key for key in first.keys() | second.keys() if first.get(key) != second.get(key)]
            return f" in row {number}: {', '.join(sorted(keys)[:8])}"
    return f": {len(old)} rows before, {len(new)} after"


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], tuple(sys.argv[2:]) or STAGES))
