"""Values of YAML files give way to the groups that a command line chooses: no error names a key that the user did not write."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from checkpoint_samples import checkpoint
from test_shipped_yaml import MADE_FOR, NEEDED
from thinning import thinned

from rlvr_exp.config import needs
from rlvr_exp.config.compose import compose, compose_lenient
from rlvr_exp.config.help import group_options
from rlvr_exp.config.stage_options import hub_command
from rlvr_exp.config.suited import facts_of
from rlvr_exp.core.errors import InputProblem
from rlvr_exp.memory.reading import shape_of

GROUPS = group_options()
MODELS = [name for name in GROUPS["model"] if name != "served"]  # `served` is for engine=server.
STAGES = ("sft", "grpo", "ppo", "srl", "self_play", "adversarial", "cascade", "evaluate", "infer", "collect")
CODER = "Qwen/Qwen2.5-Coder-7B-Instruct"


def unwritten(words: list[str]) -> list[InputProblem]:
    """The problems of a command line that name a key which is not on it."""
    keys = {word.lstrip("+").partition("=")[0] for word in words}
    return [one for one in compose_lenient(words).problems if one.where not in {*keys, *words}]


def experiments() -> Iterator[list[str]]:
    """Every experiment with every option of the groups that a user replaces most."""
    for name in GROUPS["experiment"]:
        stage = MADE_FOR.get(name, ("grpo",))[0]
        for group in ("data", "verifier", "algorithm", "model"):
            for option in GROUPS[group]:
                needed = dict.fromkeys([*NEEDED.get(f"experiment/{name}", []), *NEEDED.get(f"{group}/{option}", [])])
                yield [f"+stage={stage}", f"+experiment={name}", f"{group}={option}", *needed]


@pytest.mark.parametrize("words", thinned(experiments(), 30), ids=" ".join)
def test_no_error_of_an_experiment_names_a_key_that_is_not_on_the_command_line(words: list[str]) -> None:
    assert unwritten(words) == []


@pytest.mark.parametrize("stage", STAGES)
def test_every_stage_plans_with_every_preset_of_a_model(stage: str) -> None:
    models = MODELS if stage in ("infer", "adversarial") else thinned(MODELS, 6)
    found = {model: compose_lenient([f"+stage={stage}", f"model={model}"]).problems for model in models}
    assert {model: problems for model, problems in found.items() if problems} == {}


def test_an_option_of_the_replaced_data_is_left_out_and_shown() -> None:
    words = ["+stage=grpo", "+experiment=two_32gb", "data=code", "data.path=x", "verifier=pytest"]
    checked = compose(words)
    assert checked.config.algorithm.max_steps == 100 and checked.config.parallel.strategy == "zero2"
    (line,) = checked.left_out
    assert line.startswith("data.prompt.style=instruct (conf/experiment/two_32gb.yaml): unknown key")
    assert compose(["+stage=grpo", "+experiment=two_32gb", "data=problems"]).config.data.prompt.style == "instruct"


def test_a_key_that_no_choice_knows_stays_an_error(tmp_path: Path) -> None:
    (tmp_path / "experiment").mkdir()
    text = "# @package _global_\ndata:\n  prompt:\n    style: instruct\nalgorithm:\n  max_stpes: 3\n"
    (tmp_path / "experiment" / "own.yaml").write_text(text)
    words = ["+stage=grpo", f"hydra.searchpath=[{tmp_path}]", "+experiment=own", "data=code", "data.path=x"]
    (problem,) = compose_lenient([*words, "algorithm=dapo"]).problems
    assert problem.where == "algorithm.max_stpes" and problem.suggestion == "algorithm.max_steps"


def test_a_value_of_the_command_line_is_never_left_out() -> None:
    (problem,) = (
        unwritten(["+stage=grpo", "data=code", "data.path=x", "+data.prompt.style=bare"])
        or compose_lenient(["+stage=grpo", "data=code", "data.path=x", "data.prompt.style=bare"]).problems
    )
    assert problem.where == "data.prompt.style"
    (role,) = compose_lenient(["+stage=grpo", "data=problems", "role=writer"]).problems
    assert role.where == "data.role" and "conf/role/writer.yaml" in role.got


def test_the_experiment_keeps_its_processes_under_another_model() -> None:
    config = compose(["+stage=grpo", "+experiment=two_32gb", "model=llama8b"]).config
    assert config.parallel.strategy == "zero2" and config.parallel.processes == 2


def test_a_stage_of_one_process_takes_none_from_a_preset() -> None:
    assert compose(["+stage=infer", "model=qwen14b"]).config.parallel.strategy == "single"
    (problem,) = compose_lenient(["+stage=infer", "model=qwen14b", "parallel=zero2"]).problems
    assert problem.where == "parallel.strategy"


def test_a_chosen_model_plays_all_roles_unless_a_role_has_its_own(tmp_path: Path) -> None:
    shared = compose(["+stage=adversarial", "model=qwen14b"]).config
    assert shared.roles == {}
    folder = checkpoint(tmp_path)
    assert compose(["+stage=adversarial", f"model.path={folder}"]).config.roles == {}
    own = compose(["+stage=adversarial", "model=tiny_solver", "roles.tester.model=tiny_tester"]).config
    assert own.model.embedded == "tiny_solver" and own.roles["tester"].model.embedded == "tiny_tester"
    usual = compose(["+stage=adversarial"]).config
    assert usual.roles["tester"].model.embedded == "tiny_tester"


def test_roles_with_adapters_over_two_bases_are_one_error() -> None:
    (problem,) = compose_lenient(["+stage=adversarial", "roles.tester.model=qwen14b"]).problems
    assert problem.where == "roles.tester.model.name" and "share one base" in problem.what


def test_another_model_of_self_play_keeps_the_optimizer_and_rate_of_its_preset() -> None:
    assert compose(["+stage=self_play"]).config.optimizer.lr == 2e-3
    other = compose(["+stage=self_play", "model=qwen_coder_1_5b"]).config.optimizer
    assert other.lr == 1e-6 and other._target_.endswith("AdamW")
    assert compose(["+stage=self_play", "model=qwen14b", "optimizer=sgd"]).config.optimizer._target_.endswith("SGD")


def test_a_presets_shape_belongs_to_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    words = ["+stage=grpo", "model=qwen14b"]
    seven = compose(["+stage=grpo", "model=qwen_coder_7b"]).config.model
    assert seven.name == CODER and seven.architecture.parameters == 7_615_616_512
    assert compose([*words, f"model.name={CODER}"]).config.model.architecture == seven.architecture
    assert compose(["+stage=grpo", f"model.name={CODER}"]).config.model.architecture == seven.architecture
    assert not compose([*words, "model.name=some/other"]).config.model.architecture.known
    assert not compose([*words, f"model.path={tmp_path}"]).config.model.architecture.known
    assert compose([*words, "model.name=Qwen/Qwen3-14B"]).config.model.architecture.layers == 40
    given = compose([*words, "model.name=some/other", *(f"model.architecture.{name}" for name in SHAPE)]).config.model
    assert given.architecture.layers == 2 and given.architecture.intermediate == 4 and not given.architecture.qk_norm


SHAPE = ("layers=2", "hidden=4", "heads=2", "kv_heads=2", "head_dim=2", "intermediate=4", "vocabulary=9")


def test_stages_of_reasoning_need_data_that_have_them() -> None:
    for words in (["+stage=adversarial"], ["+stage=grpo", "environment=reasoning"]):
        (problem,) = compose_lenient([*words, "data=code", "data.path=x", "verifier=pytest"]).problems
        assert problem.where == "data" and problem.allowed == "data=problems"


def test_the_remedy_of_groups_that_wait_holds_under_an_experiment() -> None:
    words = ["+stage=grpo", "+experiment=two_32gb", "environment=retry"]
    (problem,) = compose_lenient(words).problems
    remedy = problem.remedy.partition(", or")[0]
    assert remedy.startswith("algorithm.zero_variance=keep ")
    assert compose_lenient([*words, *remedy.split()]).problems == ()


def test_a_plan_for_gpus_needs_no_deepspeed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(needs, "find_spec", lambda name: None if name == "deepspeed" else name)
    config = compose(["+stage=grpo", "model=qwen_coder_7b"]).config
    fetched = {need.problem.where: need.command for need in needs.missing_artifacts(config) if need.command}
    assert fetched == {"model.name": hub_command(CODER), "parallel.strategy": "pip install 'rlvr_exp[deepspeed]'"}


def test_a_folder_without_weights_is_planned_with_one_size_and_its_context(tmp_path: Path) -> None:
    shape = {"hidden_size": 64, "intermediate_size": 128, "vocab_size": 99, "num_key_value_heads": 2, "head_dim": 16}
    folder = checkpoint(tmp_path, model_type="llama", context=2048, **shape)
    (folder / "model.safetensors").unlink()
    (folder / "tokenizer.json").write_text("{}")
    checked = compose(["+stage=grpo", f"model.path={folder}"])
    assert checked.config.model.max_completion_tokens == 512 and "a context of 2048" in str(checked.settings)
    assert "unknown size" not in str(checked.settings) and "not known" not in str(checked.settings)
    (need,) = needs.missing_artifacts(checked.config)
    assert need.problem.what == "the weights are missing" and need.command == hub_command("OWNER/MODEL")
    assert facts_of(checked.config.model).parameters == shape_of(checked.config.model)[0].parameters > 0
