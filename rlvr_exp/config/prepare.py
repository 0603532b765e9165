"""Options of the `prepare` group: what +stage=prepare makes, from what, and where it goes."""

from dataclasses import dataclass
from typing import ClassVar

from rlvr_exp.config.options import configures, option
from rlvr_exp.core.errors import InputProblem


@dataclass
class Prepare:
    """What is made; nothing of it is trained or measured."""

    reads: ClassVar[tuple[str, ...]] = ()
    """Nodes of the configuration that its maker reads besides its own."""
    packages: ClassVar[tuple[str, ...]] = ()
    """Optional packages that its maker imports."""
    extra: ClassVar[str] = ""
    """Extra of rlvr_exp that installs them."""
    tokenizer_alone: ClassVar[bool] = False
    """Of the `model` node its maker loads the tokenizer, and no weights."""


@dataclass
class Corpus(Prepare):
    """An embedded corpus, drawn by families from a seed of its own."""

    output: str = ""
    """Folder of the splits, with a manifest beside it; empty: of the corpus' name in the run directory."""
    rows: int = option(0, low=0)
    """Most rows of a split; 0: the sizes of the embedded corpus."""


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


@configures("rlvr_exp.models.quantization.make")
@dataclass
class Gguf(FromPath):
    """A GGUF file of a supported architecture converted to a folder for model.path."""

    output: str = ""
    """New or empty folder; empty: model in the run directory."""
    dtype: str = option("float32", choices=("float32", "bfloat16"))
    """Type of the written weights. float32 keeps the dequantized values exactly; bfloat16 takes half the space."""
