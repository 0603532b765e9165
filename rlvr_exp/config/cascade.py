"""Options of +stage=cascade: which role learns when, its credit, and the folders that roles start from."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from rlvr_exp.config.algorithm import queues, without_queues
from rlvr_exp.config.options import option
from rlvr_exp.core.errors import InputProblem

WRITER, ANNOTATOR = ROLES = ("writer", "annotator")
MODES = ("annotator_only", "writer_on_cascade_reward", "alternating", "joint")
CREDITS = ("annotator_only", "shared", "counterfactual")


@dataclass
class Cascade:
    """A writer of bodies and an annotator that makes Dafny prove them: two policies, trained on the proof."""

    mode: str = option("joint", choices=MODES)
    """Who learns: the annotator, its writer frozen; the writer, its annotator frozen; each for `every_steps` in turn, the
    annotator first; or both in each step from the same cascades."""
    every_steps: int = option(10, low=1)
    """Mode alternating: steps of a role in a row."""
    credit: str = option("shared", choices=CREDITS)
    """What the writer is credited with: nothing, so that the annotator alone learns; the reward of the cascades that its
    body is part of; or the difference that its body makes under another annotator."""
    counterfactual: str = option("gold", choices=("gold", "resampled"))
    """Credit counterfactual: the other annotator is the gold's annotations, grafted onto the body; or annotations of the
    annotator drawn afresh, which it does not learn from."""
    resamples: int = option(4, low=1)
    """Credit counterfactual by resampling: annotations drawn afresh for each body."""
    bodies: str = option("written", choices=("written", "gold"))
    """Mode annotator_only: what is annotated, bodies of the writer or those of the data."""
    annotations: int = option(4, low=2)
    """Annotations sampled of each body in training; `algorithm.group_size` is the bodies sampled of each task."""
    attempts: int = option(1, low=1, high=8)
    """Attempts to annotate a body, each after the first with the feedback on the previous attempt. The annotator learns
    from its first attempts, the writer is credited with the result of the last."""
    writer: str = ""
    """Folder that the writer starts from in place of the model node's weights: a checkpoint, or an adapter of its base."""
    annotator: str = ""
    """Folder that the annotator starts from, likewise."""

    def problems(self) -> list[InputProblem]:
        return [*self._credit(), *self._unread()]

    def conflicts(self, config: Any, reads: Callable[[str], bool]) -> Iterator[InputProblem]:
        algorithm = config.algorithm
        yield from no_cascade_data(config.data)
        if getattr(config.data, "role", "writer") != "writer":
            what = "the tasks of a cascade are the writer's; the annotator annotates what it wrote"
            yield InputProblem("data.role", what, config.data.role, "writer", "", "drop it")
        if algorithm is None:
            return
        if self.mode == "alternating" and algorithm.max_steps <= self.every_steps:
            what, remedy = "the writer would have no step", f"algorithm.max_steps={2 * self.every_steps} or more"
            got = f"{self.every_steps} of {algorithm.max_steps} steps"
            yield InputProblem("cascade.every_steps", what, got, "fewer than algorithm.max_steps", "", remedy)

    def of_learner(self, algorithm: Any) -> Iterator[InputProblem]:
        """What waits for later steps, which roles that learn from the same cascades cannot."""
        if queues(algorithm):
            what, remedy = (
                "groups of a cascade do not wait: both roles learn from one step's",
                without_queues(algorithm),
            )
            allowed = "zero_variance=keep or mask, rollout_steps=1"
            yield InputProblem("algorithm", what, algorithm._target_, allowed, "", remedy)
        if sync := getattr(algorithm, "reference_sync_steps", 0):
            what = "the references of a cascade stay as they are"
            yield InputProblem("algorithm.reference_sync_steps", what, str(sync), "0", "", "drop it")

    def _credit(self) -> Iterator[InputProblem]:
        if self.credit == "annotator_only" and self.mode in ("writer_on_cascade_reward", "alternating"):
            what, remedy = "the writer has steps and would be credited with nothing", "cascade.credit=shared"
            yield InputProblem(
                "credit", what, f"{self.credit}, with mode={self.mode}", "shared, counterfactual", "", remedy
            )

    def _unread(self) -> Iterator[InputProblem]:
        """Options that have no effect next to the others."""
        if self.bodies == "gold" and self.mode != "annotator_only":
            what, remedy = "a writer that learns must write", "cascade.mode=annotator_only, or drop it"
            yield InputProblem("bodies", what, f"gold, with mode={self.mode}", "written", "", remedy)
        reads = {
            "every_steps": (self.mode == "alternating", "cascade.mode=alternating"),
            "counterfactual": (self.credit == "counterfactual", "cascade.credit=counterfactual"),
            "resamples": (self.counterfactual == "resampled", "cascade.counterfactual=resampled"),
            "credit": (self.mode != "annotator_only" or self.credit == "annotator_only", "another cascade.mode"),
        }
        for name, (read, remedy) in reads.items():
            if not read and getattr(self, name) != getattr(Cascade, name):
                yield InputProblem(
                    name, "has no effect here", str(getattr(self, name)), "its default", "", f"{remedy}, or drop it"
                )

    def learning(self, step: int) -> tuple[str, ...]:
        """The roles that learn in a step, counted from 0."""
        if self.mode == "joint":
            return (ANNOTATOR,) if self.credit == "annotator_only" else ROLES
        if self.mode == "alternating":
            return (WRITER,) if step // self.every_steps % 2 else (ANNOTATOR,)
        return (ANNOTATOR,) if self.mode == "annotator_only" else (WRITER,)


def no_cascade_data(data: Any) -> Iterator[InputProblem]:
    """The problem of data that a cascade cannot take."""
    if not getattr(data, "_target_", "").endswith("dafny.domain.DafnyDomain"):
        what = "a cascade writes and annotates Dafny"
        yield InputProblem("data", what, getattr(data, "_target_", ""), "data=dafny", "", "data=dafny")


OF_MODEL = "model"
"""The value of `evaluate.cascade` and `infer.cascade` that takes the model node's own weights for both roles."""


def starts(config: Any) -> dict[str, str]:
    """Role -> the folder that its policy starts from; empty: the model node's weights. No roles without a cascade."""
    if config.cascade is not None:
        return {role: getattr(config.cascade, role) for role in ROLES}
    checkpoint = next((node.cascade for node in (config.evaluate, config.infer) if node is not None), "")
    if not checkpoint:
        return {}
    return {role: "" if checkpoint == OF_MODEL else str(Path(checkpoint) / role) for role in ROLES}


def starts_missing(config: Any) -> Iterator[InputProblem]:
    """Folders of roles that hold no weights."""
    for role, folder in starts(config).items():
        there = Path(folder)
        if folder and not any((there / name).is_file() for name in ("config.json", "adapter_config.json")):
            where = f"cascade.{role}" if config.cascade is not None else f"{config.stage}.cascade"
            allowed = (
                "a checkpoint or an adapter" if config.cascade is not None else "step_N/ of +stage=cascade, or model"
            )
            yield InputProblem(where, f"no weights of the {role} are there", folder, allowed, "", "correct the path")


def of_cascade(run: str) -> bool:
    """Whether a run directory is that of a cascade, by its own config.yaml."""
    return bool(_written(run).get("stage") == "cascade")


def _written(run: str) -> dict[str, Any]:
    return yaml.safe_load((Path(run) / "config.yaml").read_text(encoding="utf-8")) or {}
