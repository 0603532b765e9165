"""Whether the outputs of a chain speak of the same thing, and that outputs of other problems do not."""

import random
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvr_exp.config.compose import compose
from rlvr_exp.config.load import build
from rlvr_exp.domains.problems.tested import agreement, by_stage, checkable

NAMES = ("size", "x")


def test_names_of_the_problem_and_literals_are_what_can_be_checked() -> None:
    assert checkable("1. take x\n2. add 3 to 'ab' \"ab\"\n3) return -4.5", NAMES) == {"x", "3", "'ab'", "-4.5"}
    assert checkable("x1 and sizes", NAMES) == set(), "a number in a name is none"


@pytest.mark.parametrize(
    ("earlier", "later", "expected"),
    [("take x", "return x", 1.0), ("x plus 3", "x + 4", 0.5), ("x", "y", 0.0), ("nothing", "x", 0.0), ("", "", 0.0)],
)
def test_an_output_agrees_with_the_next_as_far_as_they_share_it(earlier, later, expected) -> None:
    assert agreement(earlier, later, NAMES) == expected == agreement(later, earlier, NAMES)


@given(st.lists(st.text("x 34'\n.", max_size=20), max_size=5), st.none() | st.floats(0, 1))
def test_it_is_a_share_for_each_pair(outputs, examples) -> None:
    found = by_stage(outputs, NAMES, examples)
    assert len(found) == max(0, len(outputs) - 1) and all(0 <= one <= 1 for one in found)
    assert by_stage([*outputs, *outputs[-1:]], NAMES)[: len(found)] == by_stage(outputs, NAMES)


def test_examples_that_the_program_does_not_fulfil_make_it_less() -> None:
    assert by_stage(["x", "x", "x"], NAMES, 0.0) == [1.0, 0.5] and by_stage(["x"], NAMES, 0.0) == []


@pytest.mark.slow
def test_stages_shuffled_between_problems_agree_at_least_30_points_less() -> None:
    domain = build(compose(["+stage=sft", "data=problems"]).config.data)
    tasks = domain.splits()["dev"]
    chains = [{one.inputs.stage: domain.gold_completion(one) for one in domain.demonstrations(task)} for task in tasks]
    names = [domain.names(task) for task in tasks]
    draw = random.Random(0)
    of_stage = {stage: draw.sample([one[stage] for one in chains], len(chains)) for stage in domain.stages}
    shuffled = [[of_stage[stage][place] for stage in domain.stages] for place in range(len(chains))]
    true = fmean(fmean(by_stage([*one.values()], name)) for one, name in zip(chains, names, strict=True))
    control = fmean(fmean(by_stage(one, name)) for one, name in zip(shuffled, names, strict=True))
    assert len(chains) == 400 and true > 0.6 and true - control >= 0.3
