"""Models with random weights: of a known shape for measurements, or of a shape of one's own to train from scratch."""

from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM

from rlvr_exp.algorithms import packed_layers
from rlvr_exp.algorithms.logprobs import score
from rlvr_exp.algorithms.packing import packed_examples
from rlvr_exp.config.architecture import Architecture, Scratch
from rlvr_exp.config.compose import compose, compose_lenient
from rlvr_exp.config.model import Model
from rlvr_exp.config.needs import missing_artifacts
from rlvr_exp.core.errors import InputError
from rlvr_exp.memory.reading import shape_of
from rlvr_exp.models.policy import Policy, load_policy
from rlvr_exp.models.quantization import weight_bytes
from rlvr_exp.models.random_weights import random_network
from rlvr_exp.rollouts import sampler

SHAPE = Architecture(
    layers=2, hidden=64, heads=4, kv_heads=2, head_dim=16, intermediate=128, vocabulary=512, tied_embeddings=True
)
WORDS = (
    "benchmark=training",
    "model=qwen_coder_1_5b",
    "model.random_weights=true",
    "model.dtype=bfloat16",
    "model.architecture={layers:2,hidden:64,heads:4,kv_heads:2,head_dim:16,intermediate:128,vocabulary:2048}",
)


@pytest.mark.parametrize("bias, norm", [(False, False), (True, False), (False, True)])
def test_every_family_has_the_parameters_of_its_shape(bias: bool, norm: bool) -> None:
    shape = Architecture(**{**vars(SHAPE), "attention_bias": bias, "qk_norm": norm})
    network = random_network(shape, 32, torch.float32, "cpu")
    assert sum(value.numel() for value in network.parameters()) == shape.parameters


def test_fewer_bits_take_less_memory() -> None:
    sizes = [weight_bytes(random_network(SHAPE, 32, torch.bfloat16, "cpu", bits)) for bits in ("", "8bit", "4bit")]
    assert sizes[0] > sizes[1] > sizes[2]


def test_a_policy_without_weights_is_drawn_by_the_seed_and_needs_nothing_fetched() -> None:
    config = compose(["+stage=benchmark", *WORDS]).config
    assert list(missing_artifacts(config)) == []
    one, again, other = (load_policy(config.model, seed).model.get_input_embeddings().weight for seed in (0, 0, 1))
    assert torch.equal(one, again) and not torch.equal(one, other)
    assert one.shape == (2048, 64) and one.dtype == torch.bfloat16


def test_random_weights_of_an_unknown_shape_or_outside_a_benchmark_are_refused() -> None:
    with pytest.raises(InputError, match="the model's shape is unknown"):
        compose(["+stage=benchmark", "benchmark=training", "model.random_weights=true"])
    with pytest.raises(InputError, match="random weights are for benchmarks"):
        compose(["+stage=grpo", *WORDS[1:]])


SMALL = {"layers": 2, "hidden": 64, "heads": 4, "context": 256}
KINDS = {
    "qwen3": Scratch(**SMALL, kv_heads=1, head_dim=16),
    "llama": Scratch(**SMALL, family="llama", kv_heads=4, head_dim=16, embeddings="untied"),
    "window": Scratch(**SMALL, window=8, head_dim=16),
    "gpt2": Scratch(**SMALL, positions="learned", intermediate=200, embeddings="untied"),
    "bloom": Scratch(**SMALL, positions="alibi"),
    "smollm3": Scratch(**SMALL, positions="none", kv_heads=2, head_dim=16),
}
CLASSES = {"window": "qwen3"}
PACKED = {"qwen3", "llama", "gpt2", "smollm3"}
PROMPTS = [list(range(5, 25)), list(range(40, 52))]
COMPLETIONS = [[[60 + i, 61, 7, 8, 9, 10, 11] for i in range(3)], [[80 + i, 61, 5, 6, 7, 8, 33] for i in range(2)]]


@pytest.fixture(scope="module", params=KINDS)
def built(request: pytest.FixtureRequest) -> tuple[str, Policy]:
    policy = load_policy(Model(from_scratch=True, scratch=KINDS[request.param]), seed=3)
    with torch.no_grad():
        for value in policy.model.parameters():
            value.mul_(4)  # Larger weights than at the start: attention matters.
    return request.param, policy


def alone(policy: Policy, ids: list[int]) -> torch.Tensor:
    """(tokens - 1,) log-probabilities of each token but the first, in a row of its own."""
    with torch.no_grad():
        scores = policy.model.eval()(input_ids=torch.tensor([ids])).logits[0].log_softmax(-1)
    return scores[:-1].gather(-1, torch.tensor(ids[1:])[:, None])[:, 0]


def test_its_checkpoint_is_one_of_the_class_that_loads_as_any_other(built, tmp_path: Path) -> None:
    name, policy = built
    policy.model.save_pretrained(tmp_path)
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path)
    assert loaded.config.model_type == CLASSES.get(name, name) and policy.max_tokens == 256
    ids = torch.tensor([PROMPTS[0]])
    assert torch.equal(loaded(ids).logits, policy.model.eval()(ids).logits)
    tied = loaded.get_output_embeddings().weight is loaded.get_input_embeddings().weight
    assert tied == (KINDS[name].embeddings != "untied")


def last_logits(shape: Scratch, prompts: list[list[int]]) -> list[torch.Tensor]:
    """Of the last token of each prompt, under one model with larger weights than at the start."""
    policy = load_policy(Model(from_scratch=True, scratch=shape), seed=0)
    with torch.no_grad():
        for value in policy.model.parameters():
            value.mul_(4)
        return [policy.model.eval()(input_ids=torch.tensor([ids])).logits[0, -1] for ids in prompts]


@pytest.mark.parametrize(
    ("positions", "blind"), [("none", True), ("rotary", False), ("learned", False), ("alibi", False)]
)
def test_only_without_positions_one_layer_does_not_see_in_which_order_tokens_came(positions: str, blind: bool) -> None:
    there, swapped = last_logits(Scratch(layers=1, positions=positions), [[5, 9, 7, 3], [9, 5, 7, 3]])
    assert torch.allclose(there, swapped, atol=1e-4) == blind


def test_a_window_cuts_off_what_is_further_back() -> None:
    shape = Scratch(layers=1, kv_heads=4, window=3)
    base, outside, inside = last_logits(shape, [[5, 9, 7, 3], [6, 9, 7, 3], [5, 8, 7, 3]])
    assert torch.allclose(base, outside, atol=1e-4) and not torch.allclose(base, inside, atol=1e-4)


@pytest.mark.filterwarnings("ignore:.*sampled row by row:RuntimeWarning")
def test_it_samples_by_the_probabilities_of_a_plain_pass(built) -> None:
    _, policy = built
    found = sampler.score(policy.model, PROMPTS, COMPLETIONS, 1.0)
    every = [(prompt, one) for prompt, each in zip(PROMPTS, COMPLETIONS, strict=True) for one in each]
    plain = torch.stack([alone(policy, prompt + one)[len(prompt) - 1 :] for prompt, one in every])
    torch.testing.assert_close(found, plain, atol=1e-4, rtol=0)


def test_packed_examples_have_the_log_probabilities_of_their_own_rows_or_are_not_packed(built) -> None:
    name, policy = built
    choice = packed_layers.choose(policy.model, 256, torch.device("cpu"), torch.float32)
    assert (choice.implementation is not None) == (name in PACKED), choice.reasons
    if choice.implementation is not None:
        rows = packed_examples([(ids, ids) for ids in PROMPTS])
        together = score(policy.model, rows, 1.0, implementation=choice.implementation).logprobs
        torch.testing.assert_close(together, torch.cat([alone(policy, ids) for ids in PROMPTS]), atol=1e-4, rtol=0)


def test_a_model_without_exchangeable_attention_is_not_packed_even_where_a_trial_shows_no_difference() -> None:
    policy = load_policy(Model(from_scratch=True, scratch=KINDS["bloom"]), seed=0)
    with torch.no_grad():
        for value in policy.model.parameters():
            value.zero_()
    choice = packed_layers.choose(policy.model, 256, torch.device("cpu"), torch.float32)
    assert choice.implementation is None


def test_what_is_left_open_is_as_in_the_embedded_model() -> None:
    plain, same = (load_policy(Model(from_scratch=True, scratch=one), seed=0) for one in (Scratch(), Scratch(layers=5)))
    ids = torch.tensor([PROMPTS[0]])
    assert torch.equal(plain.model.eval()(ids).logits, same.model.eval()(ids).logits)


@pytest.mark.parametrize("name", [name for name in KINDS if name not in ("gpt2", "bloom")])
def test_memory_is_planned_for_the_shape_that_is_built(name: str) -> None:
    model = Model(from_scratch=True, scratch=KINDS[name])
    network = load_policy(model, seed=0).model
    assert shape_of(model)[0].parameters == sum(value.numel() for value in network.parameters())


def test_memory_of_classes_without_a_known_shape_is_unknown() -> None:
    assert not shape_of(Model(from_scratch=True, scratch=KINDS["bloom"]))[0].known


REFUSED = {
    "kv_heads": ["positions=learned", "kv_heads=2"],
    "intermediate": ["positions=alibi", "intermediate=300"],
    "head_dim": ["positions=alibi", "hidden=130"],
    "window": ["positions=none", "window=16"],
    "family": ["positions=none", "family=llama"],
    "context": ["context=64"],
    "vocabulary": ["vocabulary=300"],
    "tokenizer": ["tokenizer=grid"],
}


@pytest.mark.parametrize("where", REFUSED)
def test_what_a_class_cannot_do_is_refused(where: str) -> None:
    words = [f"model.scratch.{word}" for word in REFUSED[where]]
    data = ["data=edits"] if where == "tokenizer" else []
    found = compose_lenient(["+stage=sft", "model.from_scratch=true", *words, *data]).problems
    assert [one.where for one in found] == [f"model.scratch.{where}"]


def test_without_from_scratch_it_is_refused() -> None:
    found = compose_lenient(["+stage=sft", "model.scratch.layers=2"]).problems
    assert [one.where for one in found] == ["model.scratch"]
    assert compose(["+stage=sft", "model.from_scratch=true", "model.scratch.layers=2"]).config.model.scratch.layers == 2


def test_the_implementation_of_attention_is_the_chosen_one() -> None:
    chosen = load_policy(Model(from_scratch=True, scratch=KINDS["qwen3"], attention="eager"), seed=0)
    assert chosen.model.config._attn_implementation == "eager"
    found = compose_lenient(["+stage=sft", "model.from_scratch=true", "model.device_map=auto"]).problems
    assert [one.where for one in found] == ["model.device_map"]


def test_no_reference_is_made_of_a_shape_of_its_own() -> None:
    words = ["+stage=grpo", "algorithm=pass_k", "model.from_scratch=true", "model.scratch.layers=2"]
    assert compose(words).config.model.from_scratch
    found = compose_lenient([*words, "algorithm.kl_coef=0.04"]).problems
    assert [(one.where, one.remedy) for one in found] == [("model.scratch", "algorithm.kl_coef=0")]
