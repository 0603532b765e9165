"""An update with a loss, gradient or reward that is not finite leaves weights and optimizer unchanged, and is counted."""

import copy
import json
import math
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from thinning import thinned
from tiny_update import Bowl, tiny_language_model, trainer
from updating import updated

from rlvr_exp.algorithms.gradients import CAUSES, NonFiniteGuard
from rlvr_exp.config.compose import compose
from rlvr_exp.core.errors import GuardStop, InputError
from rlvr_exp.training.learner import Learner

OPTIMIZERS = ("sgd", "adam", "adamw", "adafactor", "muon")
FAULTS = ("loss nan", "loss inf", "gradient nan", "gradient inf", "reward")
CAUSE = {fault: fault.split()[0] for fault in FAULTS}


class Sick:
    """Injects faults into chosen steps, and records the state after each."""

    def __init__(self, faults: dict[int, str], guard: NonFiniteGuard):
        self._faults, self._guard = faults, guard
        self.fault = ""
        self.after: list[tuple[dict, dict]] = []

    def before(self, step: int) -> None:
        self.fault = self._faults.get(step + 1, "")
        self._guard.rewards(["cases=nan"] if self.fault == "reward" else [])

    def note(self, learner: Learner) -> None:
        trainer = learner.trainer
        self.after.append(copy.deepcopy((trainer.model.state_dict(), trainer.optimizer.state_dict())))


def sick(model, faults: Sick):
    """The model with injected faults; a fault of the gradient leaves the loss finite."""
    plain = type(model).forward

    def forward(row):
        loss = plain(model, row)["loss"]
        what, _, size = faults.fault.partition(" ")
        if what == "loss":
            loss = loss + torch.tensor(float(size))  # Its gradient stays finite: a constant is added.
        elif what == "gradient":
            loss.register_hook(lambda grad: grad * float(size))
        return {"loss": loss}

    model.forward = forward
    return model


def run(faults: dict[int, str], *words: str, model=None, steps: int = 6, most: int = 5):
    guard = NonFiniteGuard(most)
    injected = Sick(faults, guard)
    size = [f"algorithm.max_steps={steps}", "scheduler.warmup_steps=0"]
    config = compose(["+stage=grpo", *size, *words]).config
    with TemporaryDirectory() as scratch:
        made = trainer(sick(model or Bowl(), injected), config, Path(scratch), guard)
        rows = updated(made, injected.before, config.run.log_every_steps, injected.note)
    return injected.after, rows


def flat(state) -> str:
    """Every number of a nested state, so that two are equal exactly where their texts are."""
    return json.dumps(state, default=lambda value: value.tolist(), sort_keys=True)


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("optimizer", thinned(OPTIMIZERS))
def test_a_skipped_update_leaves_weights_and_optimizer_untouched(optimizer: str, fault: str) -> None:
    model = tiny_language_model() if optimizer == "muon" else None
    after, rows = run({3: fault}, f"optimizer={optimizer}", "scheduler=cosine", model=model)
    weights, states = zip(*after, strict=True)
    assert flat(weights[2]) == flat(weights[1]) and flat(states[2]) == flat(states[1])
    assert flat(weights[1]) != flat(weights[0]) and flat(weights[3]) != flat(weights[2]), "the others move"
    assert all(value.isfinite().all() for value in weights[-1].values())
    assert [row["guard/skipped"] for row in rows] == [0, 0, 1, 0, 0, 0]
    assert {name for name in CAUSES if rows[2][f"guard/{name}"]} == {CAUSE[fault]}


@settings(deadline=None, max_examples=3)
@given(st.dictionaries(st.integers(1, 6), st.sampled_from(FAULTS), max_size=4))
def test_finite_steps_are_those_of_a_run_without_faults(faults: dict[int, str]) -> None:
    """Bit for bit: the schedule and the optimizer's count of steps stand still while an update is skipped."""
    after, rows = run(faults, "optimizer=adamw", "scheduler=constant")
    weights = [flat(weights) for step, (weights, _) in enumerate(after, 1) if step not in faults]
    alone, _ = run({}, "optimizer=adamw", "scheduler=constant", steps=6 - len(faults))
    assert weights == [flat(weights) for weights, _ in alone]
    assert sum(row["guard/skipped"] for row in rows) == len(faults)


def test_a_row_has_the_mean_loss_of_applied_updates() -> None:
    words = ["optimizer=sgd", "optimizer.lr=1e-9", "scheduler=constant", "run.log_every_steps=3"]
    _, sound = run({}, *words)
    _, some = run({2: "loss nan"}, *words)
    _, none = run({1: "loss inf", 2: "gradient nan", 3: "reward"}, *words)
    losses = [[row["loss"] for row in rows] for rows in (sound, some, none)]
    assert losses[1] == pytest.approx(losses[0], rel=1e-4)
    assert math.isnan(losses[2][0]) and losses[2][1] == pytest.approx(losses[0][1], rel=1e-4), "and none lasts"


@pytest.mark.parametrize(
    ("most", "fault", "figure"),
    [(0, "gradient inf", "the gradient's norm is inf"), (2, "loss inf", "the loss is inf"), (1, "reward", "cases=nan")],
)
def test_too_many_in_a_row_stop_the_run_with_step_figure_and_remedy(most: int, fault: str, figure: str) -> None:
    faults = dict.fromkeys(range(2, 3 + most), fault)
    with pytest.raises(GuardStop) as stop:
        run(faults, most=most)
    assert stop.value.exit_code == 3
    told = str(stop.value)
    assert f"step {2 + most}: the last {most + 1} updates were skipped, from step 2 on" in told
    for text in (figure, "those of step 1", "optimizer.lr", "run.guards.max_skipped"):
        assert text in told


def test_tolerated_skips_do_not_stop_it_and_applied_updates_reset_the_count() -> None:
    after, _ = run({1: "loss nan", 2: "loss nan", 4: "loss nan", 5: "loss nan"}, most=2)
    assert len(after) == 6


def test_a_run_that_applied_no_update_is_stopped_at_its_end() -> None:
    with pytest.raises(GuardStop, match="none of 2 updates was taken"):
        run({1: "loss nan", 2: "loss nan"}, steps=2)


def test_the_count_is_part_of_a_checkpoint() -> None:
    guard, again = NonFiniteGuard(1), NonFiniteGuard(1)
    guard.skipped(7, loss="nan", norm=math.nan)
    again.load_state_dict(json.loads(json.dumps(guard.state_dict())))
    for one in (guard, again):
        one.skipped(8, loss="nan", norm=math.nan)
        with pytest.raises(GuardStop, match="the last 2 updates were skipped, from step 7 on"):
            one.check(8)
    counts = {"guard/skipped": 2, "guard/reward": 0, "guard/loss": 2, "guard/gradient": 0}
    assert guard.metrics() == again.metrics() == counts
    with pytest.raises(InputError, match="has other keys"):
        again.load_state_dict({"skipped": 1})
