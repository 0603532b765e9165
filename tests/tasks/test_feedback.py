"""Feedback that a prompt may show: no expected value of a case that the prompt hides, in any domain."""

import pytest

from rlvr_exp.domains.arc.tasks import Arc
from rlvr_exp.domains.code.tasks import Code
from rlvr_exp.domains.dafny.tasks import DafnyDomain
from rlvr_exp.domains.edits.tasks import Edits
from rlvr_exp.domains.problems.tasks import Problems
from rlvr_exp.tasks.base import Domain
from rlvr_exp.verifiers.base import Verdict

LOGS = ["test_x: assert 3 == 41", "line 2 (- wanted, + got):\n- return 41\n+ return 3", "gave 3, expected 41"]


@pytest.mark.parametrize("log", LOGS)
@pytest.mark.parametrize("kind", [Arc, Code, DafnyDomain, Edits, Problems])
def test_the_log_of_a_wrong_answer_without_a_case_is_left_out(kind: type[Domain], log: str) -> None:
    domain = object.__new__(kind)
    assert domain.feedback(None, Verdict("failed", "wrong_answer", log=log)) == "wrong_answer"
    assert log in domain.feedback(None, Verdict("failed", "runtime_error", log=log))


def test_a_numbered_case_is_named_without_its_value() -> None:
    verdict = Verdict("failed", "wrong_answer", log="case 2: f(3) gave 3, expected 41")
    assert object.__new__(Code).feedback(None, verdict) == "wrong_answer: hidden case 2"
