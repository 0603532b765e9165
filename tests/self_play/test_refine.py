"""Which failed answer is refined, and what refinement is learned from."""

from collections import Counter
from random import Random
from statistics import fmean

import pytest
from playing import FLIP, MIRROR, failed, flipped, passed, task
from scipy.stats import beta

from rlvr_exp.domains.arc.tasks import Arc
from rlvr_exp.self_play.imitation import candidates, chosen_to_refine, corrections, drawn

HOST = task()
DOMAIN = Arc()


@pytest.mark.parametrize(("accuracy", "refined"), [(0.0, 0), (0.5, 0), (0.5, 7), (1.0, 3)])
def test_the_draw_is_from_the_posterior_of_rex(accuracy: float, refined: int) -> None:
    rng = Random(0)
    found = [drawn(accuracy, refined, 20.0, rng) for _ in range(20_000)]
    mean, deviation = beta.stats(1 + 20 * accuracy, 1 + 20 * (1 - accuracy) + refined)[0], 0.5 / 20_000**0.5
    assert fmean(found) == pytest.approx(mean, abs=5 * deviation)


def picks(refined: dict[str, int], exploit: float = 20.0) -> Counter[str]:
    answers = [failed(HOST, "a = 1", flipped(HOST), 0), failed(HOST, "b = 1", flipped(HOST), 2)]
    rng = Random(1)
    return Counter(chosen_to_refine(answers, refined, exploit, rng).solution.program for _ in range(500))


def test_an_answer_with_more_pairs_right_is_refined_first_until_it_was_refined_often() -> None:
    assert picks({})["b = 1"] > 450
    key = failed(HOST, "b = 1", flipped(HOST), 2).solution.key
    assert picks({key: 4000})["a = 1"] > 450
    assert 150 < picks({}, exploit=0.01)["a = 1"] < 350


def test_candidates_are_wrong_answers_of_tasks_that_nothing_solved() -> None:
    other = task("o", first=5)
    error = failed(other, "c = 1", flipped(other))
    found = [failed(HOST, FLIP, flipped(HOST)), failed(other, FLIP, flipped(other)), passed(other)]
    assert candidates(found) == {"t": [found[0]]}
    assert candidates([found[0], passed(HOST)]) == {}
    crashed = type(error)(
        type(error.solution)(
            **{**vars(error.solution), "verdict": type(error.solution.verdict)("failed", "runtime_error", total=3)}
        ),
        other,
        text="c = 1",
    )
    assert candidates([crashed]) == {}


def test_corrections_are_as_many_from_each_bin_of_accuracy_one_a_task() -> None:
    hosts = [task(f"t{n}", first=n % 10) for n in range(9)]
    found = [failed(host, FLIP, flipped(host), passed=n % 3) for n, host in enumerate(hosts)]
    found += [failed(hosts[0], "x = 1", flipped(hosts[0])), failed(hosts[3], "y = 1", flipped(hosts[3]))]
    golds = {host.id: passed(host) for host in hosts[:7]}
    rows = corrections(found, golds, DOMAIN, seed=0, number=0)
    by_bin = Counter(
        round(next(one.accuracy for one in found if one.text == row.previous and one.host == row.host), 2)
        for row in rows
    )
    assert len({row.host.id for row in rows}) == len(rows) and set(by_bin.values()) == {2} and len(by_bin) == 3
    assert all(row.kind == "refined" and row.solution.program == MIRROR for row in rows)
    assert all(row.feedback == "wrong_answer: case 0: gave something else" for row in rows)
    assert not {row.host.id for row in rows} & {"t7", "t8"}, "nothing that passed is known of these"


def test_what_passed_is_preferred_to_the_gold() -> None:
    found = [failed(HOST, FLIP, flipped(HOST)), passed(HOST, "def solve(g): return [r[::-1] for r in g]")]
    (row,) = corrections(found, {HOST.id: passed(HOST)}, DOMAIN, 0, 0)
    assert row.solution.program == found[1].solution.program
