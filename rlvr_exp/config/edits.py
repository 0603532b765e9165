"""Options of `data=edits`: edits of programs by an instruction, and how they are worded."""

from dataclasses import dataclass, field

from rlvr_exp.config.data import Data, fraction_problems
from rlvr_exp.config.options import configures, option
from rlvr_exp.core.errors import InputProblem


@dataclass
class EditPrompt:
    """How an edit is worded."""

    style: str = option("bare", choices=("bare", "instruct"))
    """bare: the instruction and the text alone, for models trained here; instruct: with instructions in words."""
    answer: str = option("plain", choices=("plain", "tags"))
    """Of an action. plain: the action alone; tags: <think>, <action> and <state_update>, of which the action counts."""
    form: str = option("json", choices=("json", "yaml"))
    """How the gold action is written."""
    shots: int = option(0, low=0)
    """Solved examples of other tasks shown before the task."""


EDIT_SETS = ("rows", "canitedit", "edit_eval", "humanevalpack")
"""What rlvr_exp/tasks/edits reads; rows: normalised records."""


@configures("rlvr_exp.tasks.edits.domain.Edits")
@dataclass
class Edits(Data):
    """Edits of a program by an instruction: embedded, or rows of your own."""

    set: str = option("rows", choices=EDIT_SETS)
    """What is at `path`: rows, or a published test set in its own format."""
    target: str = option("action", choices=("action", "text"))
    """What an answer is: ast-grep rules that make the edit, or the edited text."""
    instruction: str = option("descriptive", choices=("descriptive", "lazy", "both"))
    """The style of the instruction; both: each row gives two tasks. A row without a lazy one has its only one."""
    dev_fraction: float = option(0.1, low=0, high=1)
    """Share of rows that no file places that becomes `dev`."""
    test_fraction: float = option(0.1, low=0, high=1)
    """Share of rows that no file places that becomes `test`."""
    seed: int = option(0, low=0)
    """Seed of the splits, the shuffle before `limit` and the choice of shots. Not the run's seed: all runs measure the
    same tasks."""
    prompt: EditPrompt = field(default_factory=EditPrompt)
    """How a task is worded."""
    weak: bool = False
    """Keep training tasks whose tests pass a program that does none of the work; else they are left out."""

    def problems(self) -> list[InputProblem]:
        found = [*super().problems(), *fraction_problems(self)]
        if self.set != EDIT_SETS[0] and not self.path:
            remedy = f"data.path=DIR, a folder or file of {self.set}, or drop data.set"
            found.append(InputProblem("path", "this set does not come with rlvr_exp", "nothing", remedy=remedy))
        if self.target == "text":
            for name in ("answer", "form"):
                if getattr(self.prompt, name) != getattr(EditPrompt, name):
                    what, remedy = "the answer is the edited text, not an action", "data.target=action, or drop it"
                    got = getattr(self.prompt, name)
                    found.append(InputProblem(f"prompt.{name}", what, got, getattr(EditPrompt, name), "", remedy))
        return found
