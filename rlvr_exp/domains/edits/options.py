"""Options of the edits domain: data, verifier, environment, reward terms, benchmark and makers of rows."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from rlvr_exp.config import benchmark
from rlvr_exp.config.data import SplitData, Styled
from rlvr_exp.config.options import configures, option
from rlvr_exp.config.stage_options import FromPath, Written, unread
from rlvr_exp.config.verifier import Pooled, Term
from rlvr_exp.core.errors import InputProblem


@dataclass
class EditPrompt(Styled):
    """How an edit is worded."""

    answer: str = option("plain", choices=("plain", "tags"))
    """Of an action. plain: the action alone; tags: <think>, <action> and <state_update>, of which the action counts."""
    form: str = option("json", choices=("json", "yaml"))
    """How the gold action is written."""


EDIT_SETS = ("rows", "canitedit", "edit_eval", "humanevalpack")
"""Sets that `data=edits` reads; rows: normalised records."""


@configures("rlvr_exp.domains.edits.tasks.Edits")
@dataclass
class Edits(SplitData):
    """Edits of a program by an instruction: embedded, or rows of your own."""

    set: str = option("rows", choices=EDIT_SETS)
    """What is at `path`: rows, or a published test set in its own format."""
    target: str = option("action", choices=("action", "text"))
    """What an answer is: ast-grep rules that make the edit, or the edited text."""
    instruction: str = option("descriptive", choices=("descriptive", "lazy", "both"))
    """The style of the instruction; both: each row gives two tasks. A row without a lazy one has its only one."""
    prompt: EditPrompt = field(default_factory=EditPrompt)
    """How a task is worded."""
    weak: bool = False
    """Keep training tasks whose tests pass a program that does none of the work; else they are left out."""

    def problems(self) -> list[InputProblem]:
        found = super().problems()
        if self.set != EDIT_SETS[0] and not self.path:
            remedy = f"data.path=DIR, a folder or file of {self.set}, or drop data.set"
            found.append(InputProblem("path", "this set does not come with rlvr_exp", "nothing", remedy=remedy))
        for name in ("answer", "form") if self.target == "text" else ():
            got, default = getattr(self.prompt, name), getattr(EditPrompt, name)
            if got != default:
                what, remedy = "the answer is the edited text, not an action", "data.target=action, or drop it"
                found.append(InputProblem(f"prompt.{name}", what, got, default, "", remedy))
        return found


@configures("rlvr_exp.domains.edits.verifier.AstGrep")
@dataclass
class AstGrep(Pooled):
    """Applies an ast-grep action to a text and compares the result, or runs tests on it."""

    compare: str = option("text", choices=("text", "text_loose", "syntax"))
    """What must be equal: every character; all but blanks at line ends and empty lines; the syntax tree."""
    max_passes: int = option(1, low=1, high=100)
    """1: apply an action once; more: until nothing changes, at most so often."""
    untouched: str = option("proved", choices=("proved", "wanted", "never"))
    """Rows with tests whose functions and classes have to stay as the wanted text leaves them, besides passing the tests. proved: rows
    whose wanted text is known to pass (the embedded ones); wanted: all rows with a wanted text; never: none."""


@configures("rlvr_exp.domains.edits.environment.Edits")
@dataclass
class EditSteps:
    """An action is applied and the edited text shown, until the policy answers `done` or has taken all steps; success is that of the
    last text."""

    steps: int = option(4, low=2, high=16)
    """The most actions of an episode, `done` among them."""

    def conflicts(self, config: Any, reads: Callable[[str], bool]) -> Iterator[InputProblem]:
        if reads("evaluation") and config.evaluation.excess_code:
            what, remedy = "an episode's last action alone does not make the edited program", "environment=single_turn"
            yield InputProblem("evaluation.excess_code", what, "true", "false with environment=edits", "", remedy)
        if config.infer is not None:
            what = "has no meaning for edits in steps: a task of the data, whose every text is made and judged"
            yield from unread(config.infer, {"input": "", "verify": True}, what, {})


@configures("rlvr_exp.domains.edits.environment.FieldSimilarity")
@dataclass
class FieldSimilarity(Term):
    """Share of an action's fields that match the teacher's, in [0, 1]."""

    weight: float = 0.7


@configures("rlvr_exp.domains.edits.environment.StringSimilarity")
@dataclass
class StringSimilarity(Term):
    """Characters of an action that match the teacher's, in [0, 1]."""

    weight: float = 0.3


@configures("rlvr_exp.domains.edits.environment.InvalidAction")
@dataclass
class InvalidAction(Term):
    """-1 for an answer that is no valid action."""

    weight: float = 0.2


@configures("rlvr_exp.domains.edits.benchmark.measure")
@dataclass
class AstGrepRules(benchmark.FromPath):
    """Rules of a public collection against their documentation."""

    reads = ("sandbox",)
    collection: str = option("catalog", choices=("catalog", "essentials", "antislop", "schema"))
    """Which collection the folder is."""


SETS = ("commitpackft", "editpackft", "smelly_code", "edit_eval", "opencodeedit", "rows")
"""Raw sets of edits that are read."""


@configures("rlvr_exp.domains.edits.ingest.make")
@dataclass
class EditSets(FromPath, Written):
    """Raw sets of edits as normalized rows in splits, for data=edits. A run with the same options continues one that was cut off."""

    reads = ("model",)
    packages = ("datasketch", "rapidfuzz")
    extra = "edits"
    tokenizer_alone = True
    set: str = option("rows", choices=SETS)
    """The set at `path`; rows: JSON lines of your own."""
    also: dict[str, str] = field(default_factory=dict)
    """Further sets and their paths, {NAME: PATH}, in the same splits; the rows of sets made apart may be in each other's splits."""
    held_out: list[str] = field(default_factory=list)
    """Paths of sets that no row may share content with: those of data=code, or the output of an earlier run."""
    test_fraction: float = option(0.05, low=0, high=1)
    """Share of groups of alike rows that is drawn for test."""
    dev_fraction: float = option(0.05, low=0, high=1)
    """Share drawn for dev."""
    similarity: float = option(0.7, above=0, high=1)
    """Least Jaccard similarity, estimated by MinHash, of two rows that are alike and therefore in one split."""
    near_duplicates: str = option("together", choices=("together", "drop"))
    """Rows alike: all in one split, or only one of them kept."""
    instruction: str = option("subject", choices=("subject", "message"))
    """What a commit's instruction is: the first line of its message, or all of it."""
    licences: list[str] = field(default_factory=list)
    """Licences that are taken, by their SPDX names; empty: all but those that forbid training."""
    keep_empty: bool = False
    """Keep edits that make a file or remove it: the text before or after is blank."""
    max_characters: int = option(100_000, low=1)
    """Longest text before or after."""
    strip_header: bool = False
    """Python: remove comments and a docstring at the beginning of both texts (EditPackFT)."""
    forbidden: list[str] = field(default_factory=list)
    """Python: words that the text after may not have, as given or in lower case (EditPackFT)."""
    min_distance: int = option(0, low=0)
    """Python: least edit distance between the texts, in characters (EditPackFT)."""
    must_parse: bool = False
    """Python: the text after has to parse (EditPackFT)."""
    count_tokens: bool = True
    """Count tokens by the tokenizer of the `model` node: most of the time that a large set takes."""

    def problems(self) -> list[InputProblem]:
        found = super().problems()
        total = self.test_fraction + self.dev_fraction
        if total > 1:
            found.append(
                InputProblem("test_fraction", "more than all rows", f"{total:g} with dev_fraction", "at most 1")
            )
        unknown = [name for name in self.also if name not in SETS or name == self.set]
        if unknown:
            allowed = ", ".join(name for name in SETS if name != self.set)
            found.append(InputProblem("also", "no further set", ", ".join(unknown), allowed))
        return found


@configures("rlvr_exp.domains.edits.derive.make")
@dataclass
class EditActions(FromPath, Written):
    """Rows of edits with ast-grep actions of one to three rules, derived from the texts before and after, and proved by ast-grep."""

    reads = ("sandbox", "cache")
    set: str = option("rows", choices=("rows", "ast_grep_catalog"))
    """What is at `path`. rows: rows of data=edits, such as the output of prepare=edits; ast_grep_catalog: ast-grep's catalogue,
    whose actions are its own rules."""
    max_characters: int = option(1000, low=1)
    """Most characters of a derived rule's pattern and rewrite together."""
    max_share: float = option(0.5, above=0, high=1)
    """Most of the text before, blanks left out, that the derived rules' patterns may repeat."""

    def deciding(self) -> dict[str, object]:
        """What decides the rows."""
        return {"set": self.set, "max_characters": self.max_characters, "max_share": self.max_share}


@configures("rlvr_exp.domains.edits.derive.make_trajectories")
@dataclass
class Trajectories(FromPath, Written):
    """Steps of trajectories as rows of edits: the text that a teacher saw, its action, proved by ast-grep, and the text that followed."""

    reads = ("sandbox", "cache")
    dev_fraction: float = option(0.05, low=0, high=1)
    """Share of the tasks whose steps become `dev`; the rest is `train`."""
    right_only: bool = True
    """Only trajectories that end right; else every step whose action was applied."""
    keep_done: bool = True
    """Keep the steps that say `done`: as many as trajectories, all with one right answer."""

    def deciding(self) -> dict[str, object]:
        """What decides the rows."""
        return {"dev_fraction": self.dev_fraction, "right_only": self.right_only, "keep_done": self.keep_done}
