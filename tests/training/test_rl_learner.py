"""Roles that learn from verified completions, each with its own rows, state and weights; and their probe."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import fixed_batch
import pytest
import torch
from tiny_step import EVERYTHING, experience, policy, trainer
from updating import updated

from rlvr_exp.config.compose import compose
from rlvr_exp.config.model import Adapter
from rlvr_exp.core.errors import GuardStop
from rlvr_exp.models.adapters import activate, adapter_parameters
from rlvr_exp.models.policy import add_adapter
from rlvr_exp.training.learner import PeriodicProbe, RLLearner, Rollouts

ROLES = ("writer", "annotator")
WORDS = ["+stage=grpo", "algorithm.prompts_per_step=3", "algorithm.group_size=3", "algorithm.iterations=2"]
WORDS += ["algorithm.max_steps=4", "run.probe.every_steps=1", "model.max_prompt_tokens=4", "optimizer.lr=0.05"]


def pair(folder: Path, *words: str) -> dict[str, RLLearner]:
    """A learner for each adapter of one base, both begun."""
    who, config = fixed_batch.policy(folder / "policy"), compose([*WORDS, *words]).config
    for number, role in enumerate(ROLES):
        who = add_adapter(who, role, Adapter(kind="lora", rank=2), seed=number)
    made = {}
    for role in ROLES:
        activate(who.model, role)
        algorithm = fixed_batch.algorithm("grpo", *WORDS[3:], "algorithm.group_size=3")
        made[role] = RLLearner(role, replace(who), algorithm, config, [[5, 6]], folder)
    for learner in made.values():
        learner.begin()
    return made


def rollouts(folder: Path, nonfinite: tuple[str, ...] = ()) -> Rollouts:
    """The first step's groups, for both."""
    recorded = fixed_batch.drawn_from(fixed_batch.policy(folder / "policy").model, 0.1)
    groups = fixed_batch.groups(fixed_batch.algorithm("grpo"), recorded, step=0)
    fresh = replace(groups, sampled=groups.batch, carried_in=())
    return Rollouts(0, dict.fromkeys(ROLES, fresh), nonfinite=nonfinite)


def test_both_learn_from_one_step_and_each_has_rows_of_its_own_adapter(tmp_path: Path) -> None:
    learners = pair(tmp_path)
    given = rollouts(tmp_path)
    assert all(learner.needs_rollouts for learner in learners.values())
    for learner in learners.values():
        learner.take(given)
    for learner in learners.values():
        learner.update()
    assert not any(learner.needs_rollouts for learner in learners.values()), "two updates on each batch"
    for role, learner in learners.items():
        row = learner.row()
        own = torch.cat([value.detach().flatten() for value in adapter_parameters(learner.policy.model, role)])
        assert row["adapter/norm"] == pytest.approx(float(own.norm()), rel=1e-5)
        assert row["samples/sampled"] == 9 and 0 <= row["sync/probe_gap"] < 1e-3 and row["guard/skipped"] == 0
        assert learner.row() == {}, "no update since"


def test_a_role_without_groups_has_no_update_until_it_has_some(tmp_path: Path) -> None:
    learner = pair(tmp_path)["writer"]
    given = rollouts(tmp_path)
    learner.take(replace(given, groups={"annotator": given.groups["annotator"]}))
    assert not learner.ready and learner.needs_rollouts and learner.row() == {}
    learner.take(given)
    learner.update()
    assert learner.ready and learner.steps == 1


def test_rewards_that_are_not_finite_skip_the_updates_of_their_step(tmp_path: Path) -> None:
    learner = pair(tmp_path)["writer"]
    before = [value.detach().clone() for value in adapter_parameters(learner.policy.model, "writer")]
    learner.take(rollouts(tmp_path, ("cases=nan",)))
    learner.update()
    assert all(map(torch.equal, adapter_parameters(learner.policy.model, "writer"), before))
    row = learner.row()
    assert row["guard/reward"] == row["guard/skipped"] == 1
    with pytest.raises(GuardStop, match="none of 1 updates was taken"):
        learner.end()


@pytest.mark.slow
def test_a_role_resumed_between_two_updates_of_a_batch_goes_on_with_it(tmp_path: Path) -> None:
    """And with the row that it has begun, bit for bit."""
    whole = pair(tmp_path / "whole")["writer"]
    whole.take(rollouts(tmp_path))
    whole.update()
    (tmp_path / "saved").mkdir()
    whole.save(tmp_path / "saved")
    kept = [value.detach().clone() for value in adapter_parameters(whole.policy.model, "writer")]
    again = pair(tmp_path / "again")["writer"]
    for value, one in zip(adapter_parameters(again.policy.model, "writer"), kept, strict=True):
        value.data.copy_(one)
    again.begin(tmp_path / "saved")
    assert again.steps == 1 and not again.needs_rollouts
    rows = []
    for learner in (whole, again):
        learner.update()
        rows.append({name: value for name, value in learner.row().items() if not name.startswith("time/")})
    assert rows[0] == rows[1]
    ours, theirs = (adapter_parameters(learner.policy.model, "writer") for learner in (whole, again))
    assert all(map(torch.equal, ours, theirs))


PROMPTS = [[5, 6, 7, 8, 9], [3, 4, 5]]


def probed(folder, steps: int, every: int = 1, own: bool = True) -> PeriodicProbe:
    """After updates with a probe; the engine has the trained weights, or others that only start the same."""
    made = trainer(folder, EVERYTHING, max_steps=steps)
    engine = replace(policy(), model=made.model) if own else policy()
    one = PeriodicProbe(SimpleNamespace(every_steps=every, tolerance=0.0), made, engine, PROMPTS)
    one.begin(0)
    updated(made, lambda _: experience(), after=lambda learner: one.after(learner.steps))
    return one


def test_a_local_engine_and_its_trainer_agree_at_every_probe(tmp_path):
    one = probed(tmp_path, steps=2)
    assert 0 <= one.metrics()["sync/probe_gap"] < 1e-5 and one.metrics() == {}


def test_an_engine_that_is_never_handed_new_weights_ends_the_run(tmp_path):
    with pytest.raises(GuardStop, match=r"step 1: .* stale weights: it has those of step 0"):
        probed(tmp_path, steps=3, own=False)


def test_no_probe_runs_where_it_is_off(tmp_path):
    assert probed(tmp_path, steps=1, every=0, own=False).metrics() == {}


def test_a_gap_of_a_row_still_to_come_is_part_of_a_checkpoint(tmp_path):
    one, again = probed(tmp_path, steps=1), probed(tmp_path, steps=1, every=0)
    again.load_state_dict(one.state_dict())
    assert again.metrics() == one.metrics() != {}


def test_scoring_leaves_the_model_in_its_mode_and_without_gradients(tmp_path):
    made = trainer(tmp_path, EVERYTHING)
    made.model.train()
    scores = made.scored([[5, 6], [5, 6]], [[7, 8], [9, 3]], [0, 0])
    assert scores.shape == (2, 2)
    assert not scores.requires_grad
    assert made.model.training
    assert all(value.grad is None for value in made.model.parameters())
    logits = made.model(input_ids=torch.tensor([[5, 6, 7, 8]])).logits[0, 1:3].log_softmax(-1)
    assert torch.allclose(scores[0], logits.gather(-1, torch.tensor([[7], [8]]))[:, 0], atol=1e-5)
