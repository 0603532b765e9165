"""A secret is recognised by its value and not only by its key: rejected where it would be written, masked in
messages."""

import io

import pytest

from rlvr_exp.config.compose import compose, compose_lenient
from rlvr_exp.config.load import load, to_yaml
from rlvr_exp.core.secrets import Masking, held, masked, shows_secret

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
