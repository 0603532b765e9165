"""Options of `schedule`: which role learns in which step, and from the outputs of which stage of reasoning."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from rlvr_exp.config.environment import ADVERSARIAL
from rlvr_exp.config.options import option
from rlvr_exp.config.roles import role_names
from rlvr_exp.core.errors import InputProblem

MODES = ("n_n_k", "joint")


@dataclass
class Schedule:
    """Who learns when, in stages that train several roles. A pass goes over the stages of reasoning in order; passes follow one
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
    """What a solver learns from at a stage of reasoning: the outputs of this stage; also those that follow from them; or all."""
    chains: int = option(4, low=0)
    """Chains of a problem in steps in which the solver is frozen, at least two: programs for a tester's tests to run on. 0:
    algorithm.group_size."""
    prefix: str = option("own", choices=("shared", "own"))
    """What comes before the outputs of a stage: sampled once for a problem, so that they alone differ; or for each of them."""

    def problems(self) -> list[InputProblem]:
        return list(self._unread())

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

    def _unread(self) -> Iterator[InputProblem]:
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
