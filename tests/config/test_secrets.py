"""Secrets stay out of files: interpolated secrets are written as interpolations, others are rejected."""

import sys
from pathlib import Path

import pytest

from rlvr_exp.config.compose import compose, compose_lenient
from rlvr_exp.config.help import annotated
from rlvr_exp.config.load import load, to_yaml

CLASSES = """
from dataclasses import dataclass, field

@dataclass
class Judge:
    api_key: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    max_tokens: int = 5
"""


@pytest.fixture
def words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    (tmp_path / "curriculum").mkdir()
    module = f"judge_{abs(hash(str(tmp_path)))}"
    (tmp_path / f"{module}.py").write_text(CLASSES)
    (tmp_path / "curriculum" / "judge.yaml").write_text(f"_target_: {module}.Judge\n")
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("JUDGE_KEY", "hush")
    return ["+stage=grpo", f"hydra.searchpath=[{tmp_path}]", "curriculum=judge", "curriculum.max_tokens=7"]


@pytest.mark.parametrize("key", ["api_key", "headers.token"])
def test_an_interpolated_secret_is_resolved_in_memory_alone(words: list[str], tmp_path: Path, key: str) -> None:
    checked = compose(
        [
            *words,
            f"+curriculum.{key}=${{oc.env:JUDGE_KEY}}" if "." in key else f"curriculum.{key}=${{oc.env:JUDGE_KEY}}",
        ]
    )
    assert "hush" in str(checked.config)
    text = to_yaml(checked)
    assert "hush" not in text + annotated(checked) and "${oc.env:JUDGE_KEY}" in text
    (tmp_path / "config.yaml").write_text(text)
    assert load(tmp_path / "config.yaml") == checked.config


@pytest.mark.parametrize("word", ["curriculum.api_key=hush", "+curriculum.headers.token=hush"])
def test_a_secret_written_out_is_refused_without_repeating_it(words: list[str], word: str) -> None:
    (problem,) = compose_lenient([*words, word]).problems
    assert "oc.env" in problem.remedy and "hush" not in str(problem)
