"""The dry plan: what a run would do, split as the trainer would split it."""

import json
from pathlib import Path

import pytest
from checkpoint_samples import checkpoint

from rlvr_exp.config.compose import compose
from rlvr_exp.config.help import differing
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


def test_the_rounds_of_self_play_are_planned() -> None:
    told = lines("+stage=self_play", "self_play.rounds=3", "self_play.refine=2")
    assert told["rounds"] == "3, each of 6000 tasks x 4 completions, then refined 2 times where none passed"
    assert "self_play/, solutions.sqlite" in told["writes"] and "rollouts/" in told["writes"]
    assert "each of all tasks x 4 completions" in lines("+stage=self_play", "self_play.tasks=0")["rounds"]
    assert "store.db" in lines("+stage=self_play", "self_play.solutions=store.db")["writes"]


def test_an_evaluation_trains_nothing() -> None:
    told = lines("+stage=evaluate", "run.dir=here")
    assert "steps" not in told and "optimizer" not in " ".join(told) and told["writes"].startswith("here:")
    assert "checkpoints" not in told["writes"]


def test_an_adaptation_plans_its_update() -> None:
    words = ["+stage=infer", "infer.decoding=sample", "infer.samples=64"]
    plain, adapted = (plan(compose([*words, *more]).config, []) for more in ([], ["infer.adapt=lora"]))
    assert "sample, best of 64, 8 rounds with an adapter that learns each task, judged, 1 task at once" in adapted
    assert "LoRA of rank 8 trained" in adapted and " backward " in adapted and "optimizer states" in adapted
    assert "rank 8" not in plain and " backward " not in plain


def test_what_is_missing_comes_with_its_command(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    told = lines("+stage=grpo", "model=qwen14b")
    assert told["to fetch"].endswith("prepare.output=downloads/Qwen3-14B, then model.path=downloads/Qwen3-14B")
    assert told["template"].endswith("if it has one: not fetched yet")
    assert lines("+stage=grpo", "model=qwen14b", "model.chat_template=never")["template"].startswith("none")


def test_a_folder_without_a_chat_template_names_the_file_that_may_be_missing(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path / "model")
    for file in (*folder.glob("*.safetensors"), *folder.glob("chat_template*")):
        file.unlink()
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    settings.pop("chat_template", None)
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    told = lines("+stage=grpo", f"model.path={folder}")["template"]
    assert told.startswith(f"none: the tokenizer in {folder} has no chat template; ") and "chat_template.jinja" in told


def test_the_plan_names_how_a_policy_learns_and_what_differs() -> None:
    words = ["optimizer.lr=1e-3", "algorithm.kl_coef=10", "model.adapter.kind=lora", "algorithm.top_p=0.9"]
    checked = compose(["+stage=grpo", *words])
    text = plan(checked.config, [], checked.settings, differing(checked))
    for line in (
        "algorithm:   GRPO",
        "rate:        0.001 for an adapter, by AdamW, linear schedule",
        "lengths:     prompts of at most 1024 tokens, completions of 64",
        "temperature: 1 with top_p 0.9 in training; 1 in evaluation",
        "wording:     bare",
        "template:    none (the tokenizer has none)",
        "differs:     algorithm.kl_coef=10.0",
        "differs:     model.adapter.kind=lora",
        "advice:      algorithm.kl_coef=10 is meant by hardly anyone",
    ):
        assert f"  {line}" in text, line
    assert text.count("differs:") == len(words)
    assert "differs:" not in plan(checked.config, [])
    assert differing(compose(["+stage=sft", "data=dafny"]))[-2:] == ["data: DafnyDomain", "verifier: DafnyVerifier"]


def test_the_plan_names_what_was_chosen_for_a_checkpoint_and_why(tmp_path) -> None:
    checked = compose(["+stage=grpo", f"model.path={checkpoint(tmp_path)}"])
    text = plan(checked.config, [], checked.settings, differing(checked))
    assert "chosen:      optimizer.lr=0.0001: usual for reinforcement learning that trains all weights of 2.0" in text
    assert "template:    the tokenizer's chat template" in text and "wording:     instruct" in text
    assert [line.split()[1] for line in text.splitlines() if "differs:" in line] == [f"model.path={tmp_path}"]
