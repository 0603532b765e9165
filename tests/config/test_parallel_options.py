"""Combinations with the `parallel` node that cannot work are reported before anything starts, each with a remedy."""

import pytest

from rlvr_exp.algorithms.base import deepspeed_settings
from rlvr_exp.config.compose import compose_lenient


@pytest.mark.parametrize(
    ("words", "where", "says"),
    [
        (["+stage=grpo", "parallel.processes=2"], "parallel.processes", "parallel=ddp"),
        (["+stage=grpo", "parallel.strategy=ddp", "parallel.offload=true"], "parallel.offload", "no effect"),
        (
            ["+stage=grpo", "parallel=ddp", "parallel.deepspeed.steps_per_print=1"],
            "parallel.deepspeed",
            "does not run under ddp",
        ),
        (
            ["+stage=grpo", "parallel=zero2", "parallel.deepspeed.optimizer.type=Adam"],
            "parallel.deepspeed.optimizer",
            "set optimizer",
        ),
        (
            ["+stage=grpo", "parallel=zero3", "parallel.deepspeed.zero_optimization.stage=1"],
            "parallel.deepspeed.zero_optimization.stage",
            "parallel.strategy",
        ),
        (["+stage=grpo", "parallel=zero2", "optimizer=muon"], "optimizer", "parallel=ddp"),
        (["+stage=sft", "parallel=zero3", "optimizer=adafactor"], "optimizer", "full matrices"),
        (["+stage=grpo", "parallel=ddp", "run.inline=true"], "run.inline", "several processes"),
        (["+stage=grpo", "parallel=ddp", "model.device_map=auto"], "model.device_map", "layers"),
        (["+stage=verify", "verify.input=samples", "parallel=ddp"], "parallel.strategy", "runs in one process"),
        (["+stage=grpo", "parallel=ddp", "parallel.nodes=2", "run.dir=x"], "parallel.address", "place to meet"),
        (
            ["+stage=grpo", "parallel=ddp", "parallel.nodes=2", "parallel.address=a", "parallel.port=1"],
            "run.dir",
            "one run directory",
        ),
        (["+stage=grpo", "parallel=ddp", "parallel.node=1"], "parallel.node", "there is one machine"),
    ],
)
def test_what_cannot_work_is_refused_with_a_remedy(words: list[str], where: str, says: str) -> None:
    problems = [problem for problem in compose_lenient(words).problems if problem.where == where]
    assert len(problems) == 1 and says in str(problems[0])


@pytest.mark.parametrize("option", ["single", "ddp", "zero2", "zero3", "zero3_offload"])
@pytest.mark.parametrize("stage", ["sft", "grpo", "ppo", "evaluate"])
def test_every_strategy_goes_with_every_stage_that_answers(stage: str, option: str) -> None:
    checked = compose_lenient([f"+stage={stage}", f"parallel={option}"])
    assert not checked.problems and checked.config.parallel.world == (1 if option == "single" else 2)


def test_settings_of_deepspeed_are_the_users_and_what_follows_from_the_strategy() -> None:
    words = ["+stage=grpo", "parallel=zero3_offload", "parallel.deepspeed.zero_optimization.sub_group_size=1000"]
    parallel = compose_lenient(words).config.parallel
    zero = deepspeed_settings(parallel)["zero_optimization"]
    assert zero["stage"] == 3 and zero["sub_group_size"] == 1000
    assert zero["offload_param"]["device"] == zero["offload_optimizer"]["device"] == "cpu"
    assert "stage" not in parallel.deepspeed["zero_optimization"], "the configuration stays as it is"
