"""Relabelling in hindsight: a task is made once, and never shows a part of a held-out task. Programs run again before they are
kept, and golds are tried on kindred tasks, in the real sandbox.
"""

from types import SimpleNamespace

import pytest
from playing import DOMAIN, FLIP, LIMITS, failed, flipped, task

from rlvr_exp.domains.arc.variants import CONSTANT
from rlvr_exp.self_play.found import (
    KNOWN,
    LEAK,
    UNSTABLE,
    Hindsight,
    Transfer,
    deterministic,
    from_line,
    relabelled,
    solving,
    to_line,
)
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


HOST = task()


def test_a_failed_program_is_the_gold_of_the_task_that_it_solves() -> None:
    one = failed(HOST, FLIP, flipped(HOST), operator="refined")
    (row,) = relabelled([one], Hindsight(DOMAIN, ()), "relabelled")
    assert row.kind == "relabelled" and row.host is HOST and row.solution.correct
    assert row.solution.program == FLIP and row.solution.operator == "relabelled"
    assert row.solution.parent == one.solution.key and row.solution.task.startswith("t~")
    assert (row.solution.verdict.passed, row.solution.verdict.total) == (3, 3)
    assert row.solution.outputs == one.solution.outputs


def test_what_makes_no_task_is_counted_by_reason() -> None:
    hindsight = Hindsight(DOMAIN, ())
    assert hindsight.task(HOST, [[[1]]] * 3) is None
    assert hindsight.refused == {CONSTANT: 1}


@pytest.mark.parametrize(("most", "made"), [(1, 1), (2, 2), (0, 4)])
def test_a_task_is_made_so_often(most: int, made: int) -> None:
    hindsight = Hindsight(DOMAIN, (), most)
    found = [hindsight.task(HOST, flipped(HOST)) for _ in range(4)]
    assert sum(one is not None for one in found) == made and hindsight.refused[KNOWN] == 4 - made


def test_only_what_is_kept_is_known_in_the_next_round() -> None:
    hindsight = Hindsight(DOMAIN, ())
    first = hindsight.task(HOST, flipped(HOST))
    hindsight.begin()
    assert hindsight.task(HOST, flipped(HOST)) == first
    hindsight.keep([first.id])
    hindsight.begin()
    assert hindsight.task(HOST, flipped(HOST)) is None


@pytest.mark.parametrize("place", ["input", "output", "held back"])
def test_no_grid_of_a_held_out_task_is_in_a_relabelled_one(place: str) -> None:
    """Fails without the guard: the same outputs make a task where nothing is held out."""
    held_out = {
        "input": task("held", first=HOST.problem.cases[0].args[0][0][0]),
        "output": relabelled([failed(task("x", first=5), FLIP, flipped(HOST))], Hindsight(DOMAIN, ()), "x"),
        "held back": task("held", first=1),
    }
    held = held_out[place][0].host if place == "output" else held_out[place]
    outputs = flipped(HOST)
    if place == "output":
        held = DOMAIN.relabelled(task("x", first=5), outputs)
    guarded, open_ = Hindsight(DOMAIN, [held]), Hindsight(DOMAIN, ())
    assert guarded.task(HOST, outputs) is None and guarded.refused == {LEAK: 1}
    assert open_.task(HOST, outputs) is not None


def leaked(hindsight: Hindsight) -> int:
    """Relabelled tasks with a grid of a held-out split, of golds of the embedded corpus tried on other tasks of it."""
    splits = DOMAIN.splits()
    held = {grid for name in ("dev", "test", "test_unseen") for one in splits[name] for grid in DOMAIN.fragments(one)}
    count = 0
    for host in splits["train"][:300]:
        # What `return [row[:1] for row in g]` and its like return, without a sandbox.
        for part in (lambda g: [row[:1] for row in g], lambda g: g[:1], lambda g: [row[:2] for row in g[:2]]):
            made = hindsight.task(host, [part(case.args[0]) for case in host.problem.cases])
            count += made is not None and not held.isdisjoint(DOMAIN.fragments(made))
    return count


def test_no_relabelled_grid_is_in_a_held_out_split_of_the_embedded_corpus() -> None:
    splits = DOMAIN.splits()
    held = [one for name in ("dev", "test", "test_unseen") for one in splits[name]]
    guarded = Hindsight(DOMAIN, held)
    assert leaked(guarded) == 0 and guarded.refused[LEAK] > 20
    assert leaked(Hindsight(DOMAIN, ())) == guarded.refused[LEAK], "the guard is what keeps them out"


def test_a_row_is_the_same_after_it_was_written() -> None:
    made = Hindsight(DOMAIN, ()).task(HOST, flipped(HOST))
    row = solving(failed(HOST, FLIP, flipped(HOST)), made, "relabelled")
    again = from_line(to_line(row), {HOST.id: HOST}, DOMAIN)
    assert (again.solution, again.outputs, again.kind, again.solved) == (
        row.solution,
        row.outputs,
        row.kind,
        row.solved,
    )
