"""Small runs of every training stage, and the comparison of two of them: everything that determines or records a
trajectory."""

import atexit
import gzip
import json
import lzma
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from program import ENVIRONMENT, PROGRAM

from rlvr_exp.config.tree import PACKAGE
from rlvr_exp.core.sealed import CARD
from rlvr_exp.records.rollout_files import read_evaluation, read_rollouts, rollout_steps, to_row
from rlvr_exp.solutions.store import SolutionStore

HERE = Path(__file__).parent
EMBEDDED = PACKAGE / "assets"
TRAINS = {"arc": "train", "edits": "practice"}
"""The embedded split that is trained on, of each corpus."""
STEPS = 5
EVERY = 2
"""Steps between checkpoints."""
SMALL = [
    f"algorithm.max_steps={STEPS}",
    f"run.checkpoint.every_steps={EVERY}",
    "run.checkpoint.keep=9",
    "evaluation.tasks=2",
    "evaluation.samples=2",
    "verifier.validate=1",
]
RL = ["algorithm.prompts_per_step=4", "algorithm.group_size=3"]
SELECT = ["run.select.every_steps=2", "run.select.tasks=2", "run.select.samples=2"]
STAGES = {
    "grpo": [
        "+stage=grpo",
        *SMALL,
        *RL,
        "reward=normalized",
        "algorithm.kl_coef=0.04",
        "algorithm.iterations=3",
        "algorithm.reference_sync_steps=2",
        "algorithm.entropy_target=0.9",
        "algorithm.entropy_unit=start",
        "run.log_every_steps=2",
    ],
    "ppo": [
        "+stage=ppo",
        *SMALL,
        *RL,
        "algorithm.iterations=2",
        "algorithm.minibatches=2",
        "algorithm.replay_steps=2",
        "algorithm.replay_prompts=2",
        "algorithm.reference_sync_steps=3",
        "algorithm.kl_coef=0.05",
        "reward=normalized",
    ],
    "sft": [
        "+stage=sft",
        *SMALL,
        *SELECT,
        "model=tiny_lora",
        "model.adapter.dropout=0.1",
        "algorithm.batch_size=16",
        "algorithm.eval_every_steps=3",
    ],
    "dapo": [
        "+stage=grpo",
        "algorithm=dapo",
        *SMALL,
        *RL,
        "algorithm.rollout_steps=2",
        "algorithm.resample_budget=3",
        "run.select.metric=reward/mean",
        "optimizer=muon",
    ],
    "sdpo": ["+stage=grpo", "algorithm=sdpo", *SMALL, *RL, "algorithm.iterations=3", "run.log_every_steps=2"],
    "srpo": ["+stage=grpo", "algorithm=srpo", *SMALL, *RL, "model=tiny_lora", "algorithm.kl_coef=0.04"],
    "distill": [
        "+stage=distill",
        *SMALL,
        *RL,
        "model.from_scratch=true",
        "roles.teacher.model.embedded=tiny",
        "algorithm.distillation_weight=0.5",
    ],
    "srl": [
        "+stage=srl",
        *SMALL,
        *RL,
        "environment=edits",
        "algorithm.rollout_steps=2",
        "algorithm.resample_budget=3",
        "algorithm.kl_coef=0.04",
        "run.select.times=2",
        "run.select.tasks=2",
    ],
    "self_play": [
        "+stage=self_play",
        *SMALL,
        *SELECT,
        "data.limit=400",
        "curriculum=learnability",
        "algorithm.batch_size=16",
        "algorithm.eval_every_steps=3",
        "self_play.rounds=2",
        "self_play.weights=base",
        "self_play.tasks=12",
        "self_play.samples=2",
        "self_play.refine=1",
        "self_play.refined=0.2",
        "self_play.correct=0.1",
    ],
}
"""Each with much state: several updates per batch, a moving reference, replay, a normaliser, pending groups, dropout,
the best so far, epochs that end within the run."""
SAMPLING = {"grpo": 4, "ppo": 5, "sft": 4, "dapo": 3, "sdpo": 4, "srpo": 3, "distill": 3, "srl": 3, "self_play": 3}
"""A step in which completions are sampled, after the first checkpoint."""
SIGNALS = (signal.SIGINT, signal.SIGTERM)
"""Signals that request a stop."""
MACHINE = ("time/", "system/")
BY_VALUE = "_optim_states.pt"
"""Of DeepSpeed."""
PADDED = "fp32_flat_groups"
"""ZeRO-3's shards of the weights, which are in model.safetensors too: they end in padding that DeepSpeed never sets."""


def program(words: list[str], place: Path, env: dict[str, str], said: Path) -> int:
    """A run as a person starts it; its exit code, negative for a signal."""
    paths = os.pathsep.join([str(HERE), str(HERE.parents[1])])
    whole = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1", **env}
    with open(said, "a") as out:
        command = [sys.executable, "-m", "killed_program", *words]
        to = {"stdout": out, "stderr": out, "timeout": 1800, "check": False}
        return subprocess.run(command, cwd=place, env=whole, **to).returncode


def forked(words: list[str], place: Path, env: dict[str, str], said: Path, by: int = 0, after_s: float = 0.0) -> int:
    """The same from a process that has imported everything.

    Args:
        by: a signal that its parent is sent; 0: none.
        after_s: seconds after it has taken `place/run` at which it is.
    """
    with open(said, "a") as out:
        run = subprocess.Popen([*PROGRAM, *words], cwd=place, env={**ENVIRONMENT, **env}, stdout=out, stderr=out)
    if by:
        while not (place / "run" / ".lock").exists() and run.poll() is None:
            time.sleep(0.02)
        time.sleep(after_s)
        run.send_signal(by)
    return run.wait(1800)


Runner = Callable[..., int]
"""`program` or `forked`."""


def kept_rows(path: Path) -> list[Any]:
    """The rows of a round of self-play, without CPU times."""
    rows = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    for row in rows:
        del row["solution"]["seconds"]
    return rows


def solutions(path: Path) -> list[Any]:
    """What a store holds, in its order, without CPU times."""
    with SolutionStore(path, read_only=True) as store:
        return [replace(one, verdict=replace(one.verdict, seconds=0.0)) for one in store.find()]


def trace(run: Path) -> dict[str, Any]:
    """Everything of a run that another run with the same seed shares. A model card names the commands that resumed its run."""
    found: dict[str, Any] = {"metrics": rows(run)}
    found["rollouts"] = {step: read_rollouts(path) for step, path in rollout_steps(run).items()}
    for when in ("before", "after"):
        found[when] = read_evaluation(run, when)
    found["rounds"] = {path.name: kept_rows(path) for path in sorted(run.glob("self_play/*"))}
    found["solutions"] = {path.name: solutions(path) for path in run.glob("*.sqlite")}
    summary = json.loads((run / "summary.json").read_text())
    found["summary"] = {name: summary[name] for name in ("status", "steps", "before", "after")}
    found["links"] = {link: link_of(run, link) for link in ("latest", "best")}
    for folder in sorted((run / "checkpoints").glob("step_*")):
        for path in sorted(path for path in folder.rglob("*") if path.is_file() and path.name != CARD):
            name = path.relative_to(folder).as_posix()
            found[f"{folder.name}/{name}"] = held(path)
    return found


def rows(run: Path) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [without_machine(line) for line in lines]


def seconds_of(run: Path) -> float:
    """How long it took."""
    return json.loads((run / "summary.json").read_text())["seconds"]


def link_of(run: Path, name: str) -> str | None:
    link = run / "checkpoints" / name
    return link.resolve().name if link.exists() else None


def held(path: Path) -> Any:
    """A file of a checkpoint: its bytes, or its values where some of them are times or meaningless."""
    if path.name == "checkpoint.json":
        said = json.loads(path.read_text())
        sums = {name: value for name, value in said["sha256"].items() if "/rank_" not in name and BY_VALUE not in name}
        return {key: value for key, value in said.items() if key not in ("sha256", "seal")} | {"sha256": sums}
    if path.name.startswith("rank_"):
        return without_machine(torch.load(path, weights_only=True))
    if BY_VALUE in path.name:
        state = torch.load(path, weights_only=False)["optimizer_state_dict"]
        return without_machine({key: value for key, value in state.items() if key != PADDED})
    return path.read_bytes()


def without_machine(value: Any) -> Any:
    """Without times, at any depth; tensors as their bytes."""
    if isinstance(value, dict):
        return {key: without_machine(part) for key, part in value.items() if not str(key).startswith(MACHINE)}
    if isinstance(value, list | tuple):
        return [without_machine(part) for part in value]
    if isinstance(value, torch.Tensor):
        return [str(value.dtype), list(value.shape), value.contiguous().flatten().view(torch.uint8).numpy().tobytes()]
    if hasattr(value, "__dict__"):
        return without_machine(vars(value))
    return repr(value) if isinstance(value, float) else value


def differing(first: dict[str, Any], second: dict[str, Any]) -> list[str]:
    """Where two traces differ."""
    names = sorted(first.keys() | second.keys())
    return [name for name in names if first.get(name) != second.get(name)]


def data(*words: str) -> Path:
    """The first tasks of each embedded split: loading all of them takes longer than these runs."""
    return few_tasks("edits" if "+stage=srl" in words else "arc")


@cache
def few_tasks(corpus: str) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="few-tasks-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for split, source, count in (("train", TRAINS[corpus], 60), ("dev", "dev", 8), ("test", "test", 8)):
        with lzma.open(EMBEDDED / corpus / f"{source}.jsonl.xz", "rt") as lines:
            (folder / f"{split}.jsonl").write_text("".join(islice(lines, count)))
    return folder


def whole(runner: Runner, words: list[str], place: Path, directory: str = "") -> Path:
    """A run from start to end, in `place/run`, which may be named by a path relative to the place."""
    said = place / "said.txt"
    code = runner([*words, f"data.path={data(*words)}", f"run.dir={directory or place / 'run'}"], place, {}, said)
    assert code == 0, said.read_text()[-4000:]
    return place / "run"


def where(place: Path, words: list[str]) -> list[str]:
    """Options of a run that starts or resumes in a place."""
    return [f"data.path={data(*words)}", f"run.dir={place / 'run'}", "run.resume=auto"]


def go_on(runner: Runner, words: list[str], place: Path, env: dict[str, str] | None = None) -> int:
    """Start or resume, as the directory allows; the exit code."""
    return runner([*words, *where(place, words)], place, env or {}, place / "said.txt")


def killed_and_resumed(
    runner: Runner,
    stage: str,
    point: str,
    place: Path,
    whole_run: Path | None = None,
    words: list[str] | None = None,
    **more: str,
) -> list[str]:
    """Die at the point, resume, and compare the result with a run that never stopped: where they differ."""
    words = words or STAGES[stage]
    (place / "whole").mkdir()
    step = SAMPLING[stage] if point in ("generation", "verification") else 4
    reference = whole_run or whole(runner, words, place / "whole")
    code = go_on(runner, words, place, {"KILL_POINT": point, "KILL_STEP": str(step), **more})
    assert code in (-9, 1) and not (place / "run" / "evaluation" / "after.json").exists(), said_in(place)
    assert "kill" in said_in(place).lower() or code == -9, "the run ended by itself"
    assert go_on(runner, words, place) == 0, said_in(place)
    assert "resuming after step" in said_in(place)
    return differences(reference, place / "run")


def stopped_and_resumed(runner: Runner, words: list[str], place: Path, after_s: float, by: int) -> tuple[int, bool]:
    """Send a run a signal so many seconds after it has claimed its directory, then resume it until its end.

    Returns:
        The exit code of the stopped run, and whether it left a checkpoint.
    """
    code = runner([*words, *where(place, words)], place, {}, place / "said.txt", by=by, after_s=after_s)
    if code == 0:  # It was faster than the one that the moment was drawn from.
        shutil.rmtree(place / "run")
        return stopped_and_resumed(runner, words, place, after_s / 2, by)
    kept = (place / "run" / "checkpoints" / "latest").exists()
    assert go_on(runner, words, place) == 0, said_in(place)
    return code, kept


def without_extra(reference: Path, run: Path) -> list[str]:
    """Where a stopped run differs from an uninterrupted one, except for its additional checkpoints."""
    first, second = trace(reference), trace(run)
    kept = {name for name in first if name.startswith("step_")}
    extra = {name.partition("/")[0] for name in second if name.startswith("step_") and name not in kept}
    return [name for name in differing(first, second) if name.partition("/")[0] not in extra]


def untouched(run: Path) -> dict[str, int]:
    """When each file was last changed, except for the lock that every start takes."""
    return {str(path): path.lstat().st_mtime_ns for path in sorted(run.rglob("*")) if path.name != ".lock"}


def said_in(place: Path) -> str:
    log = place / "run" / "log.txt"
    return (place / "said.txt").read_text()[-4000:] + (log.read_text()[-4000:] if log.exists() else "")


def differences(first: Path, second: Path) -> list[str]:
    """Where two runs differ, except for what depends on the machine."""
    return differing(trace(first), trace(second))


def judged(run: Path) -> dict[str, Any]:
    """The samples of the first step and of the evaluation before it, and their verdicts."""
    step = read_rollouts(rollout_steps(run)[1])
    names = ("group", "sample", "task", "prompt", "completion", "tokens", "outcome", "bucket", "rule", "passed", "log")
    before = [
        {name: value for name, value in to_row(one).items() if name != "seconds"}
        for one in read_evaluation(run, "before")
    ]
    return {"step": [[to_row(one)[name] for name in names] for one in step], "before": before}
