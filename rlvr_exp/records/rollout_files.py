"""Rollouts and their verdicts as files of the run directory: gzipped JSON lines, one row per completion.

Owns `rollouts/step_000010.jsonl.gz` and `evaluation/{before,after}.jsonl.gz`. Files are written atomically, and equal
rows give equal bytes. A prompt is written once, on the first row of its group, and restored on every row when read.
Never verifies.
"""

import gzip
import hashlib
import json
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar

from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.core.files import replacing
from rlvr_exp.episodes.types import Completion, from_plain, to_plain
from rlvr_exp.records.directory import writing
from rlvr_exp.verifiers.base import Verdict

When = Literal["before", "after"]
Mode = Literal["greedy", "sampled"]
STEP_FILE = re.compile(r"step_(\d{6,})\.jsonl\.gz")


@dataclass(frozen=True)
class _Row:
    """A line of a file: a completion and further facts."""

    completion: Completion
    KEYS: ClassVar[tuple[str, ...]]
    """Keys in the file, in their order."""

    @property
    def verdict(self) -> Verdict:
        return self.completion.verdict


@dataclass(frozen=True)
class RolloutRow(_Row):
    """A completion in the file of a training step, with its reward."""

    step: int
    """The step that used it, counted from 1."""
    group: int
    """Index of its group in the step; the samples of a group answer the same prompt."""
    prompt: str
    reward: float | None = None
    """None without a verdict."""
    terms: Mapping[str, float] = field(default_factory=dict)
    """The weighted share of each named term of the reward."""
    advantage: float | None = None
    """Advantage of its first token. None if the step did not train on it."""
    fate: str = "trained"
    """trained, filtered, no_verdict, or pending. The file of a later step repeats a pending row."""
    waited: int = 0
    """Steps since it was sampled."""
    about: Mapping[str, Any] | None = None
    """Facts of the environment about the turn, such as its role. In a cascade, the body that it builds on and the role that
    failed."""
    token_logprobs: Sequence[tuple[str, float]] = ()
    """Text and log-probability of each token, with algorithm.log_token_logprobs."""

    KEYS: ClassVar = (
        "step", "task", "family", "group", "sample", "prompt", "completion", "tokens", "truncated", "outcome", "bucket",
        "rule", "passed", "total", "reward", "terms", "advantage", "log", "fate", "waited", "version", "about",
        "token_logprobs",
    )  # fmt: skip


@dataclass(frozen=True)
class EvalSample(_Row):
    """A completion of an evaluation. Its sample is the index within its task and mode; its seconds are the latency at this
    batch size."""

    mode: Mode
    prompt: str
    about: Mapping[str, Any] | None = None
    """Facts of the environment about the episode. In a cascade, the writer's text and body, the role that failed, and whether
    the body is proved. After a vote, `voted` has the most `answers` per input, and the fewest that solved the task as
    `solved_with` (0: none). `gold` has the cost of the reference answer under the policy (rlvr_exp.evaluation.bits)."""

    KEYS: ClassVar = (
        "task", "family", "mode", "sample", "outcome", "bucket", "completion", "tokens", "log", "seconds", "measures",
        "about", "prompt",
    )  # fmt: skip


Row = TypeVar("Row", bound=_Row)
OPTIONAL = {"about", "measures", "token_logprobs", "version"}
"""Keys that are left out if they are empty. Version 0 is not."""


def to_row(one: _Row) -> dict[str, Any]:
    """By the keys of the file; the completion's own come from rlvr_exp.episodes.types."""
    values = {**vars(one), **to_plain(one.completion)}
    return {name: values[name] for name in one.KEYS}


def from_row(kind: type[Row], row: Mapping[str, Any]) -> Row:
    """From the keys of the file. Raises ValueError or TypeError for an invalid verdict."""
    own = {name: row[name] for name in kind.__dataclass_fields__ if name in row and name != "completion"}
    return kind(from_plain(row), **own)


def write_rollouts(run_dir: Path, step: int, rows: Sequence[RolloutRow]) -> Path:
    """Write the step's file, in the given order.

    Raises:
        ValueError: a row of another step, two prompts in the same group, or a number that is not finite.
    """
    strangers = {row.step for row in rows} - {step}
    if strangers:
        raise ValueError(f"write_rollouts: rows of steps {sorted(strangers)} in the file of step {step}")
    path = run_dir / "rollouts" / f"step_{step:06d}.jsonl.gz"
    _write(path, _once(map(to_row, rows), "group"))
    return path


def read_rollouts(path: Path) -> list[RolloutRow]:
    """The rows of a step, each with its prompt.

    Raises:
        InputError: the file is missing, damaged or of another form.
    """
    return [_typed(RolloutRow, path, row) for row in _refilled(_read(path), "group")]


def rollout_steps(run_dir: Path) -> dict[int, Path]:
    """The existing step files, by step, ascending."""
    found = [(STEP_FILE.fullmatch(path.name), path) for path in (run_dir / "rollouts").glob("step_*.jsonl.gz")]
    return dict(sorted((int(match[1]), path) for match, path in found if match))


def write_evaluation(run_dir: Path, when: When, samples: Iterable[EvalSample]) -> Path:
    """Write the completions of an evaluation."""
    path = evaluation_path(run_dir, when)
    _write(path, _once(map(to_row, samples), "task"))
    return path


def read_evaluation(run_dir: Path, when: When) -> list[EvalSample]:
    """The completions of an evaluation, each with its prompt. Raises InputError like `read_rollouts`."""
    path = evaluation_path(run_dir, when)
    return [_typed(EvalSample, path, row) for row in _refilled(_read(path), "task")]


def evaluation_path(run_dir: Path, when: When) -> Path:
    return run_dir / "evaluation" / f"{when}.jsonl.gz"


def _once(rows: Iterable[dict[str, Any]], key: str) -> Iterator[dict[str, Any]]:
    """Drop the prompt from all but the first row of each key, and empty optional fields."""
    known: dict[Any, str] = {}
    for row in rows:
        for name in OPTIONAL:
            if row.get(name, 0) != 0 and not row[name]:
                del row[name]
        if row[key] not in known:
            known[row[key]] = row["prompt"]
        elif known[row[key]] != row.pop("prompt"):
            raise ValueError(f"rows of one {key} ({row[key]!r}) hold two different prompts")
        yield row


def _refilled(rows: Iterable[dict[str, Any]], key: str) -> Iterator[dict[str, Any]]:
    known: dict[Any, str] = {}
    for row in rows:
        yield {**row, "prompt": known.setdefault(row.get(key), row.get("prompt", ""))}


def _write(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    # no name and no time in the header: a resumed run writes the same bytes as an uninterrupted one
    packed = gzip.compress("".join(json.dumps(row, allow_nan=False) + "\n" for row in rows).encode("ascii"), 6, mtime=0)
    with writing(path), replacing(path) as temporary:
        temporary.write_bytes(packed)


def _read(path: Path) -> list[dict[str, Any]]:
    try:
        with gzip.open(path, "rt", encoding="ascii") as lines:
            rows = [json.loads(line) for line in lines]
        if not path.stat().st_size or not all(isinstance(row, dict) for row in rows):
            raise ValueError("no gzipped rows")
        return rows
    except (OSError, EOFError, ValueError, zlib.error) as fault:
        remedy = "name a run directory with an undamaged copy of this file"
        problem = InputProblem(str(path), "cannot be read as gzipped JSON lines", got=str(fault), remedy=remedy)
        raise InputError(problem) from fault


def _typed(kind: type[Row], path: Path, row: Mapping[str, Any]) -> Row:
    odd = sorted({*kind.KEYS} - OPTIONAL ^ {*row} - OPTIONAL)
    fault = f"keys that differ: {', '.join(odd)}"
    try:
        if not odd:
            return from_row(kind, row)
    except (TypeError, ValueError) as refused:
        fault = str(refused)
    raise InputError(InputProblem(str(path), "rows of another form", got=fault, remedy="name a run of this version"))


@dataclass(frozen=True)
class RunReader:
    """The rollouts of a run directory.

    Raises:
        InputError: there are none.
    """

    directory: Path

    def __post_init__(self) -> None:
        if not self.files:
            raise InputError(
                InputProblem(str(self.directory), "holds no rollouts", remedy="name a run that has rollouts/")
            )

    @property
    def files(self) -> dict[int, Path]:
        """The files by step, ascending."""
        return rollout_steps(self.directory)

    def fingerprint(self) -> str:
        """Hash of all files and their names."""
        digest = hashlib.blake2b(digest_size=16)
        for path in self.files.values():
            digest.update(path.name.encode() + hashlib.blake2b(path.read_bytes()).digest())
        return digest.hexdigest()

    def rows(self) -> Iterator[RolloutRow]:
        """Every row, in the order of the steps."""
        for path in self.files.values():
            yield from read_rollouts(path)
