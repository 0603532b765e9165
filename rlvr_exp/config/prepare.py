"""Options of the `prepare` group: what +stage=prepare makes, from what, and where it goes."""

from dataclasses import dataclass, field
from typing import ClassVar

from rlvr_exp.config.options import configures, option
from rlvr_exp.core.errors import InputProblem


@dataclass
class Prepare:
    """What is made; nothing of it is trained or measured."""

    reads: ClassVar[tuple[str, ...]] = ()
    """Nodes of the configuration that its maker reads besides its own."""


@dataclass
class Corpus(Prepare):
    """An embedded corpus, drawn by families from a seed of its own."""

    output: str = ""
    """Folder of the splits, with a manifest beside it; empty: of the corpus' name in the run directory."""
    rows: int = option(0, low=0)
    """Most rows of a split; 0: the sizes of the embedded corpus."""


@configures("rlvr_exp.corpora.edits.build.make")
@dataclass
class EditsCorpus(Corpus):
    """The embedded corpus of edits, every one of them made by the real ast-grep. Equal code makes equal files."""


@dataclass
class FromPath(Prepare):
    """What is made of files that are there."""

    path: str = ""
    """Folder or file that is read."""

    def problems(self) -> list[InputProblem]:
        if self.path:
            return []
        return [InputProblem("path", "not given", "nothing", "an existing folder or file", "", "prepare.path=PATH")]


@configures("rlvr_exp.corpora.rows.make")
@dataclass
class Rows(Prepare):
    """The tasks of the `data` node, in Python, as rows of +stage=verify."""

    reads = ("data", "verifier")
    output: str = ""
    """File of the rows; empty: rows.jsonl in the run directory."""
    candidates: list[str] = option(["gold"], choices=("gold", "wrong", "hollow", "mutants"))
    """Kinds of candidates: golds, the data's wrong programs, stubs that compute nothing, mutants of golds."""
    mutants: int = option(4, low=0)
    """Mutants of each gold."""


@configures("rlvr_exp.corpora.policy.make")
@dataclass
class EmbeddedPolicy(Prepare):
    """The files of an embedded policy: tokenizer and architecture, or a checkpoint's weights."""

    name: str = option("tiny", choices=("tiny", "tiny_dafny", "tiny_edits", "tiny_solver", "tiny_tester"))
    """Which policy: of grid puzzles, of Dafny methods, of edits by ast-grep, of coding problems, or of their tests."""
    path: str = ""
    """Checkpoint whose weights are written; empty: tokenizer and architecture are, from the embedded train split."""
    output: str = ""
    """Folder; empty: of the policy's name in the run directory."""


@configures("rlvr_exp.corpora.merge.make")
@dataclass
class Merge(FromPath):
    """An adapter, such as RUN/checkpoints/best, merged with its base into a full checkpoint."""

    output: str = ""
    """New or empty folder; empty: merged in the run directory."""
    base: str = ""
    """Where the base is now; empty: where the adapter places it."""
    dtype: str = option("", choices=("", "auto", "float32", "bfloat16"))
    """Type of the weights; empty: that of training."""
    stored: bool = False
    """Take the base's weights as stored, not as quantized in training."""


@configures("rlvr_exp.models.gguf.make")
@dataclass
class Gguf(FromPath):
    """A GGUF file of a supported architecture converted to a folder for model.path."""

    output: str = ""
    """New or empty folder; empty: model in the run directory."""
    dtype: str = option("float32", choices=("float32", "bfloat16"))
    """Type of the written weights. float32 keeps the dequantized values exactly; bfloat16 takes half the space."""


SETS = ("commitpackft", "editpackft", "smelly_code", "edit_eval", "opencodeedit", "rows")
"""Raw sets of edits that are read."""


@configures("rlvr_exp.corpora.edit_sets.build.make")
@dataclass
class EditSets(FromPath):
    """Raw sets of edits as normalized rows in splits, for data=edits. Continued where a run of the same options was cut off."""

    reads = ("model",)
    set: str = option("rows", choices=SETS)
    """The set at `path`; rows: JSON lines of your own."""
    also: dict[str, str] = field(default_factory=dict)
    """Further sets and their paths, {NAME: PATH}, in the same splits; the rows of sets made apart may be in each other's splits."""
    output: str = ""
    """Folder of the splits; empty: edits in the run directory, where nothing can be continued."""
    held_out: list[str] = field(default_factory=list)
    """Paths of sets that no row may share content with: those of data=code, or the output of an earlier run."""
    test_fraction: float = option(0.05, low=0, high=1)
    """Share of groups of alike rows that is drawn for test."""
    dev_fraction: float = option(0.05, low=0, high=1)
    """Share drawn for dev."""
    similarity: float = option(0.7, above=0, high=1)
    """Jaccard similarity, estimated by MinHash, from which on two rows are alike and in one split."""
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


@configures("rlvr_exp.corpora.edit_actions.build.make")
@dataclass
class EditActions(FromPath):
    """Rows of edits with ast-grep actions of one to three rules, derived from the texts before and after, and proved by ast-grep."""

    reads = ("sandbox", "cache")
    set: str = option("rows", choices=("rows", "ast_grep_catalog"))
    """What is at `path`. rows: rows of data=edits, such as the output of prepare=edits; ast_grep_catalog: ast-grep's catalogue,
    whose actions are its own rules."""
    output: str = ""
    """New or empty folder of the splits; empty: rows in the run directory."""
    max_characters: int = option(1000, low=1)
    """Most characters of a derived rule: of what it matches and of its rewrite."""
    max_share: float = option(0.5, above=0, high=1)
    """Most of the text before, blanks left out, that the derived rules' patterns may repeat."""

    def deciding(self) -> dict[str, object]:
        """What decides the rows."""
        return {"set": self.set, "max_characters": self.max_characters, "max_share": self.max_share}


@configures("rlvr_exp.corpora.edit_actions.trajectories.make")
@dataclass
class Trajectories(FromPath):
    """Steps of trajectories as rows of edits: what a teacher was shown, its action, proved by ast-grep, and what came of it."""

    reads = ("sandbox", "cache")
    output: str = ""
    """New or empty folder of the splits; empty: rows in the run directory."""
    dev_fraction: float = option(0.05, low=0, high=1)
    """Share of the tasks whose steps become `dev`; the rest is `train`."""
    right_only: bool = True
    """Only trajectories that end right; else every step whose action was applied."""
    keep_done: bool = True
    """Keep the steps that say `done`: as many as trajectories, all with one right answer."""

    def deciding(self) -> dict[str, object]:
        """What decides the rows."""
        return {"dev_fraction": self.dev_fraction, "right_only": self.right_only, "keep_done": self.keep_done}
