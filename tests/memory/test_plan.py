"""The dry plan: what a run would do, split as the trainer would split it."""

import pytest

from rlvr_exp.config import compose
from rlvr_exp.config.needs import missing_artifacts
from rlvr_exp.memory.plan import plan


def lines(*words: str) -> dict[str, str]:
    config = compose(words).config
    rows = plan(config, missing_artifacts(config)).splitlines()[1:]
    return {name.strip(): text.strip() for name, _, text in (row.partition(":") for row in rows)}


def test_a_training_plan() -> None:
    told = lines(
        "+stage=grpo", "algorithm.prompts_per_step=30", "model.max_prompt_tokens=100", "model.max_completion_tokens=50"
    )
    assert told["a step"] == "30 prompts x 8 completions = 240 completions"
    assert told["passes"].startswith("of at most 16384 tokens, 1 on each process")
    assert lines("+stage=grpo", "algorithm.max_tokens_per_device=3072")["passes"].startswith(
        "of at most 3072 tokens, 16 on"
    )
    assert (
        "checkpoints/" in told["writes"]
        and "400 tasks of 'test'" in told["evaluation"]
        and "before and after" in told["evaluation"]
    )


def test_sequences_are_the_unit_of_imitation() -> None:
    told = lines(
        "+stage=sft",
        "algorithm.max_sequence_tokens=1000",
        "algorithm.batch_size=64",
        "algorithm.max_tokens_per_device=8500",
    )
    assert told["batches"] == "micro-batch of 8 sequences, accumulated 8 times, on each process"


def test_an_evaluation_trains_nothing() -> None:
    told = lines("+stage=evaluate", "run.dir=here")
    assert "steps" not in told and "optimizer" not in " ".join(told) and told["writes"].startswith("here:")
    assert "checkpoints" not in told["writes"]


def test_what_is_missing_comes_with_its_command(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    assert lines("+stage=grpo", "model=qwen14b")["to fetch"].endswith("hf download Qwen/Qwen3-14B")
