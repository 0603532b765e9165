"""Options of the `curriculum` group: which task comes next."""

from dataclasses import dataclass

from rlvr_exp.config.options import configures


@configures("rlvr_exp.curriculum.uniform.Uniform")
@dataclass
class Uniform:
    """Every task equally often, in a seeded order."""


@configures("rlvr_exp.curriculum.ordered.Ordered")
@dataclass
class Ordered:
    """From the easiest task to the hardest."""
