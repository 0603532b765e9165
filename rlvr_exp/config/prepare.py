"""Options of the `prepare` group: what +stage=prepare makes, and where."""

from dataclasses import dataclass

from rlvr_exp.config.options import configures, option


@dataclass
class Prepare:
    """What is made; nothing of it is trained or measured."""


@configures("rlvr_exp.corpora.arc.build.make")
@dataclass
class ArcCorpus(Prepare):
    """The embedded ARC corpus. Equal code makes equal files."""

    output: str = ""
    """Folder of the splits, with a manifest beside it; empty: `arc` in the run directory."""
    rows: int = option(0, low=0)
    """Most tasks of a split; 0: the sizes of the embedded corpus."""


@dataclass
class Proved(Prepare):
    """What the Dafny verifier of the `verifier` node proves."""


@configures("rlvr_exp.corpora.dafny.proving.make")
@dataclass
class DafnyCorpus(Proved):
    """The embedded Dafny corpus, every row of it proved. Equal code and an equal prover make equal files."""

    output: str = ""
    """Folder of the splits, with a manifest beside it; empty: `dafny` in the run directory."""
    rows: int = option(0, low=0)
    """Most rows of a split; 0: the sizes of the embedded corpus."""
