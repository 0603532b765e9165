"""Options of the studies of generalisation: solved examples in the prompt, tasks of other families and other sets, and what
success owes to the training tasks and to the seed."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from rlvr_exp.config.options import configures, option
from rlvr_exp.config.study import Study
from rlvr_exp.core.errors import InputProblem


@configures("rlvr_exp.studies.few_shot.FewShot")
@dataclass
class FewShot(Study):
    """How success depends on the number of solved examples that a prompt shows, for a policy that is not trained."""

    shots: list[int] = option([0, 1, 2, 4, 8], low=0)
    """Numbers of solved examples (data.prompt.shots), rising."""

    def _faults(self) -> Iterator[InputProblem]:
        yield from super()._faults()
        if len(self.shots) < 2 or any(later <= one for one, later in pairwise(self.shots)):
            yield InputProblem("shots", "they rise", str(self.shots), "two or more, each above the last")
