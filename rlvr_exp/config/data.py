"""Options of the `data` group: the domain, where its tasks come from and how they are worded."""

import math
from dataclasses import dataclass, field
from typing import Any

from rlvr_exp.config.options import option
from rlvr_exp.core.errors import InputProblem


@dataclass
class Data:
    """Options of every domain's node."""

    path: str = ""
    """Folder or file of real data; empty: the embedded corpus."""
    limit: int = option(0, low=0)
    """The first N tasks of each split after a seeded shuffle; 0: all."""
    mix: dict[str, float] = field(default_factory=dict)
    """Shares of the sources in what is trained on, {SOURCE: SHARE}, which need not add up to 1; sources that are not named
    are not trained on. Empty: every task equally often."""
    folds: int = option(0, low=0, rare=True)
    """Parts of a cross-validation: one is the split `test`, the others are trained on; 0: the splits of the data."""
    fold: int = option(0, low=0, rare=True)
    """Which fold is held out, from 0."""
    folds_of: list[str] = option([], rare=True)
    """Splits whose tasks are in folds; the others stay as they are. Empty: train, practice and test, as far as they are
    there."""
    families: list[str] = field(default_factory=list)
    """Families whose tasks the splits keep; empty: all."""
    unseen_families: list[str] = option([], rare=True)
    """Families that no split keeps but `test_unseen`, which then holds their tasks and no others; empty: the splits of the
    data."""
    resample: int = option(0, low=0, rare=True)
    """Seed of a bootstrap: the tasks that are trained on are drawn with replacement, as many as there are; 0: each once."""

    @property
    def as_read(self) -> bool:
        """Whether the splits are those of the data."""
        return not (self.folds or self.families or self.unseen_families or self.resample)

    def problems(self) -> list[InputProblem]:
        return [*self._of_mix(), *self._of_folds(), *self._of_families()]

    def _of_families(self) -> list[InputProblem]:
        both = ", ".join(sorted({*self.families} & {*self.unseen_families}))
        what = "these families are to be kept and to be held out"
        return [InputProblem("unseen_families", what, both, remedy="name them in one of the two")] if both else []

    def _of_folds(self) -> list[InputProblem]:
        if self.folds == 1:
            return [
                InputProblem(
                    "folds", "one fold leaves nothing to train on", "1", "0, or 2 and more", "", "data.folds=5"
                )
            ]
        if not self.folds and (self.fold or self.folds_of):
            got = f"fold={self.fold}, folds_of={self.folds_of}"
            return [InputProblem("folds", "there are no folds", got, "2 and more", "", "data.folds=5, or drop it")]
        if self.folds and self.fold >= self.folds:
            return [InputProblem("fold", f"there are {self.folds} folds", str(self.fold), f"0 to {self.folds - 1}")]
        return []

    def _of_mix(self) -> list[InputProblem]:
        wrong = [f"{source}: {share}" for source, share in self.mix.items() if not (math.isfinite(share) and share > 0)]
        return [InputProblem("mix", "no share", ", ".join(wrong), "numbers above 0")] if wrong else []


def fraction_problems(data: Any) -> list[InputProblem]:
    """Problems of a node with `dev_fraction` and `test_fraction`."""
    if data.dev_fraction + data.test_fraction <= 1:
        return []
    got = f"{data.dev_fraction} + {data.test_fraction}"
    return [InputProblem("dev_fraction", "the shares of dev and test add up to more than 1", got, "a sum of at most 1")]
