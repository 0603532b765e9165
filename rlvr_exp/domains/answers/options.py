"""Options of the domain `data=answers`."""

from dataclasses import dataclass

from rlvr_exp.config.data import Data
from rlvr_exp.config.options import configures, option


@configures("rlvr_exp.domains.answers.tasks.Answers")
@dataclass
class Answers(Data):
    """Questions of arithmetic and strings, generated. A program finds the answer in a line."""

    called: float = option(0.5, low=0, high=1)
    """Share of the tasks whose demonstration calls the tool `python` before its answer. The others answer at once."""
