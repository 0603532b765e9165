"""Parts of a run that are broken on purpose, each in one way."""

from dataclasses import dataclass

from rlvr_exp.rewards.compose import Reward, Rewarded
from rlvr_exp.rewards.terms import AllPassed
from rlvr_exp.tasks.arc.domain import Arc
from rlvr_exp.tasks.base import Candidate
from rlvr_exp.verifiers.base import Direct, Verdict


class Deaf(Arc):
    """Finds no answer in any completion."""

    @dataclass
    class Config:
        limit: int = 0

    def __init__(self, limit: int, path: str = ""):
        super().__init__(path, limit)

    def parse(self, completion, task):
        return Candidate(None, "no <answer> in the completion")


class Down(Direct):
    """Cannot reach its grader."""

    name, version, row_format = "down", "1", "python_io"

    @dataclass
    class Config:
        pass

    def judge(self, request):
        return Verdict("no_verdict", log="connection refused: grader.internal:8080")


class Constant(Reward):
    """Pays everyone the same."""

    @dataclass
    class Config:
        pass

    def __init__(self):
        super().__init__({"all_passed": AllPassed(1.0)})

    def __call__(self, judged):
        return [_paid(one, self.pay(one)) for one in judged]

    def pay(self, one):
        return 0.5


class Long(Constant):
    """Pays by the length of the answer, and for being right next to nothing."""

    def pay(self, one):
        return one.tokens / 10 + 0.01 * one.correct


def _paid(one, value):
    if one.verdict.outcome == "no_verdict":
        return Rewarded(None, None, {})
    return Rewarded(value, value, {"own": value})
