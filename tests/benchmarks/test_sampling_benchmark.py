"""Our sampler against the library's: both draw as many tokens."""

from pathlib import Path

from functions import measured

from rlvr_exp.benchmarks.memory import random_model, required_workload
from rlvr_exp.benchmarks.sampling import generate
from rlvr_exp.config.compose import compose

SMALL = (
    "model.max_prompt_tokens=6",
    "model.max_completion_tokens=4",
    "algorithm.group_size=3",
    "algorithm.prompts_per_step=2",
    "evaluation.samples=3",
    "evaluation.batch_size=6",
    "benchmark.rounds=2",
)


def test_the_library_draws_every_completion_at_the_longest_length() -> None:
    config = compose(["+stage=benchmark", "benchmark=sampling", *SMALL]).config
    workload = required_workload(config)
    drawn = generate(random_model(config, workload, "cpu").eval(), workload.sampling_batch)
    assert drawn.shape == (2 * 3, 6 + 4)


def test_both_are_timed_and_their_memory_is_told(tmp_path: Path) -> None:
    text, metrics = measured(tmp_path, "sampling", *SMALL)
    assert text.startswith("2 prompts of 6 tokens x 3 completions of 4") and text.count("GiB") == 2
    assert "share of the limit: ours" in text and 0 < metrics["share_of_limit/ours"] < 2
    assert metrics["faster"] > 0 and metrics["per_s/ours"] > 0 and metrics["per_s/generate"] > 0
