"""The engine group: what each engine is refused for, before anything starts."""

import pytest
import yaml

from rlvr_exp.config.compose import compose, compose_lenient
from rlvr_exp.config.load import to_yaml
from rlvr_exp.config.needs import loads_weights, missing_artifacts
from rlvr_exp.main import main
from rlvr_exp.records.manifest import trajectory_options

TRAINS = ("sft", "grpo", "ppo", "cascade")


def problems(*words: str) -> dict[str, str]:
    return {one.where: one.what for one in compose_lenient(list(words)).problems}


@pytest.mark.parametrize("stage", [*TRAINS, "evaluate", "infer"])
def test_our_own_sampler_is_the_default_of_every_stage_that_samples(stage):
    config = compose([f"+stage={stage}"]).config
    assert config.engine._target_.endswith(".LocalEngine") and loads_weights(config)


@pytest.mark.parametrize("stage", TRAINS)
def test_a_stage_that_trains_samples_with_its_own_weights(stage):
    assert "a server holds its own" in problems(f"+stage={stage}", "engine=server")["engine"]


@pytest.mark.parametrize(
    ("words", "where"),
    [
        (["model.path=somewhere"], "model.path"),
        (["model=qwen14b"], "model.name"),
        (["model.adapter.path=somewhere"], "model.adapter.path"),
        (["model.chat_template=never"], "model.chat_template"),
        (["model.thinking=true"], "model.thinking"),
        (["infer.decoding=beam"], "infer.decoding"),
        (["infer.decoding=sample", "infer.temperature=3"], "infer.temperature"),
        (["infer.cascade=model", "data=dafny"], "engine"),
        (["engine.url=somewhere"], "engine.url"),
        (["engine.url=http://"], "engine.url"),
        (["engine.url=http://a:b/v1"], "engine.url"),
        (["engine.url=http://me:code@host/v1"], "engine.url"),
        (["engine.url='http://host/v1?key=1'"], "engine.url"),
        (["engine.api_key_env=a-b"], "engine.api_key_env"),
    ],
)
def test_what_an_endpoint_cannot_do_is_refused(words, where):
    assert where in problems("+stage=infer", "engine=server", *words)


TRAINED = ["engine=server", "engine.url=http://host/v1", "engine.weights=lora", "model=tiny_lora"]


@pytest.mark.parametrize(
    ("words", "where"),
    [
        (["+stage=evaluate"], "engine.weights"),
        (["+stage=sft"], "engine.weights"),
        (["+stage=cascade", "model=tiny_dafny"], "engine.weights"),
        (["+stage=grpo", "algorithm.top_p=0.9"], "algorithm.top_p"),
        (["+stage=grpo", "parallel=ddp"], "parallel"),
        (["+stage=grpo", "model.adapter.kind=none"], "engine.weights"),
        (["+stage=grpo", "model.adapter.kind=dora"], "engine.weights"),
        (["+stage=grpo", "engine.weights=full", "model.quantization=4bit"], "engine.weights"),
        (["+stage=grpo", "engine.api=chat"], "engine.api"),
        (["+stage=grpo", "algorithm.lag=1", "algorithm.correction=none"], "algorithm.lag"),
        (["+stage=grpo", "algorithm.lag=1", "engine=local"], "algorithm.lag"),
        (["+stage=grpo", "algorithm.lag=1", "engine=vllm"], "algorithm.lag"),
        (["+stage=cascade", "algorithm.lag=1"], "algorithm.lag"),
        (["+stage=grpo", "algorithm=ssd", "algorithm.lag=1"], "algorithm.lag"),
    ],
)
def test_what_a_server_for_training_cannot_do_is_refused(words, where):
    engine = [] if {"engine=local", "engine=vllm"} & {*words} else TRAINED[:3]
    model = [] if "+stage=cascade" in words else TRAINED[3:]
    assert where in problems(*words[:1], *engine, *model, *words[1:])


def test_what_a_server_for_training_can_do_is_not():
    for more in ([], ["algorithm.lag=1"], ["algorithm.lag=1", "algorithm=dapo"], ["engine.weights=full"]):
        assert problems("+stage=grpo", *TRAINED, *more) == {}


def test_what_it_can_do_is_not():
    allowed = ["infer.decoding=sample", "infer.top_p=0.9", "infer.samples=4", "infer.max_attempts=2", "model.system=Hi"]
    assert problems("+stage=infer", "engine=server", *allowed) == {}
    assert problems("+stage=infer", "engine=server", "model.system=Hi", "engine.api=completions") == {}
    assert problems("+stage=evaluate", "engine=server", "environment=retry", "parallel=ddp") == {}
    filters = ["evaluation.top_k=3", "evaluation.min_p=0.1"]
    assert problems("+stage=evaluate", "engine=server", *filters) == {}


def test_no_weights_are_looked_for_and_a_key_that_is_not_set_is_missing(monkeypatch):
    config = compose(["+stage=evaluate", "engine=server", "engine.api_key_env=NOBODY_SET_IT"]).config
    assert not loads_weights(config)
    assert [one.problem.where for one in missing_artifacts(config)] == ["engine.api_key_env"]
    monkeypatch.setenv("NOBODY_SET_IT", "words")
    assert missing_artifacts(config) == []


def test_without_the_library_one_message_says_what_to_install(monkeypatch):
    monkeypatch.setattr("rlvr_exp.config.needs.find_spec", lambda name: None)
    (need,) = missing_artifacts(compose(["+stage=infer", "engine=server"]).config)
    assert need.command == "pip install 'rlvr_exp[serve]'" and "openai is not installed" in str(need.problem)


@pytest.mark.parametrize(
    ("words", "where"),
    [
        (["+stage=grpo", "algorithm.top_p=0.9"], "algorithm.top_p"),
        (["+stage=grpo", "algorithm.top_k=5"], "algorithm.top_k"),
        (["+stage=grpo", "algorithm.min_p=0.1"], "algorithm.min_p"),
        (["+stage=grpo", "parallel=zero3"], "parallel"),
        (["+stage=grpo", "model=tiny_lora", "model.quantization=8bit"], "model.quantization"),
        (["+stage=grpo", "model=tiny_lora", "model.quantization=4bit", "model.adapter.kind=dora"], "model.adapter"),
        (["+stage=grpo", "model=tiny_lora", "model.quantization=4bit", "model.adapter.rank=7"], "model.adapter"),
    ],
)
def test_what_vllm_cannot_do_is_refused(words, where):
    assert where in problems(*words, "engine=vllm")


@pytest.mark.parametrize("words", [[], ["model=tiny_lora", "model.quantization=4bit"], ["parallel=zero2"]])
def test_vllm_is_planned_here_and_refused_where_it_is_missing(words, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert main(["+stage=grpo", "engine=vllm", *words, "run.dry=true"]) == 0
    assert "pip install 'vllm>=0.31,<0.32'" in capsys.readouterr().out
    assert main(["+stage=grpo", "engine=vllm", *words]) == 2
    assert "vllm is not installed" in capsys.readouterr().err and not list(tmp_path.iterdir())


def test_the_trainers_own_vllm_option_names_ours():
    (problem,) = compose_lenient(["+stage=grpo", "algorithm.trl.use_vllm=true"]).problems
    assert problem.remedy == "set engine=vllm"


def test_the_engine_is_part_of_what_identifies_a_run():
    def options(*words):
        return trajectory_options(yaml.safe_load(to_yaml(compose(["+stage=grpo", *words]))))

    assert options() != options("engine=vllm") == options("engine=vllm", "engine.memory_share=0.5")


def test_the_plan_names_the_endpoint_and_weighs_nothing(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert (
        main(
            [
                "+stage=evaluate",
                "engine=server",
                "engine.url=http://localhost:8000/v1",
                "engine.model=big",
                "run.dry=true",
            ]
        )
        == 0
    )
    said = capsys.readouterr().out
    assert "http://localhost:8000/v1, big: 16 requests at once, each up to 5 times" in said
    assert "memory of" not in said and "the server's own" in said
