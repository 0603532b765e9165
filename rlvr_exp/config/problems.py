"""Options of `data=problems` and of the `reasoning` group: the stages in which a problem is worked out."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from rlvr_exp.config.data import Data, fraction_problems
from rlvr_exp.config.options import configures, option
from rlvr_exp.core.errors import InputProblem

FORMS = ("text", "code")
SOLVER, TESTER = ROLES = ("solver", "tester")
ALL = "all"


@dataclass
class ReasoningStage:
    """One stage of reasoning, whose output later ones build on."""

    purpose: str = ""
    """What it is for, in a few words; a prompt in words says it."""
    solver: str = ""
    """What the solver is asked, in words."""
    tester: str = ""
    """What the tester is asked about an output, in words."""
    form: str = option("text", choices=FORMS)
    """What an output is: text, or code, the answer itself."""
    sees: list[str] = field(default_factory=lambda: [ALL])
    """Earlier stages whose outputs it is shown; all: every one."""


@dataclass
class ProblemPrompt:
    """How a problem is worded, and what a prompt shows besides."""

    style: str = option("bare", choices=("bare", "instruct"))
    """bare: for models trained here; instruct: in words."""
    shots: int = option(0, low=0)
    """Other problems shown before the problem, each with a good output of the same stage; a solver's prompts alone."""


@configures("rlvr_exp.tasks.problems.domain.Problems")
@dataclass
class Problems(Data):
    """Coding problems with a reference solution, worked out in stages of reasoning: embedded, or rows of your own."""

    role: str = option("solver", choices=ROLES)
    """solver: outputs of every stage, judged by the code; tester: critiques of a solver's outputs, and tests in the form of calls."""
    reasoning: dict[str, ReasoningStage] = field(default_factory=dict)
    """The stages, by name, in order; the last one is code."""
    prompt: ProblemPrompt = field(default_factory=ProblemPrompt)
    """How a problem is worded, and what a prompt shows besides."""
    dev_fraction: float = option(0.1, low=0, high=1)
    """Share of rows that no file places that becomes `dev`."""
    test_fraction: float = option(0.1, low=0, high=1)
    """Share of rows that no file places that becomes `test`."""
    held_out: str = ""
    """Problems to measure on in place of those at `path`: a folder or file, which is all `test`, or embedded: the embedded
    corpus's `test`. What no file places at `path` is then all `train`, so that a single problem can be trained on."""
    seed: int = option(0, low=0)
    """Seed of the splits, the shuffle before `limit` and the choice of shots. Not the run's seed: all runs measure the
    same tasks."""

    def problems(self) -> list[InputProblem]:
        found = [*super().problems(), *fraction_problems(self), *self._of_stages()]
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
