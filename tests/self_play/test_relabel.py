"""Programs that are run again before they are kept, and golds tried on kindred tasks; in the real sandbox."""

from types import SimpleNamespace

import pytest
from playing import DOMAIN, FLIP, LIMITS, failed, flipped, task

from rlvr_exp.self_play.hindsight import Hindsight
from rlvr_exp.self_play.relabel import UNSTABLE, Transfer, deterministic
from rlvr_exp.tasks.base import Candidate
from rlvr_exp.verifiers.base import Request
from rlvr_exp.verifiers.python_io import PythonIO

RANDOM = "import os\ndef solve(g):\n    return [[byte % 10 for byte in os.urandom(30)]]"


@pytest.fixture(scope="module")
def executor():
    with PythonIO(SimpleNamespace(workers=1, **LIMITS)) as verifier:
        yield verifier


def test_a_program_that_returns_other_outputs_again_is_no_gold(executor) -> None:
    host, hindsight = task(), Hindsight(DOMAIN, ())
    drawn = executor.execute(Request(host.problem, Candidate(RANDOM))).result()
    rows = [failed(host, RANDOM, list(drawn.outputs)), failed(host, FLIP, flipped(host))]
    assert deterministic(rows, executor, hindsight) == rows[1:]
    assert hindsight.refused == {UNSTABLE: 1}


def test_golds_of_kindred_tasks_are_tried_and_those_that_fail_are_told(executor) -> None:
    other = task("other", first=5)
    flips = type(other)(**{**vars(other), "id": "flips", "gold": FLIP})
    strange = type(other)(**{**vars(other), "id": "strange", "family": "another", "gold": FLIP})
    host = task()
    transfer = Transfer(DOMAIN, [host, other, flips, strange], executor, seed=0)
    (found,) = transfer.tried([host], 9, 0)  # The mirror solves it: nothing new.
    assert found.solution.program.strip() == FLIP and list(found.outputs) == flipped(host)
    assert found.solution.operator == "gold" and not found.correct
    assert transfer.tried([host], 0, 0) == [] and transfer.tried([strange], 9, 0) == []


def test_which_golds_are_tried_depends_on_seed_round_and_task_alone(executor) -> None:
    tasks = [
        type(one)(**{**vars(one), "gold": f"{FLIP}  # {one.id}"}) for one in (task(f"t{n}", first=n) for n in range(8))
    ]
    host = task("host", first=9)

    def programs(hosts, seed: int, number: int) -> list[str]:
        found = Transfer(DOMAIN, tasks, executor, seed).tried(hosts, 3, number)
        return [one.solution.program for one in found if one.host is host]

    first = programs([host], 0, 0)
    assert len(set(first)) == 3 and first == programs([tasks[0], host], 0, 0)
    assert first != programs([host], 1, 0) and first != programs([host], 0, 1)
