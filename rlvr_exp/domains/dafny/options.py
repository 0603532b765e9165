"""Options of the Dafny domain: `data=dafny`, `verifier=dafny`, the preparations and benchmarks of Dafny programs, and the node
`cascade`."""

import shlex
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlvr_exp.config.algorithm import GroupMethod, queues, without_queues
from rlvr_exp.config.benchmark import Benchmark
from rlvr_exp.config.benchmark import FromPath as BenchmarkFromPath
from rlvr_exp.config.data import RETRY, SINGLE_TURN, SplitData, Styled
from rlvr_exp.config.options import JUDGES, LEARNS, Stage, configures, defaults, option
from rlvr_exp.config.roles import Team
from rlvr_exp.config.stage_options import Evaluate, FromPath, Infer, Written
from rlvr_exp.config.verifier import OwnLimits
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.domains.dafny import package
from rlvr_exp.sandbox.tools import find_image

INSTALL_DAFNY = "drop it to use the packaged Dafny 4.11, or name a Dafny 4.4 or later"
CONTAINERFILE = Path(__file__).resolve().parents[2] / "assets" / "dafny.Containerfile"


def build_command(image: str) -> str:
    """The command that makes an image of the packaged Dafny; docker takes the same words."""
    return shlex.join(["podman", "build", "-t", image, "-f", str(CONTAINERFILE), str(package.ARCHIVE.parent)])


@configures("rlvr_exp.domains.dafny.verifier.DafnyVerifier")
@dataclass
@defaults(cpu_s=60.0, wall_s=120.0)
class DafnyVerifierOptions(OwnLimits):
    """Proves Dafny programs with Dafny 4.4 or later, and compares them with the given program."""

    path: str = ""
    """The Dafny to use; empty: a recent `dafny` on the PATH, else the packaged one."""
    image: str = ""
    """An image of podman or docker that holds Dafny, in place of a path."""
    warm: bool = True
    """Verify many programs in one process (`dafny server`); otherwise each has a process of its own."""
    rlimit: int = option(100_000_000, low=0)
    """Resource limit of the prover for each batch of assertions, in its own count, the same on every machine; 0: no limit."""
    protect: str = option("specification", choices=("specification", "program"))
    """The part that a candidate must keep: the specification, with free code; or everything without the annotations."""
    holes: bool = True
    """A given method or lemma without a body, that promises something and that no other body calls, must get one."""
    vacuity: bool = True
    """Reject a program that also proves `assert false` at the ends of its bodies. Checked once for each new program that is proved."""
    prune: bool = False
    """Drop annotations that Dafny does not prove, one at a time, before the last verdict (+stage=evaluate and infer)."""

    def conflicts(self, config: Any, reads: Callable[[str], bool]) -> Iterator[InputProblem]:
        yield from super().conflicts(config, reads)
        if self.prune and config.stage not in ("evaluate", "infer"):
            what = "a pruned program is not the policy's own answer, which this stage judges"
            allowed = "true with +stage=evaluate or infer"
            yield InputProblem("verifier.prune", what, f"true with +stage={config.stage}", allowed, "", "drop it")

    def missing(self) -> Iterator[tuple[InputProblem, str]]:
        """Dafny itself, or the image that holds it, if it is not on this machine, and the command that installs it."""
        yield from super().missing()
        if self.image:
            try:
                find_image(self.image, build_command(self.image))
            except InputError as fault:
                yield from ((problem, build_command(self.image)) for problem in fault.problems)
        elif self.path and shutil.which(self.path) is None:
            yield InputProblem("verifier.path", "there is no such program", self.path, remedy=INSTALL_DAFNY), ""
        elif not self.path and shutil.which("dafny") is None:
            yield from ((problem, package.INSTALL) for problem in package.missing())


def proves_no_dafny(verifier: Any) -> Iterator[InputProblem]:
    """The problem of a verifier that is not Dafny, for what needs proofs."""
    if not isinstance(verifier, DafnyVerifierOptions):
        target = getattr(verifier, "_target_", "")
        yield InputProblem("verifier", "proves no Dafny program", target, "dafny", "", "verifier=dafny, or drop it")


@dataclass
class DafnyPrompt(Styled):
    """How a Dafny task is worded."""

    answer: str = option("strict", choices=("strict", "permissive"))
    """Style instruct: strict: the body alone in one code block; permissive: reasoning and repeats around it are welcome."""
    context: str = ""
    """Text that every prompt is given ahead of its task, such as notes on the dialect."""
    context_file: str = ""
    """A file with that text."""

    def problems(self) -> list[InputProblem]:
        found = []
        if self.style == "bare" and self.answer != "strict":
            what, remedy = (
                "a bare prompt says nothing of the form of its answer",
                "data.prompt.style=instruct, or drop it",
            )
            found.append(InputProblem("answer", what, self.answer, "strict", "", remedy))
        if self.context and self.context_file:
            what = "the context is given twice"
            found.append(InputProblem("context_file", what, self.context_file, remedy="drop one of them"))
        return found


DATA = "rlvr_exp.domains.dafny.tasks.DafnyDomain"


@dataclass
class Unit:
    """Options of what reads sets of programs."""

    unit: str = option("method", choices=("method", "program"))
    """method: every method of a program is a task. program: a program that the set also has without hints is one task of the
    annotator, as in DafnyBench's protocol."""


@configures(DATA)
@dataclass
class DafnyDataOptions(Unit, SplitData):
    """Bodies of Dafny methods to write or to annotate: embedded, or real programs in the layouts of the published sets."""

    role: str = option("annotator", choices=("writer", "annotator", "both"))
    """writer: header and specification to body; annotator: body to annotated body; both: each example gives both
    tasks."""
    usable: str = option("trust", choices=("trust", "check", "strong"))
    """check: before the run, Dafny proves every task's gold on the strictest level that it passes, and tasks whose gold does
    not pass are left out; strong: also those below the level `strict` and the writer's that a trivial body solves; trust: a
    gold that does not pass stops a training."""
    prompt: DafnyPrompt = field(default_factory=DafnyPrompt)
    """How a task is worded."""

    def conflicts(self, config: Any, reads: Callable[[str], bool]) -> Iterator[InputProblem]:
        if self.usable != "trust" and not isinstance(config.verifier, DafnyVerifierOptions):
            remedy = "verifier=dafny, or data.usable=trust"
            allowed = f"{self.usable} with verifier=dafny"
            yield InputProblem("data.usable", "proves golds with Dafny", self.usable, allowed, "", remedy)


@configures("rlvr_exp.domains.dafny.usable.make_check")
@dataclass
class DafnyCheck(FromPath):
    """Dafny data checked before a run: programs are cut and reassembled, pairs and left-out examples are counted."""


@configures("rlvr_exp.domains.dafny.usable.make")
@dataclass
class DafnyUsable(Unit, FromPath, Written):
    """Examples of a data set that can be trained on, according to Dafny."""

    reads = JUDGES
    role: str = option("both", choices=("writer", "annotator", "both"))
    """The role that examples must be usable for."""

    def conflicts(self, config: Any, reads: Callable[[str], bool]) -> Iterator[InputProblem]:
        yield from proves_no_dafny(config.verifier)


@configures("rlvr_exp.domains.dafny.prepare.make_rows")
@dataclass
class DafnyRows(FromPath, Written):
    """A published set of Dafny programs as rows of +stage=verify."""

    variant: str = option("ground_truth", choices=("ground_truth", "hints_removed", "pairs", "wrong", "tests"))
    """ground_truth: programs against themselves. hints_removed (DafnyBench): the same without hints. pairs (DafnyBench, vericoding):
    reference programs as answers to their tasks. wrong (CloverBench): wrong variants as answers. tests (MBPP-DFY): programs
    with their tests as answers."""


@configures("rlvr_exp.domains.dafny.differential.measure")
@dataclass
class DafnyDifferential(BenchmarkFromPath):
    """Our reading of Dafny programs against Dafny's own."""

    mutate: bool = False
    """Mutated programs too."""
    every: int = option(1, low=1)
    """Each N-th program."""


@configures("rlvr_exp.domains.dafny.universal.measure")
@dataclass
class DafnyUniversal(Benchmark):
    """Fixed answers that fit every Dafny program and prove nothing: none may pass."""

    reads = JUDGES
    path: str = ""
    """A data set, or a folder of data sets, judged after the embedded corpus; empty: the embedded corpus alone."""
    tasks: int = option(60, low=0)
    """Tasks of each set and role, drawn with a fixed seed; 0: all."""
    proved: int = option(0, low=0)
    """Tasks of each answer that Dafny judges if the guards do not refuse it; 0: all."""

    def conflicts(self, config: Any, reads: Callable[[str], bool]) -> Iterator[InputProblem]:
        yield from proves_no_dafny(config.verifier)


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
    """The writer's credit: nothing, so that the annotator alone learns; the reward of the cascades that its
    body is part of; or the difference that its body makes under another annotator."""
    counterfactual: str = option("gold", choices=("gold", "resampled"))
    """Credit counterfactual: the other annotator is the gold's annotations, grafted onto the body; or annotations of the
    annotator drawn afresh, which it does not learn from."""
    resamples: int = option(4, low=1)
    """Credit counterfactual by resampling: annotations drawn afresh for each body."""
    bodies: str = option("written", choices=("written", "gold"))
    """Mode annotator_only: annotate bodies of the writer or those of the data."""
    annotations: int = option(4, low=2)
    """Annotations sampled of each body in training; `algorithm.group_size` is the bodies sampled of each task."""
    writer: str = ""
    """Folder that the writer starts from in place of the model node's weights: a checkpoint, or an adapter of its base."""
    annotator: str = ""
    """Folder that the annotator starts from, likewise."""

    def problems(self) -> list[InputProblem]:
        found = []
        if self.credit == "annotator_only" and self.mode in ("writer_on_cascade_reward", "alternating"):
            what, remedy = "the writer has steps and would be credited with nothing", "cascade.credit=shared"
            got = f"{self.credit}, with mode={self.mode}"
            found.append(InputProblem("credit", what, got, "shared, counterfactual", "", remedy))
        if self.bodies == "gold" and self.mode != "annotator_only":
            what, remedy = "a writer that learns must write", "cascade.mode=annotator_only, or drop it"
            found.append(InputProblem("bodies", what, f"gold, with mode={self.mode}", "written", "", remedy))
        reads = {
            "every_steps": (self.mode == "alternating", "cascade.mode=alternating"),
            "counterfactual": (self.credit == "counterfactual", "cascade.credit=counterfactual"),
            "resamples": (self.counterfactual == "resampled", "cascade.counterfactual=resampled"),
            "credit": (self.mode != "annotator_only" or self.credit == "annotator_only", "another cascade.mode"),
        }
        for name, (read, remedy) in reads.items():
            got = getattr(self, name)
            if not read and got != getattr(Cascade, name):
                remedy = f"{remedy}, or drop it"
                found.append(InputProblem(name, "has no effect here", str(got), "its default", "", remedy))
        return found

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
        """Options that let groups wait for later steps: roles that learn from the same cascades cannot wait."""
        if queues(algorithm):
            what = "groups of a cascade do not wait: both roles learn from one step's"
            allowed = "zero_variance=keep or mask, rollout_steps=1"
            yield InputProblem("algorithm", what, algorithm._target_, allowed, "", without_queues(algorithm))
        if sync := getattr(algorithm, "reference_sync_steps", 0):
            what = "the references of a cascade stay as they are"
            yield InputProblem("algorithm.reference_sync_steps", what, str(sync), "0", "", "drop it")

    def learning(self, step: int) -> tuple[str, ...]:
        """The roles that learn in a step, counted from 0."""
        if self.mode == "joint":
            return (ANNOTATOR,) if self.credit == "annotator_only" else ROLES
        if self.mode == "alternating":
            return (WRITER,) if step // self.every_steps % 2 else (ANNOTATOR,)
        return (ANNOTATOR,) if self.mode == "annotator_only" else (WRITER,)

    @property
    def completions(self) -> int:
        """Annotations of each body."""
        return self.annotations

    @property
    def samples(self) -> tuple[int, ...] | None:
        """The bodies of a task that are written: none if those of the data are annotated; None: a group of them."""
        return () if self.bodies == "gold" else None

    def sizes(self, role: str, algorithm: Any) -> Mapping[str, int]:
        """The sizes of a role's steps that differ from the algorithm's."""
        if role != ANNOTATOR:
            return {}
        bodies = 1 if self.bodies == "gold" else algorithm.group_size
        return {"prompts_per_step": algorithm.prompts_per_step * bodies, "group_size": self.annotations}


def no_cascade_data(data: Any) -> Iterator[InputProblem]:
    """The problem of data that a cascade cannot take."""
    if getattr(data, "_target_", "") != DATA:
        what = "a cascade writes and annotates Dafny"
        yield InputProblem("data", what, getattr(data, "_target_", ""), "data=dafny", "", "data=dafny")


def attempts(config: Any) -> int:
    """The attempts of each role of a cascade."""
    if config.infer is not None:
        return config.infer.max_attempts
    return getattr(config.environment, "attempts", 1)


def cascade_problems(config: Any) -> Iterator[InputProblem]:
    """Problems of a configuration with a cascade that its node does not report."""
    infers = config.infer is not None
    if getattr(config.environment, "_target_", SINGLE_TURN) not in (SINGLE_TURN, *(() if infers else (RETRY,))):
        where, remedy = ("infer.cascade", "infer.max_attempts") if infers else ("environment", "environment=retry")
        what = "a cascade is an environment of its own, with retries at most"
        yield InputProblem(
            where, what, config.environment._target_, "single_turn", "", f"environment=single_turn, or {remedy}"
        )
    if config.cascade is None:
        yield from no_cascade_data(config.data)
    elif (own := config.roles.get(WRITER)) is not None and own.reward is not None:
        what = "the writer of a cascade is credited with its annotator's rewards"
        yield InputProblem(f"roles.{WRITER}.reward", what, "", "", "", "roles.annotator.reward, or reward")


TEAM = Team("cascade", ROLES, "rlvr_exp.domains.dafny.cascade:CascadePlay", cascade_problems)

STAGES = {
    "cascade": Stage(
        "train a writer and an annotator of Dafny programs together",
        (*LEARNS, "environment", "roles"),
        algorithm=GroupMethod,
        module="reinforcement",
        shared=True,
    )
}


@dataclass
class CascadeEvaluate(Evaluate):
    """Options of +stage=evaluate for a cascade."""

    cascade: str = ""
    """A checkpoint of +stage=cascade. Its writer and annotator are measured together. model: both roles have the model node's own
    weights. Empty: one policy is measured."""


@dataclass
class CascadeInfer(Infer):
    """Options of +stage=infer for a cascade."""

    cascade: str = ""
    """A checkpoint of +stage=cascade. Its writer and annotator solve the tasks together, with `max_attempts` of each role.
    model: both roles have the model node's own weights. Empty: one policy answers."""

    def problems(self) -> list[InputProblem]:
        found = super().problems()
        if self.cascade and self.input:
            what, remedy = "a cascade solves programs of the data", "data=dafny data.path=PROGRAMS, and no infer.input"
            found.append(InputProblem("input", what, self.input, "empty", "", remedy))
        if self.cascade and self.decoding == "beam":
            what = "the roles of a cascade are sampled or greedy"
            found.append(InputProblem("decoding", what, "beam", "greedy, sample", "", "infer.decoding=greedy"))
        return found
