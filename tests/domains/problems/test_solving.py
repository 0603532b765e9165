"""A solver and a tester at work: which chain is chosen, and when it is criticised."""

import pytest
from test_adversarial import NEGATIVE, RIGHT, ROW, STAGES, ZERO, played

from rlvr_exp.config.verifier import Sandbox
from rlvr_exp.core.files import write_json
from rlvr_exp.domains.problems.engine import Solving
from rlvr_exp.domains.problems.options import TESTER
from rlvr_exp.domains.problems.tasks import Problems
from rlvr_exp.verifiers.base import KeepsOutputs
from rlvr_exp.verifiers.python_tests import PythonTests


@pytest.fixture(scope="module")
def verifier():
    with PythonTests(Sandbox(workers=1)) as one:
        yield KeepsOutputs(one, "environment", remember=False)


@pytest.fixture
def domain(tmp_path) -> Problems:
    write_json(tmp_path / "rows.json", [ROW])
    return Problems(path=str(tmp_path), reasoning=STAGES)


def test_critiques_come_last_and_are_of_the_chosen_chain_alone(verifier, domain) -> None:
    environment = Solving(domain, tests=2)
    codes, tests = [NEGATIVE, ZERO, RIGHT], ["size(-2) == 2", "size(0) == 0"]
    _, done = played(verifier, domain, codes, tests, environment=environment)
    assert environment.chosen(done) == environment.in_order(done)[2]
    critiques = environment.critiques_in(done)
    assert critiques == [len(done.turns) - 2, len(done.turns) - 1] and done.turns[critiques[0]].role == TESTER
    assert {environment.criticised(done, index) for index in critiques} == {2, environment.chosen(done)}


def test_chains_are_in_the_order_of_sampling_whenever_they_ended(verifier, domain) -> None:
    environment = Solving(domain, tests=2, critiques=False)
    _, done = played(verifier, domain, ["...", NEGATIVE, "..."], ["size(3) == 3"] * 2, environment=environment)
    order = environment.in_order(done)
    assert [done.turns[index].completion.text for index in order] == ["...", NEGATIVE, "..."]
    assert environment.chosen(done) == order[1], "among chains that pass nothing, one with a program"
    assert not environment.critiques_in(done)
