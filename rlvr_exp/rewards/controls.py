"""A reward without information, for control arms."""

import hashlib
from typing import ClassVar

from rlvr_exp.config import verifier as options
from rlvr_exp.episodes.types import Completion
from rlvr_exp.rewards.base import Term, ValueRange


class Random(Term, options.Random):
    """0 or 1 with equal probability, whatever the answer: the control of Shao et al., Spurious Rewards (2506.10947).

    A hash of task, number and text of the completion decides, so that a resumed run pays the same.
    """

    when_correct: ClassVar[ValueRange] = ValueRange(0.0, 1.0)
    when_wrong: ClassVar[ValueRange] = ValueRange(0.0, 1.0)

    def __call__(self, completion: Completion) -> float:
        said = f"{completion.task.id}\0{completion.sample}\0{completion.text}"
        return float(hashlib.sha256(said.encode(errors="surrogatepass")).digest()[0] & 1)
