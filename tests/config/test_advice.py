"""Values that hardly anyone means are advised against, by the size of the model and the kind of training; usual ones are
not."""

from pathlib import Path

import pytest
from checkpoint_samples import checkpoint

from rlvr_exp.config.compose import compose
from rlvr_exp.config.suited import advice


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (["algorithm.kl_coef=10"], "algorithm.kl_coef=10"),
        (["optimizer.weight_decay=100"], "optimizer.weight_decay=100"),
        (["algorithm.temperature=0.01"], "algorithm.temperature=0.01"),
        (["algorithm.temperature=5"], "algorithm.temperature=5"),
        (["evaluation.temperature=0.01"], "evaluation.temperature=0.01"),
        (["algorithm.entropy_coef=1"], "algorithm.entropy_coef=1"),
        (["optimizer.lr=1000"], "optimizer.lr=1000 is"),
        (["optimizer.lr=1e-12"], "optimizer.lr=1e-12 is"),
        (["optimizer.max_grad_norm=1e-6"], "optimizer.max_grad_norm"),
    ],
)
def test_a_value_that_hardly_anyone_means_is_advised_against(words: list[str], option: str) -> None:
    (text,) = advice(compose(["+stage=grpo", *words]).config)
    assert text.startswith(option)


@pytest.mark.parametrize(
    "words",
    [
        ["+stage=grpo"],
        ["+stage=sft"],
        ["+stage=ppo"],
        ["+stage=cascade"],
        ["+stage=sft", "+experiment=tiny_base"],
        ["+stage=grpo", "model=tiny_lora"],
        ["+stage=grpo", "model=qwen14b"],
        ["+stage=grpo", "optimizer=sgd"],
        ["+stage=grpo", "algorithm=dapo", "algorithm.kl_coef=0.1", "algorithm.temperature=0.7"],
        ["+stage=infer"],
        ["+stage=validate"],
    ],
)
def test_what_is_usual_is_not(words: list[str]) -> None:
    assert advice(compose(words).config) == []


def test_a_rate_is_measured_by_the_size_of_the_model_and_the_kind_of_training(tmp_path: Path) -> None:
    large = f"model.path={checkpoint(tmp_path, 8 * 10**9)}"
    assert advice(compose(["+stage=grpo", "optimizer.lr=8e-4"]).config) == []
    (text,) = advice(compose(["+stage=grpo", large, "optimizer.lr=8e-4"]).config)
    assert "800 times too high" in text and "8.0 billion parameters" in text and "optimizer.lr=1e-06" in text
    assert advice(compose(["+stage=sft", large, "optimizer.lr=1e-4"]).config) == []
    assert advice(compose(["+stage=grpo", large, "optimizer.lr=1e-4"]).config)


def test_a_model_with_a_chat_template_expects_instructions(tmp_path: Path) -> None:
    model = f"model.path={checkpoint(tmp_path)}"
    assert advice(compose(["+stage=grpo", model]).config) == []
    (bare,) = advice(compose(["+stage=grpo", model, "data.prompt.style=bare"]).config)
    (never,) = advice(
        compose(["+stage=evaluate", model, "model.chat_template=never", "data.prompt.style=instruct"]).config
    )
    assert "data.prompt.style=instruct" in bare and "model.chat_template=auto" in never


def test_a_role_is_advised_on_its_own_options() -> None:
    (text,) = advice(compose(["+stage=cascade", "roles.annotator.optimizer.lr=1000"]).config)
    assert text.startswith("roles.annotator: optimizer.lr=1000 is")


def test_a_quick_run_is_for_this_machine_and_not_for_the_device_of_another_experiment() -> None:
    words = ["+stage=grpo", "+experiment=[two_32gb,quick]", "model=smollm2", "parallel=single"]
    assert compose(words).config.parallel.device == "" and advice(compose(words).config) == []
    assert compose([*words, "parallel.device=rtx5090"]).config.parallel.device == "rtx5090"
