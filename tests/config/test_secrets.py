"""Secrets stay out of files, by their key or their value: interpolations are written as such, others are rejected or masked."""

import io
import sys
from pathlib import Path

import pytest

from rlvr_exp.config.compose import compose, compose_lenient
from rlvr_exp.config.help import annotated
from rlvr_exp.config.load import load, to_yaml
from rlvr_exp.core.secrets import Masking, held, masked, shows_secret

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


TOKENS = ("hf_" + "a1" * 15, "sk-proj-" + "b2" * 15, "ghp_" + "c3" * 12, "AKIA" + "Q7" * 8, "xoxb-" + "1" * 12)


@pytest.mark.parametrize("token", TOKENS)
def test_well_known_tokens_are_masked_wherever_they_stand(token):
    assert masked(f"loading with {token}, then") == "loading with ***, then"


def test_a_password_of_an_address_is_masked_and_its_host_is_not():
    assert masked("https://me:hunter22@host/x") == "https://***@host/x"
    assert masked("http://host:8080/x") == "http://host:8080/x"


@pytest.mark.parametrize("name", ["WANDB_API_KEY", "HF_TOKEN", "MY_PASSWORD", "judge_secret"])
def test_values_of_telling_variables_are_masked(monkeypatch, name):
    monkeypatch.setenv(name, "plain-looking")
    assert "plain-looking" in held() and masked("a plain-looking thing") == "a *** thing"


OTHERS = [("KEYBOARD", "plain-looking"), ("HF_TOKEN", "short"), ("SSL_KEY", "/etc/keys/one")]


@pytest.mark.parametrize(("name", "value"), OTHERS)
def test_other_variables_are_left_alone(monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    assert not shows_secret(f"a {value} thing")


@pytest.mark.parametrize("value", [TOKENS[0], "https://me:hunter22@host/x", "my-very-own-token"])
def test_a_secret_under_any_key_is_refused_without_repeating_it(monkeypatch, value):
    monkeypatch.setenv("DATA_TOKEN", "my-very-own-token")
    problems = compose_lenient(["+stage=grpo", f"data.path='{value}'"]).problems
    assert "a secret would stand in the run directory" in str(problems) and value not in str(problems)
    (unknown,) = compose_lenient(["+stage=grpo", f"data.pth='{value}'"]).problems
    assert value not in str(unknown)


def test_an_interpolated_one_under_any_key_is_written_as_it_was_given(monkeypatch, tmp_path):
    monkeypatch.setenv("DATA_TOKEN", "my-very-own-token")
    checked = compose(["+stage=grpo", "data.path=${oc.env:DATA_TOKEN}"])
    assert checked.config.data.path == "my-very-own-token"
    text = to_yaml(checked)
    assert "my-very-own-token" not in text
    (tmp_path / "config.yaml").write_text(text)
    assert load(tmp_path / "config.yaml").data.path == "my-very-own-token"


def test_no_secret_passes_a_masking_stream():
    out = io.StringIO()
    stream = Masking(out)
    print("with", TOKENS[0], file=stream, flush=True)
    stream.writelines([f"{TOKENS[1]}\n"])
    assert out.getvalue() == "with ***\n***\n" and not stream.isatty()
