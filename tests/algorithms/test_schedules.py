"""Schedules: the logged rate of each step equals the closed form."""

import math
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thinning import thinned
from tiny_update import logged_rows

from rlvr_exp.config.compose import compose
from rlvr_exp.core.errors import InputError

LR = 0.25

Form = Callable[[float, float], float]
"""The factor of the highest rate, from the completed share of steps after the warm-up and the floor."""
FORMS: dict[str, Form] = {
    "constant": lambda done, floor: 1.0,
    "linear": lambda done, floor: 1 - done,
    "cosine": lambda done, floor: floor + (1 - floor) * (1 + math.cos(math.pi * done)) / 2,
    "polynomial": lambda done, floor: floor + (1 - floor) * (1 - done) ** 3,
}
FLOORED = ("cosine", "polynomial", "warmup_stable_decay")


def closed_form(name: str, position: int, steps: int, warmup: int, floor: float, decay: int) -> float:
    if name == "warmup_stable_decay":
        if position < warmup:
            return floor + (1 - floor) * position / warmup
        left = steps - position
        return 1.0 if left > decay else floor + (1 - floor) * left / decay
    if position < warmup:
        return position / warmup
    return FORMS[name]((position - warmup) / (steps - warmup), floor)


@pytest.mark.property(46)
@pytest.mark.parametrize("name", thinned([*FORMS, "warmup_stable_decay"]))
@settings(deadline=None, max_examples=4)
@given(data=st.data())
def test_the_logged_rate_is_the_closed_form_at_every_step(name: str, data: st.DataObject) -> None:
    steps = data.draw(st.integers(2, 9), "steps")
    warmup = data.draw(st.integers(0, steps - 2), "warm-up")
    floor = data.draw(st.sampled_from([0.0, 0.125, 0.9]), "floor") if name in FLOORED else 0.0
    decay = data.draw(st.integers(1, steps - warmup), "decay")
    words = [f"scheduler={name}", f"scheduler.warmup_steps={warmup}"]
    words += [f"scheduler.min_ratio={floor}"] if name in FLOORED else []
    words += ["scheduler.power=3"] if name == "polynomial" else []
    words += [f"scheduler.decay_steps={decay}"] if name == "warmup_stable_decay" else []
    rows = logged_rows("optimizer=sgd", f"optimizer.lr={LR}", f"algorithm.max_steps={steps}", *words)
    wanted = [LR * closed_form(name, step, steps, warmup, floor, decay) for step in range(steps)]
    assert [row["learning_rate"] for row in rows] == pytest.approx(wanted, rel=1e-9, abs=1e-12)


def test_every_group_follows_the_curve_from_its_own_rate() -> None:
    from tiny_update import tiny_language_model, trained

    words = ["optimizer=muon", "optimizer.lr=0.1", "optimizer.matrix_lr=0.4", "scheduler=polynomial"]
    trainer, _ = trained(
        tiny_language_model(),
        *words,
        "scheduler.power=1",
        "scheduler.min_ratio=0.5",
        "scheduler.warmup_steps=0",
        "algorithm.max_steps=2",
    )
    assert [group["lr"] for group in trainer.optimizer.param_groups] == pytest.approx([0.05, 0.2])


@pytest.mark.parametrize(
    "words", [["scheduler.warmup_steps=4", "scheduler.decay_steps=3"], ["scheduler.warmup_steps=5"]]
)
def test_a_decay_that_does_not_fit_is_refused(words: list[str]) -> None:
    line = ["+stage=grpo", "scheduler=warmup_stable_decay", "algorithm.max_steps=5", *words]
    with pytest.raises(InputError, match="longer than the run"):
        compose(line)


@pytest.mark.parametrize(
    "words",
    [
        ["scheduler=constant", "scheduler.min_ratio=0.1"],
        ["scheduler=cosine", "scheduler.power=2"],
        ["scheduler=polynomial", "scheduler.decay_steps=2"],
        ["scheduler=cosine", "scheduler.min_ratio=1"],
        ["scheduler=polynomial", "scheduler.power=0"],
        ["scheduler=linear", "scheduler.warmup_steps=-1"],
        ["scheduler=warmup_stable_decay", "scheduler.decay=square"],
    ],
)
def test_options_exist_where_they_act_and_impossible_values_are_refused(words: list[str]) -> None:
    with pytest.raises(InputError, match=words[1].partition("=")[0]):
        compose(["+stage=grpo", *words])
