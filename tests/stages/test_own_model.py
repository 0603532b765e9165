"""A model that a user brings: imitation and then RL by `model.path` alone, for three families, with every setting named."""

import json
import re
import subprocess
from pathlib import Path

import pytest
from own_models import FAMILIES, own_model, own_tokenizer
from program import ENVIRONMENT, PROGRAM

from rlvr_exp.domains.arc.options import Prompt
from rlvr_exp.domains.arc.tasks import Arc
from rlvr_exp.main import main

README = Path(__file__).parents[2] / "README.md"
CHOSEN = {
    "model.dtype",
    "model.chat_template",
    "optimizer.lr",
    "model.max_completion_tokens",
    "model.max_prompt_tokens",
    "data.prompt.style",
    "evaluation.batch_size",
}
SIZES = ["algorithm.max_steps=2", "evaluation.tasks=2", "evaluation.samples=2", "data.limit=40", "verifier.validate=4"]
"""How much is done, for speed; no option of the model, the rate or the wording."""


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One checkpoint a family, with a tokenizer trained on the prompts and golds."""
    folder, domain = tmp_path_factory.mktemp("models"), Arc(prompt=Prompt(style="instruct"), limit=200)
    tasks = domain.splits()["train"]
    tokenizer = own_tokenizer([*map(domain.task_prompt, tasks), *(task.gold or "" for task in tasks)], 600)
    for family in FAMILIES:
        own_model(folder / family, family, tokenizer, hidden=32, context=512)
    return folder


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("stage", ["sft", "grpo"])
def test_the_plan_names_every_setting_and_why(models: Path, family: str, stage: str, capsys) -> None:
    assert main([f"+stage={stage}", f"model.path={models / family}", "run.dry=true"]) == 0
    found = re.findall(r"chosen: +(\S+?)=\S+: (.+)", capsys.readouterr().out)
    assert {option for option, _ in found} == CHOSEN | ({"algorithm.max_sequence_tokens"} if stage == "sft" else set())
    assert all(len(why) > 10 for _, why in found)


def test_the_lines_of_the_readme_are_plans(models: Path, capsys) -> None:
    text = README.read_text()
    (line,) = re.findall(r"python -m rlvr_exp (.* run\.dry=true)$", text, re.MULTILINE)
    assert main(line.split()) == 0 and "2 devices" in capsys.readouterr().out
    assert "`model.path=DIR`" in text
    assert main(["+stage=grpo", f"model.path={models / 'qwen2'}", "run.dry=true"]) == 0
    assert "advice:" not in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_imitation_and_reinforcement_learning_need_no_setting(models: Path, family: str, tmp_path: Path) -> None:
    first = ["+stage=sft", f"model.path={models / family}", *SIZES, "algorithm.batch_size=4", "run.dir=imitated"]
    then = [
        "+stage=grpo",
        "model.path=imitated/checkpoints/latest",
        *SIZES,
        "algorithm.prompts_per_step=8",
        "run.dir=learned",
    ]
    for words, rate in ((first, "0.0008"), (then, "0.0001")):
        done = subprocess.run(
            [*PROGRAM, *words], cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, timeout=600, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert f"chosen: optimizer.lr={rate}: usual for" in done.stdout and "advice:" not in done.stdout
    settings = json.loads((tmp_path / "learned" / "manifest.json").read_text())["settings"]
    assert {one["option"] for one in settings} == CHOSEN and all(one["why"] for one in settings)
    assert {one["option"]: one["value"] for one in settings}["data.prompt.style"] == "instruct"
    row = json.loads((tmp_path / "learned" / "metrics.jsonl").read_text().splitlines()[-1])
    assert (
        0 < row["entropy"] < 7 and {"grad_norm/layer_000", "grad_norm/layer_001", "grad_norm/embeddings"} <= row.keys()
    )
