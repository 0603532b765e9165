"""Policies: a causal language model with its tokenizer, from a local folder, the embedded model or the hub's cache.

A policy is a full model, or a base with an adapter. Nothing is downloaded here: whether weights are on this machine is
checked before a run starts (rlvr_exp.config.needs).

The policies of several roles are adapters on one base if the model node has an adapter, and models of their own otherwise.
A role may start from its own weights: an adapter's folder over the shared base, or a full checkpoint. Only this file and
rlvr_exp.training.learner decide which adapter samples.
"""

import dataclasses
import pickle
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import torch
from jinja2 import TemplateError
from peft import PeftModel
from safetensors import SafetensorError
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from rlvr_exp.config.architecture import Scratch, scratch_shape
from rlvr_exp.config.checkpoint_files import no_system, no_template, tokenizer_folder, tokenizer_too_large
from rlvr_exp.config.model import EMBEDDED_MODELS, Adapter, Model, base, continued, has_adapter, is_adapter
from rlvr_exp.config.roles import teams
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.core.sealed import check_if_ours
from rlvr_exp.models.adapters import activate, load_adapter, new_adapter, with_adapter
from rlvr_exp.models.parameters import freeze
from rlvr_exp.models.quantization import quantizer, settle
from rlvr_exp.models.random_weights import random_network, scratch_config
from rlvr_exp.models.tool_format import PLAIN, around_result, template_has_tools
from rlvr_exp.tasks.completion import closing_of, opening_of, tags_among
from rlvr_exp.tasks.tools import Tool, described

OTHER = "name a folder that from_pretrained loads, or copy this one here a second time"
SHOWN = 3
"""Missing weights that are named."""


@dataclass(frozen=True)
class Policy:
    """A model that answers, with everything needed to put text in and take text out."""

    model: PreTrainedModel | PeftModel
    tokenizer: PreTrainedTokenizerBase
    eos_ids: tuple[int, ...]
    """Every token that ends a completion. Imitation learns the first one: of chat, the chat template's end of a turn; of plain
    text, the tokenizer's eos."""
    chat: bool
    """Whether prompts are wrapped by the tokenizer's chat template."""
    thinking: bool
    """Passed to the chat template; a template without thinking ignores it."""
    max_tokens: int
    """The longest prompt plus completion that the model takes."""
    system: str = ""
    """Message before every prompt: by the chat template, or as the first paragraph of a plain prompt; empty: none."""

    @property
    def pad_id(self) -> int:
        return self.tokenizer.pad_token_id

    def encode_prompt(self, text: str, tools: Sequence[Tool] = ()) -> list[int]:
        """Token ids of a prompt, in the form that the model expects.

        Raises:
            InputError: the chat template writes tool calls in a form that is not read.
        """
        of_template = bool(tools) and self.template_has_tools
        text = described(tools, text) if tools and not of_template else text
        if self.chat:
            roles = [("system", self.system)] if self.system else []
            messages = [{"role": role, "content": words} for role, words in (*roles, ("user", text))]
            return list(
                self.tokenizer.apply_chat_template(
                    messages,
                    tools=[one.schema for one in tools] if of_template else None,
                    add_generation_prompt=True,
                    return_dict=False,
                    enable_thinking=self.thinking,
                )
            )
        ids = self.tokenizer(plain_prompt(self.system, text)).input_ids
        return ids[:-1] if self.appends_eos else ids

    def encode_result(self, result: str, drawn: Sequence[int]) -> list[int]:
        """Token ids of a tool's result and of what stands around it, to follow the `drawn` tokens of a turn (`after_call`). Special
        tokens in the result are plain text."""
        before, after = self._around_result
        if self.chat and drawn and drawn[-1] in self.eos_ids:
            before = before.removeprefix(self.tokenizer.decode(drawn[-1:]))
        of_form = [self.tokenizer(part, add_special_tokens=False).input_ids for part in (before, after)]
        plain = self.tokenizer(result, add_special_tokens=False, split_special_tokens=True).input_ids
        return [*of_form[0], *plain, *of_form[1]]

    def after_call(self, drawn: Sequence[int]) -> tuple[int, ...]:
        """The drawn tokens that stay before a result: in plain text all but the end, which would begin another text."""
        ended = bool(drawn) and drawn[-1] in self.eos_ids and not self.chat
        return tuple(drawn[:-1] if ended else drawn)

    @cached_property
    def template_has_tools(self) -> bool:
        return self.chat and template_has_tools(self.tokenizer)

    @cached_property
    def _around_result(self) -> tuple[str, str]:
        return around_result(self.tokenizer, self.template_has_tools, self.thinking) if self.chat else PLAIN

    @cached_property
    def appends_eos(self) -> bool:
        """Whether the tokenizer ends every text with its eos, so that a model would begin something else after it."""
        return self.tokenizer("a").input_ids[-1] == self.tokenizer.eos_token_id

    @property
    def notes(self) -> Iterator[str]:
        """Differences from the tokenizer's own settings, in one line each."""
        if self.appends_eos and not self.chat:
            yield f"the tokenizer appends {self.tokenizer.eos_token} to every text; prompts are sent without it"
        if self.eos_ids[0] != self.tokenizer.eos_token_id:
            end = self.tokenizer.convert_ids_to_tokens(self.eos_ids[0])
            yield f"answers end with {end}, the chat template's end of a turn; the tokenizer's eos is {self.tokenizer.eos_token}"

    @cached_property
    def _markup_tokens(self) -> int | None:
        """Tokens of an empty prompt, if no other token is shorter than a byte; None if some may be."""
        backend = getattr(self.tokenizer, "backend_tokenizer", None)
        return len(self.encode_prompt("")) if backend is not None and backend.normalizer is None else None

    def prompt_fits(self, text: str, limit: int) -> bool:
        """Whether a prompt has at most `limit` tokens; of a short text its bytes say so already."""
        if self._markup_tokens is not None and len(text.encode(errors="surrogatepass")) + self._markup_tokens < limit:
            return True
        return len(self.encode_prompt(text)) <= limit

    def encode_completion(self, text: str) -> list[int]:
        """Token ids of an answer, with the token that ends it. An answer without thoughts ends those that the prompt opens."""
        if self.opening:
            closing = closing_of(self.opening)
            begun = text.startswith(self.opening) or closing in text
            text = text.removeprefix(self.opening) if begun else f"\n{closing}\n\n{text}"
        return self.tokenizer(text, add_special_tokens=False).input_ids + [self.eos_ids[0]]

    @cached_property
    def opening(self) -> str:
        """The start of the thoughts that the chat template opens at the end of a prompt; empty if it opens none."""
        if not self.chat:
            return ""
        message = [{"role": "user", "content": "-"}]
        prompt = self.tokenizer.apply_chat_template(
            message, add_generation_prompt=True, tokenize=False, enable_thinking=self.thinking
        )
        return opening_of(prompt)

    def decode(self, ids: Sequence[int]) -> str:
        """The text of a completion, without its end and special tokens other than tags of thoughts. A reader has not seen the
        prompt, so that thoughts begin with their tag even if the prompt holds it."""
        end = next((index for index, token in enumerate(ids) if token in self.eos_ids), len(ids))
        tags = {token for token in ids[:end] if self._special.get(token)}
        kept = [token for token in ids[:end] if self._special.get(token, True)] if tags else ids[:end]
        return self.opening + self.tokenizer.decode(kept, skip_special_tokens=not tags)

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """The text that each token adds, special tokens included. A character of several tokens is not shown whole."""
        added = (
            self.tokenizer.decode(pair)[len(self.tokenizer.decode(pair[:1])) :] for pair in map(list, pairwise(ids))
        )
        return [*map(self.tokenizer.decode, ids[:1]), *added]

    @cached_property
    def _special(self) -> dict[int, bool]:
        """Whether special tokens are tags of thoughts."""
        special = {token: one.content for token, one in self.tokenizer.added_tokens_decoder.items() if one.special}
        tags = tags_among(special.values())
        return {token: text in tags for token, text in special.items()}


Policies = Policy | Mapping[str, Policy]
"""One policy, or one for each role."""


def plain_prompt(system: str, text: str) -> str:
    """A prompt without a chat template, after its system message."""
    return f"{system}\n\n{text}" if system else text


def source(model: Model) -> str:
    """The place of the weights of a `model` configuration node, below any adapter: a folder or a name on the hub.

    Weights in a package are converted if they are not yet; a run's parent process has already done so.
    """
    if model.package and not model.path:
        from rlvr_exp.models.quantization import ensure_converted  # The package gguf is optional.

        ensure_converted(model.package)
    place = base(model) or str(EMBEDDED_MODELS / model.embedded)
    return str(Path(place).resolve()) if Path(place).is_dir() else place


def load_policy(model: Model, seed: int, own_tokenizer: PreTrainedTokenizerBase | None = None) -> Policy:
    """Load the policy of a `model` configuration node on its device, ready to sample and to train.

    `seed` sets the initial weights of a new adapter, and all weights under `model.from_scratch`; `own_tokenizer` is that of
    `model.scratch.tokenizer`, built from the run's data.

    Raises:
        InputError: the folder holds no causal language model that can be loaded, its tokenizer does not fit it, a pattern
            of `model.freeze` or a target of `model.adapter` fits nothing in it, or a checkpoint of ours is not as it was
            written.
    """
    for folder in filter(None, (model.path, model.adapter.path)):
        check_if_ours(folder)
    policy = load_base(model, seed, own_tokenizer)
    return dataclasses.replace(policy, model=with_adapter(policy.model, model, seed)) if has_adapter(model) else policy


def load_base(model: Model, seed: int, own_tokenizer: PreTrainedTokenizerBase | None = None) -> Policy:
    """The policy without any adapter; see `load_policy`."""
    if model.scratch.tokenizer and own_tokenizer is None:
        what = "is built from the data of a run that trains or evaluates one policy"
        raise InputError(InputProblem("model.scratch.tokenizer", what, model.scratch.tokenizer, "''", "", "drop it"))
    tokenizer = load_tokenizer(model) if own_tokenizer is None else own_tokenizer
    network = load_network(model, seed, own_tokenizer)
    _check_tokenizer(model, tokenizer, network)
    network.config.pad_token_id = network.generation_config.pad_token_id = tokenizer.pad_token_id
    longest = getattr(network.config, "max_position_embeddings", sys.maxsize)  # ALiBi has no longest length.
    chat = model.chat_template == "always" or (model.chat_template == "auto" and tokenizer.chat_template is not None)
    ends = _eos_ids(network, tokenizer, chat)
    network.generation_config.eos_token_id = list(ends)  # A checkpoint stops by itself in plain generate.
    freeze(network, model.freeze)
    policy = Policy(network, tokenizer, ends, chat, model.thinking, longest, model.system)
    _check_system(policy)
    return policy


def load_network(model: Model, seed: int, own_tokenizer: PreTrainedTokenizerBase | None = None) -> PreTrainedModel:
    """The model alone, below any adapter, on its device. Raises InputError if it cannot be loaded."""
    if model.random_weights:
        return _random(model, seed)
    origin = source(model)
    network = _from_scratch(model, origin, seed, own_tokenizer) if model.from_scratch else _pretrained(model, origin)
    if not model.device_map and model.quantization == "none":
        network.to("cuda" if torch.cuda.is_available() else "cpu")
    return network


def add_adapter(policy: Policy, name: str, settings: Adapter, seed: int) -> Policy:
    """The policy with another adapter of that name on the same base, for another role; the new adapter is active.

    Its weights start from (seed, name). `rlvr_exp.models.adapters.activate` chooses which adapter samples and learns.
    """
    return dataclasses.replace(policy, model=new_adapter(policy.model, settings, seed, name))


def load_tokenizer(model: Model) -> PreTrainedTokenizerBase:
    """That of `model.tokenizer`; else the adapter's own if its folder has one, which training may have changed; else the
    base's."""
    own = model.tokenizer or continued(model)
    place = str(tokenizer_folder(model, Path(source(model)))) if own else source(model)
    with _loading(place):
        tokenizer = AutoTokenizer.from_pretrained(place, trust_remote_code=model.trust_remote_code)
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def _pretrained(model: Model, origin: str) -> PreTrainedModel:
    fewer_bits = quantizer(model, origin)
    with _loading(origin):
        network, report = AutoModelForCausalLM.from_pretrained(
            origin,
            dtype=model.dtype if model.dtype == "auto" else getattr(torch, model.dtype),
            device_map=model.device_map or None,
            attn_implementation=None if model.attention == "auto" else model.attention,
            trust_remote_code=model.trust_remote_code,
            quantization_config=fewer_bits,
            output_loading_info=True,
        )
    if lacking := sorted(report["missing_keys"]):  # They would start from random numbers.
        got = f"{origin} without {', '.join(lacking[:SHOWN])}{f' and {len(lacking) - SHOWN} more' if lacking[SHOWN:] else ''}"
        raise InputError(
            InputProblem("model.path", "weights of a causal language model are missing", got, "", "", OTHER)
        )
    if fewer_bits is not None:
        settle(network)
    return network


@contextmanager
def _loading(origin: str) -> Iterator[None]:
    """Raises InputError if the library cannot load `origin`; a device without enough memory is no fault of
    the folder."""
    try:
        yield
    except torch.OutOfMemoryError:
        raise
    except (OSError, ImportError, ValueError, LookupError, RuntimeError, SafetensorError, pickle.PickleError) as fault:
        first = next(iter(str(fault).strip().splitlines()), "")
        what = f"cannot be loaded: {type(fault).__name__}: {first}"
        raise InputError(InputProblem("model.path", what, origin, "a causal language model", "", OTHER)) from fault


def _check_system(policy: Policy) -> None:
    """Raises InputError if a system message would reach no prompt."""
    if policy.system and (fault := _system_fault(policy)):
        other = "plain prompts: model.chat_template=never" if policy.chat else "another tokenizer: model.tokenizer=DIR"
        raise InputError(no_system(fault, other))


def _system_fault(policy: Policy) -> str:
    """The reason that keeps the message out of prompts; empty if nothing does."""
    try:
        ids = policy.encode_prompt("")
    except TemplateError as fault:
        return f"the chat template refuses it: {fault}"
    if ids == dataclasses.replace(policy, system="").encode_prompt(""):
        return "the chat template leaves it out"
    unknown = policy.tokenizer.unk_token_id
    own = policy.tokenizer(policy.system, add_special_tokens=False).input_ids
    return "the tokenizer has no tokens for it" if unknown is not None and unknown in own else ""


def _check_tokenizer(model: Model, tokenizer: PreTrainedTokenizerBase, network: PreTrainedModel) -> None:
    last, rows = max(tokenizer.get_vocab().values(), default=-1), network.get_input_embeddings().num_embeddings
    if last < 0 or last >= rows:
        raise InputError(tokenizer_too_large("model.tokenizer" if model.tokenizer else "model.path", last, rows))
    if model.chat_template == "always" and tokenizer.chat_template is None:
        raise InputError(no_template(tokenizer.name_or_path))


def _random(model: Model, seed: int) -> PreTrainedModel:
    torch.manual_seed(seed)
    dtype = getattr(torch, "bfloat16" if model.dtype == "auto" else model.dtype)
    bits, positions = model.quantization.replace("none", ""), model.max_prompt_tokens + model.max_completion_tokens
    device = "cuda" if torch.cuda.is_available() else "cpu"
    network = random_network(model.architecture, positions, dtype, device, bits)
    if bits:
        settle(network)
    return network


def _from_scratch(
    model: Model, origin: str, seed: int, own_tokenizer: PreTrainedTokenizerBase | None
) -> PreTrainedModel:
    torch.manual_seed(seed)
    architecture = AutoConfig.from_pretrained(origin, trust_remote_code=model.trust_remote_code)
    if model.scratch != Scratch():
        rows, shape = (
            len(own_tokenizer) if own_tokenizer else architecture.vocab_size,
            scratch_shape(model.scratch, architecture.to_dict()),
        )
        ends = (own_tokenizer or architecture).pad_token_id, (own_tokenizer or architecture).eos_token_id
        architecture = scratch_config(shape, rows, *ends)
    dtype = torch.float32 if model.dtype == "auto" else getattr(torch, model.dtype)
    attention = None if model.attention == "auto" else model.attention
    return AutoModelForCausalLM.from_config(architecture, dtype=dtype, attn_implementation=attention)


def _eos_ids(network: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, chat: bool) -> tuple[int, ...]:
    """The end of a turn in chat, the tokenizer's eos, then every other end that the model declares."""
    declared = network.generation_config.eos_token_id
    declared = [declared] if isinstance(declared, int) else list(declared or [])
    turn = [end] if chat and (end := turn_end(tokenizer)) is not None else []
    return tuple(dict.fromkeys([*turn, tokenizer.eos_token_id, *declared]))


def turn_end(tokenizer: PreTrainedTokenizerBase) -> int | None:
    """Return the id of the token with which the chat template ends an assistant's turn.

    It is the first special or added token that the rendered template writes after the content. None if the template ends a
    turn by other means, such as plain words: then the tokenizer's eos ends answers.
    """
    content = "CONTENT"
    conversation = [{"role": "user", "content": "a"}, {"role": "assistant", "content": content}]
    try:
        text = tokenizer.apply_chat_template(conversation, tokenize=False)
    except TemplateError as fault:
        raise InputError(
            InputProblem("model.chat_template", "the tokenizer's chat template fails", str(fault))
        ) from fault
    _, shown, rest = text.rpartition(content)
    if not shown:
        return None
    known = {*tokenizer.all_special_ids, *tokenizer.added_tokens_decoder}
    return next((token for token in tokenizer(rest, add_special_tokens=False).input_ids if token in known), None)


def load_roles(models: Mapping[str, Model], own: Mapping[str, str], seed: int) -> dict[str, Policy]:
    """A policy for each role.

    Args:
        models: the `model` node of each role.
        own: by role the folder that it starts from in place of the node's weights; empty: those.

    Raises:
        InputError: as `load_policy`; or roles share a base and one of them brings weights that are no adapter.
    """
    for folder in filter(None, own.values()):
        check_if_ours(folder)
    if any(map(has_adapter, models.values())) or any(is_adapter(folder) for folder in own.values()):
        return _on_one_base(models, own, seed)
    return {
        role: load_policy(dataclasses.replace(models[role], path=folder or models[role].path), seed)
        for role, folder in own.items()
    }


def _on_one_base(models: Mapping[str, Model], own: Mapping[str, str], seed: int) -> dict[str, Policy]:
    whole = [role for role, folder in own.items() if folder and not is_adapter(folder)]
    if whole:
        what = f"the {whole[0]} brings full weights, and roles with adapters share one base"
        remedy = "name an adapter's folder, or model.adapter.kind=none"
        team = next((one.name for one in teams() if whole[0] in one.roles), "roles")
        raise InputError(InputProblem(f"{team}.{whole[0]}", what, own[whole[0]], "an adapter of the model", "", remedy))
    policy = load_base(next(iter(models.values())), seed)
    network = policy.model
    for role, folder in own.items():
        folder, adapter = folder or continued(models[role]), models[role].adapter
        network = load_adapter(network, folder, role) if folder else new_adapter(network, adapter, seed, role)
    return {role: dataclasses.replace(policy, model=network) for role in own}


@contextmanager
def acting(policies: Mapping[str, Policy], role: str) -> Iterator[Policy]:
    """The role's policy, ready to sample; after the block the previous adapter is active. A policy that acts alone has no
    adapter of its role's name, and is ready."""
    policy = policies[role]
    if not isinstance(policy.model, PeftModel) or role not in policy.model.peft_config:
        yield policy
        return
    before = policy.model.active_adapter
    activate(policy.model, role)
    try:
        yield policy
    finally:
        activate(policy.model, before)
