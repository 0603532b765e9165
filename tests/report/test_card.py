"""Model cards of checkpoints: figures, sources, licences, and runs that have not ended."""

import json
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import ModelCard

from rlvr_exp.config.compose import compose
from rlvr_exp.config.load import to_yaml
from rlvr_exp.config.model import EMBEDDED_MODELS
from rlvr_exp.core.files import write_json, write_json_lines
from rlvr_exp.core.sealed import CARD, check_sound, seal
from rlvr_exp.records import manifest
from rlvr_exp.report.card import write_cards

BEFORE, AFTER = (
    {"value": value, "low": value - 0.1, "high": value + 0.1, "n": 40, "samples": 8} for value in (0.2, 0.4)
)
METRIC = "held_out/pass_at_1"
SECRET = "hf_" + "plantedtoken" * 3


def run_of(place: Path, *words: str, stage: str = "grpo", steps: int = 4, ended: bool = True, best: int = 2) -> Path:
    """A run directory with checkpoints of steps 2 and 4."""
    command = [f"+stage={stage}", f"algorithm.max_steps={steps}", "run.select.every_steps=2", *words]
    place.mkdir()
    (place / "config.yaml").write_text(to_yaml(compose(command)))
    about: dict[str, Any] = {
        "command": ["python", "-m", "rlvr_exp", *command],
        "git": {"commit": "c" * 40, "dirty": False},
        "versions": {"rlvr_exp": "1", "python": "3"},
        "data": {"train": {"tasks": 12, "fingerprint": "f" * 32}},
        "start": {"model/config.json": "a" * 64},
        "select": {"split": "dev", "tasks": 9, "every_steps": 2},
    }
    write_json(place / manifest.NAME, about)
    write_json_lines(
        place / "metrics.jsonl",
        [{"step": step, METRIC: 0.3, f"{METRIC}/low": 0.25, f"{METRIC}/high": 0.35} for step in (2, 4)],
    )
    write_json(place / "evaluation" / "before.json", {"rates": {"pass_at_1": BEFORE}})
    if ended:
        rates: dict[str, Any] = {"before": {"pass_at_1": BEFORE}, "after": {"pass_at_1": AFTER}}
        write_json(place / "summary.json", {"status": "completed", "steps": 4, "metrics": {"best/step": best}, **rates})
    for step in (2, 4):
        folder = place / "checkpoints" / f"step_{step:06d}"
        folder.mkdir(parents=True)
        (folder / "config.json").write_text("{}")
        seal(folder, {"step": step})
    return place


def card_of(run: Path, step: int = 2) -> ModelCard:
    write_cards(run)
    folder = run / "checkpoints" / f"step_{step:06d}"
    check_sound(folder)
    return ModelCard.load(folder / CARD)


def test_a_card_has_figures_sources_and_the_command(tmp_path: Path) -> None:
    card = card_of(run_of(tmp_path / "run", "seed=7"))
    assert card.data.to_dict() == {
        "base_model": "rlvr_exp/tiny",
        "base_model_relation": "finetune",
        "library_name": "transformers",
        "pipeline_tag": "text-generation",
        "tags": ["rlvr_exp", "grpo"],
        "license": "apache-2.0",
        "datasets": ["rlvr_exp/arc"],
    }
    for text in (
        "| pass@1, sampled | 20.0% (95% CI 10.0% to 30.0%, 40 tasks) | 40.0% (95% CI 30.0% to 50.0%, 40 tasks) |",
        "`held_out/pass_at_1`: 30.0% (95% CI 25.0% to 35.0%, 9 tasks) of the split `dev`",
        f"| train | 12 | `{'f' * 32}` |",
        f"| model/config.json | `{'a' * 64}` |",
        "| algorithm | GRPO |",
        "| seed | 7 |",
        f"| commit | {'c' * 40} |",
        "| versions | rlvr_exp 1, python 3 |",
        "    python -m rlvr_exp +stage=grpo algorithm.max_steps=4 run.select.every_steps=2 seed=7",
    ):
        assert text in card.text
    assert "not of this checkpoint" not in card.text


def test_rates_of_another_step_are_marked(tmp_path: Path) -> None:
    assert "those of step 2, not of this checkpoint (step 4)" in card_of(run_of(tmp_path / "run"), 4).text


def test_a_killed_run_has_a_card_without_rates_after(tmp_path: Path) -> None:
    text = card_of(run_of(tmp_path / "run", ended=False)).text
    assert "20.0% (95% CI 10.0% to 30.0%, 40 tasks) |  |" in text
    assert "No rate after training: the run was in progress" in text


def test_a_stopped_run_says_so(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", ended=False)
    write_json(run / "summary.json", {"status": "stopped", "steps": 4, "before": {}, "after": {}, "metrics": {}})
    assert "the run was stopped" in card_of(run).text


def test_resuming_commands_are_named(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run")
    manifest.mark_resumed(
        run, run / "checkpoints" / "step_000002", ["python", "-m", "rlvr_exp", "run.resume=run"], "now"
    )
    assert "The run was resumed by:\n\n    python -m rlvr_exp run.resume=run" in card_of(run).text


@pytest.mark.parametrize(
    ("files", "licence"),
    [
        ({"data/README.md": "---\nlicense: cc-by-4.0\n---\nRows."}, "cc-by-4.0"),
        ({"data/dataset_info.json": json.dumps({"license": "mit"})}, "mit"),
        ({"data/metadata.json": json.dumps({"licences": {"MIT": 3, "ISC": 1, "": 2}})}, "MIT, ISC"),
        ({"data/README.md": "No front matter."}, "unknown"),
        ({"data/README.md": "---\n[\n---\n"}, "unknown"),
    ],
)
def test_a_licence_comes_from_the_folder(tmp_path: Path, files: dict[str, str], licence: str) -> None:
    (tmp_path / "data").mkdir()
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    card = card_of(run_of(tmp_path / "run", f"data.path={tmp_path}/data"))
    assert f"Data `{tmp_path}/data`: {licence}" in card.text and card.data.datasets == [f"{tmp_path}/data"]


def test_a_base_without_a_licence_is_unknown(tmp_path: Path) -> None:
    base = tmp_path / "base"
    base.mkdir()
    for file in EMBEDDED_MODELS.joinpath("tiny").iterdir():
        (base / file.name).symlink_to(file)
    card = card_of(run_of(tmp_path / "run", f"model.path={base}"))
    assert (card.data.base_model, card.data.license) == (str(base), "unknown")
    assert f"Base model `{base}`: unknown" in card.text
    (base / CARD).write_text("---\nlicense: other\n---\n")
    assert card_of(tmp_path / "run").data.license == "other"


def test_a_downloaded_set_has_its_name_and_commit(tmp_path: Path) -> None:
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows" / CARD).write_text("---\nlicense: mit\n---\n")
    write_json(tmp_path / "rows.hub.json", {"name": "maker/rows", "commit": "d" * 40})
    card = card_of(run_of(tmp_path / "run", f"data.path={tmp_path}/rows"))
    assert card.data.datasets == ["maker/rows"] and f"`maker/rows` at commit {'d' * 40}. Licence: mit" in card.text


def test_random_weights_have_no_base(tmp_path: Path) -> None:
    card = card_of(run_of(tmp_path / "run", "model.from_scratch=true"))
    assert "base_model" not in card.data.to_dict() and "began as random numbers" in card.text


def test_an_adapter_names_its_base(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run")
    folder = run / "checkpoints" / "step_000002"
    write_json(folder / "adapter_config.json", {"base_model_name_or_path": "OWNER/BASE"})
    seal(folder, {"step": 2})
    card = card_of(run)
    assert (card.data.base_model, card.data.base_model_relation, card.data.library_name) == (
        "OWNER/BASE",
        "adapter",
        "peft",
    )


def test_each_role_of_a_checkpoint_names_its_base(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", "roles.tester.model.embedded=tiny_tester", stage="adversarial", steps=70)
    folder = run / "checkpoints" / "step_000002"
    for role in ("solver", "tester"):
        write_json(folder / role / "config.json", {})
    seal(folder, {"step": 2})
    card = card_of(run)
    assert card.data.base_model == ["rlvr_exp/tiny_solver", "rlvr_exp/tiny_tester"]
    assert "from the folder of each role: solver, tester" in card.text


def test_a_card_has_no_secret(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run")
    manifest.update(run, command=["python", "-m", "rlvr_exp", f"data.path=https://me:{SECRET}@host/rows"])
    write_cards(run)
    assert all(SECRET not in (folder / CARD).read_text() for folder in (run / "checkpoints").iterdir())
