"""Options of the problems domain: `data=problems` with the `reasoning` group, `environment=reasoning` and `adversarial`, and `schedule`."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from rlvr_exp.config.algorithm import ReinforcementLearning
from rlvr_exp.config.data import SplitData, Styled
from rlvr_exp.config.options import ANSWERS, UPDATES, Stage, configures, option
from rlvr_exp.config.roles import role_names
from rlvr_exp.config.stage_options import OF_THE_DATA, Infer, of_beams, unread
from rlvr_exp.core.errors import InputProblem
from rlvr_exp.core.hashing import content_hash

FORMS = ("text", "code")
SOLVER, TESTER = ROLES = ("solver", "tester")
ALL = "all"


@dataclass
class ReasoningStage:
    """One stage of reasoning, whose output later ones build on."""

    purpose: str = ""
    """Purpose in a few words, for prompts in words."""
    solver: str = ""
    """Instruction to the solver."""
    tester: str = ""
    """Instruction to the tester about an output of this stage."""
    form: str = option("text", choices=FORMS)
    """Form of the output: text, or code (the answer)."""
    sees: list[str] = field(default_factory=lambda: [ALL])
    """Earlier stages whose outputs the prompt shows; all: every one."""


@dataclass
class ProblemPrompt(Styled):
    """How a problem is worded, and what a prompt shows besides."""


@configures("rlvr_exp.domains.problems.tasks.Problems")
@dataclass
class Problems(SplitData):
    """Coding problems with a reference solution, worked out in stages of reasoning: embedded, or rows of your own."""

    role: str = option("solver", choices=ROLES)
    """solver: outputs of every stage, judged by the code; tester: critiques of a solver's outputs, and tests in the form of calls."""
    reasoning: dict[str, ReasoningStage] = field(default_factory=dict)
    """The stages, by name, in order; the last one is code."""
    prompt: ProblemPrompt = field(default_factory=ProblemPrompt)
    """How a problem is worded, and what a prompt shows besides."""
    held_out: str = ""
    """Problems to measure on in place of those at `path`: a folder or file, all `test`, or embedded: the embedded
    corpus's `test`. What no file places at `path` is then all `train`, so that a single problem can be trained on."""

    def problems(self) -> list[InputProblem]:
        found = [*super().problems(), *self._of_stages()]
        if self.held_out and not self.path:
            what = "the embedded corpus has held-out problems of its own"
            found.append(InputProblem("held_out", what, self.held_out, "", "", "data.path=FILE, or drop it"))
        if self.prompt.shots and self.role == TESTER:
            what, got = "a tester is shown no solved examples", str(self.prompt.shots)
            found.append(InputProblem("prompt.shots", what, got, "0", "", "drop it, or data.role=solver"))
        return found

    def _of_stages(self) -> Iterator[InputProblem]:
        names = list(self.reasoning)
        code = [name for name, stage in self.reasoning.items() if stage.form == "code"]
        if code != names[-1:] or not names:
            got = ", ".join(code) or "no stage"
            yield InputProblem("reasoning", "the last stage and no other is code", got, "form: code, in the last stage")
        for place, (name, stage) in enumerate(self.reasoning.items()):
            if absent := sorted({*stage.sees} - {ALL, *names[:place]}):
                allowed = ", ".join([ALL, *names[:place]])
                yield InputProblem(f"reasoning.{name}.sees", "names no earlier stage", ", ".join(absent), allowed)

    def shown_to(self, stage: str) -> list[str]:
        """The stages whose outputs a stage is shown, in their order."""
        names = list(self.reasoning)
        earlier, sees = names[: names.index(stage)], self.reasoning[stage].sees
        return [name for name in earlier if ALL in sees or name in sees]


VARIANTS = ("gated", "seed", "utrl", "code_a1", "cure")
"""Rewards of a solver and a tester."""


REASONING = "rlvr_exp.domains.problems.reasoning.Reasoning"


class InStages:
    """The common part of environments that work problems out in stages of reasoning."""

    again = "infer.samples=N"
    """A remedy for users who want several tries."""

    def conflicts(self, config: Any, reads: Callable[[str], bool]) -> Iterator[InputProblem]:
        if not hasattr(config.data, "reasoning"):
            what, target = "has no stages of reasoning", getattr(config.data, "_target_", "")
            remedy = "data=problems, which reads the rows of data=code that have a solution; or environment=single_turn"
            yield InputProblem("data", what, target, "data=problems", "", remedy)
        if config.infer is not None:
            yield from self.infer_problems(config.infer)

    def infer_problems(self, infer: Infer) -> Iterator[InputProblem]:
        """Options of `infer` that have no meaning next to this environment."""
        remedies = {"input": "data.path=FILE", "max_attempts": f"{self.again}, or drop it"}
        what = "has no meaning for problems of the data in stages of reasoning"
        yield from unread(infer, OF_THE_DATA, what, remedies)
        yield from of_beams(infer, "outputs of stages are sampled or greedy")
        if not infer.verify and (attempts := getattr(self, "attempts", 1)) > 1:
            what = "without a verifier nothing decides what to try again"
            yield InputProblem("environment.attempts", what, str(attempts), "1", "", "infer.verify=true")

    def of_answers(self, data: Any) -> dict[str, Any]:
        """The options that determine the answers of +stage=infer, besides the prompts of the tasks."""
        names = ("tests", "attempts", "critiques")
        given = {name: getattr(self, name) for name in names if hasattr(self, name)}
        return {"environment": given, "reasoning": content_hash([*data.reasoning.items()])}


@configures(REASONING)
@dataclass
class Reasoning(InStages):
    """A problem worked out in the stages of `data.reasoning`, each shown to those after it; success is that of the code."""


ADVERSARIAL = "rlvr_exp.domains.problems.adversarial.Adversarial"


@configures(ADVERSARIAL)
@dataclass
class Adversarial(InStages):
    """A solver works a problem out in stages, a tester criticises its outputs and writes tests of its code; each is paid by
    the work of the other. Two roles."""

    again = "environment.attempts=N"

    tests: int = option(8, low=0)
    """Test sets sampled for each attempt in training. 0 disables the tester: the tests in the problem decide the reward."""
    wanted_tests: int = option(3, low=1)
    """Rewards utrl and code_a1 count at most this many tests of a set."""
    attempts: int = option(1, low=1, high=8)
    """Attempts per problem. A later prompt of the solver lists the valid tests that failed. A later prompt of the tester lists its
    tests that were invalid, repeated others or caught nothing."""
    reward: str = option("gated", choices=VARIANTS)
    """Reward of the roles (rlvr_exp.domains.problems.tested): gated is ours; seed, utrl, code_a1 and cure are published methods."""
    power: float = option(1.0, low=1)
    """Reward gated: exponent of the pass rate. Above 1, partial success earns less."""
    penalty: float = option(0.1, low=0, high=1)
    """Reward gated: penalty of a set if all its tests are invalid, repeated or catch nothing; in proportion if some are."""
    mask: str = option("solver", choices=("both", "solver", "none"))
    """Roles that skip problems whose programs all earn everything or all earn nothing. solver: the tester still learns from
    unsolved problems which of its tests are valid."""
    book: int = option(8, low=0)
    """Failing tests and failed programs that a problem keeps for its next visit. 0 disables it."""
    critiques: bool = True
    """The tester criticises the solver's outputs, and earns a reward if it agrees with the tests."""
    critique_weight: float = option(0.0, low=0, high=1)
    """Weight of the critique in an output's credit; the success of the code has the rest."""

    def conflicts(self, config: Any, reads: Callable[[str], bool]) -> Iterator[InputProblem]:
        yield from super().conflicts(config, reads)
        if reads("optimizer") and not reads("schedule"):
            what, remedy = "a solver and a tester are paid by each other", "+stage=adversarial"
            yield InputProblem("environment", what, f"adversarial, with +stage={config.stage}", "", "", remedy)

    def problems(self) -> Iterator[InputProblem]:
        """Options that have no effect next to the others."""
        reads = {
            "wanted_tests": (self.reward in ("utrl", "code_a1"), "environment.reward=utrl"),
            "penalty": (self.reward == "gated", "environment.reward=gated"),
            "power": (self.reward == "gated", "environment.reward=gated"),
            "critique_weight": (self.critiques, "environment.critiques=true"),
        }
        for name in ("reward", "attempts", "critiques", "book"):
            reads[name] = (self.tests > 0, "environment.tests=8")
        for name, (read, remedy) in reads.items():
            if not read and getattr(self, name) != getattr(Adversarial, name):
                got = str(getattr(self, name))
                yield InputProblem(name, "has no effect here", got, "its default", "", f"{remedy}, or drop it")


MODES = ("n_n_k", "joint")


@dataclass
class Schedule:
    """Order in which the roles learn, in stages that train several roles. A pass goes over the stages of reasoning in order; passes follow one
    another until the last step."""

    mode: str = option("n_n_k", choices=MODES)
    """n_n_k: at each stage of reasoning the tester learns for `alone` steps while the solver is frozen, then the solver for `alone`
    steps while the tester is frozen, then each in turn for `alternating` steps. joint: all in every step, from the outputs of
    every stage of reasoning."""
    alone: int = option(5, low=1)
    """N: steps of a role alone, at each stage of reasoning."""
    alternating: int = option(4, low=0)
    """K: steps in which the roles take turns, at each stage of reasoning."""
    start_stage: int = option(1, low=1)
    """The stage of reasoning, counted from 1, that every pass begins with."""
    learn: list[str] = field(default_factory=list)
    """Roles that learn, the first one first; the others stay frozen in all steps. Empty: tester and solver."""
    outputs: str = option("all", choices=("stage", "onward", "all"))
    """Outputs that a solver learns from at a stage of reasoning: those of this stage, also those that follow from them, or all."""
    chains: int = option(4, low=0)
    """Chains of a problem in steps with a frozen solver, at least two: programs for a tester's tests to run on. 0:
    algorithm.group_size."""
    prefix: str = option("own", choices=("shared", "own"))
    """Earlier outputs before those of a stage. shared: sampled once per problem, so that only the outputs of the stage differ;
    own: sampled for each of them."""

    def conflicts(self, config: Any, reads: Callable[[str], bool]) -> Iterator[InputProblem]:
        target = getattr(config.environment, "_target_", "")
        if target != ADVERSARIAL:
            what, got = "this stage trains a solver and a tester", target.rpartition(".")[2]
            yield InputProblem("environment", what, got, "adversarial", "", "drop it, or +stage=grpo")
            return
        names = role_names(config)
        if unknown := [role for role in self.learn if role not in names]:
            what = "the environment has no such role"
            yield InputProblem("schedule.learn", what, ", ".join(unknown), ", ".join(names))
        if not config.environment.tests and self.learn != ["solver"]:
            what, got = "without tests a tester has nothing to learn from", ", ".join(self.learn) or "all"
            yield InputProblem("schedule.learn", what, got, "solver", "", "schedule.learn=[solver]")
        stages = len(getattr(config.data, "reasoning", {}))
        if self.start_stage > max(1, stages):
            what = "there are fewer stages of reasoning"
            yield InputProblem("schedule.start_stage", what, str(self.start_stage), f"at most {stages}")
        steps, least = config.algorithm.max_steps, self.least_steps(stages)
        if steps < least:
            what, remedy = "the last stages of reasoning would have no step", f"algorithm.max_steps={least} or more"
            got = f"{steps} steps, {self.steps_of_stage()} for each of {stages} stages"
            yield InputProblem("schedule", what, got, "", "", f"{remedy}, or fewer of schedule.alone, alternating")

    def problems(self) -> Iterator[InputProblem]:
        if self.chains == 1:
            yield InputProblem("chains", "programs of a problem are compared", "1", "0, or at least 2")
        if self.mode == "joint":
            frozen = bool(self.learn) and "solver" not in self.learn
            for name in ("alone", "alternating", "start_stage", "outputs", "prefix", *(() if frozen else ("chains",))):
                if getattr(self, name) != getattr(Schedule, name):
                    what, got = "has no effect here", str(getattr(self, name))
                    yield InputProblem(name, what, got, "its default", "", "schedule.mode=n_n_k, or drop it")

    def steps_of_stage(self) -> int:
        """Steps at one stage of reasoning."""
        return 2 * self.alone + self.alternating

    def stage(self, step: int, stages: int) -> int | None:
        """The place of the stage of reasoning, of so many, that a step is spent on; None: on all. Steps are counted from 0."""
        if self.mode == "joint":
            return None
        first = min(self.start_stage, stages) - 1
        return first + step // self.steps_of_stage() % (stages - first)

    def learning(self, step: int, roles: Sequence[str]) -> tuple[str, ...]:
        """The roles that learn in a step, of two that take turns, the first one first."""
        if self.mode == "joint":
            return tuple(roles)
        at = step % self.steps_of_stage()
        turn = at // self.alone if at < 2 * self.alone else at - 2 * self.alone
        return (roles[turn % len(roles)],)

    def least_steps(self, stages: int) -> int:
        """Steps of a whole pass over so many stages of reasoning."""
        return 1 if self.mode == "joint" else (stages - min(self.start_stage, stages) + 1) * self.steps_of_stage()

    def ends_stage(self, step: int) -> bool:
        """Whether a stage of reasoning is over after so many steps."""
        return self.mode == "n_n_k" and step % self.steps_of_stage() == 0


STAGES = {
    "adversarial": Stage(
        "train a solver of coding problems against a test writer",
        (*ANSWERS, *UPDATES, "curriculum", "environment", "roles", "schedule"),
        algorithm=ReinforcementLearning,
        module="reinforcement",
        shared=True,
    )
}
