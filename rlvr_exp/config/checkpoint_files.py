"""Checks of a model's folder and its tokenizer from their files.

Reads headers, never weights, so that a damaged or foreign folder is reported before anything starts. The chat template is
rendered by jinja2 as Transformers renders it, so that a template that fails is reported too.
"""

import ast
import json
import math
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from fnmatch import fnmatchcase
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rlvr_exp.config.architecture import Architecture, Scratch, read_architecture
from rlvr_exp.config.model import Model, continued, has_adapter
from rlvr_exp.config.names import suggest
from rlvr_exp.core.errors import InputProblem
from rlvr_exp.core.files import json_of
from rlvr_exp.core.sealed import NAME, marks

FILE, FOLDER = "chat_template.jinja", "additional_chat_templates"
PROMPT, SYSTEM = "Qpromptq", "Qsystemq"
"""Words in place of a prompt and of a system message: no template contains them."""


def has_template(folder: Path) -> bool:
    """Whether a tokenizer's folder has a chat template."""
    if any(folder.glob("chat_template.*")) or (folder / FOLDER).is_dir():
        return True
    return bool((json_of(folder / "tokenizer_config.json") or {}).get("chat_template"))


def template_of(folder: Path) -> tuple[Path, str] | None:
    """The template that words prompts without tools, with its file; None if there is none. A file of its own comes before
    tokenizer_config.json, as in Transformers."""
    if (folder / FILE).is_file():
        return folder / FILE, (folder / FILE).read_text(encoding="utf-8", errors="replace")
    place = folder / "tokenizer_config.json"
    given = (json_of(place) or {}).get("chat_template")
    if isinstance(given, list):  # Templates by name.
        given = next(
            (one.get("template") for one in given if isinstance(one, dict) and one.get("name") == "default"), None
        )
    return (place, given) if isinstance(given, str) else None


def template_problems(model: Model, folder: Path) -> Iterator[InputProblem]:
    """Why the template of a tokenizer's folder cannot word the prompts of a `model` node."""
    found = template_of(folder) if model.chat_template != "never" else None
    if found is None:
        return
    place, template = found
    remedy = f"correct {place.name}, or model.chat_template=never for plain prompts"
    try:
        without = render(template, folder, model, "")
    except TemplateFault as fault:
        yield InputProblem(
            "model.chat_template", f"the chat template cannot be rendered: {fault}", str(place), "", "", remedy
        )
        return
    if PROMPT not in without:
        what = "the chat template leaves out the user's message"
        yield InputProblem("model.chat_template", what, str(place), "", "", remedy)
    elif model.system:
        yield from _of_system(template, folder, model)


def _of_system(template: str, folder: Path, model: Model) -> Iterator[InputProblem]:
    try:
        fault = "" if SYSTEM in render(template, folder, model, SYSTEM) else "the chat template leaves it out"
    except TemplateFault as refusal:
        fault = f"the chat template refuses it: {refusal}"
    if fault:
        yield no_system(fault, "plain prompts: model.chat_template=never")


def no_system(fault: str, other: str) -> InputProblem:
    """The problem of a system message that no prompt contains. `other`: another remedy."""
    return InputProblem("model.system", "would reach no prompt", fault, "", "", f"drop it, or {other}")


class TemplateFault(ValueError):
    """Why a template cannot be rendered."""


def render(template: str, folder: Path, model: Model, system: str) -> str:
    """A prompt in the template's words. Raises TemplateFault."""
    from jinja2 import TemplateError, TemplateSyntaxError

    roles = [("system", system)] if system else []
    messages = [{"role": role, "content": words} for role, words in (*roles, ("user", PROMPT))]
    given = {"messages": messages, "tools": None, "documents": None, "add_generation_prompt": True}
    try:
        return _compiled(template).render(**_special_tokens(folder), **given, enable_thinking=model.thinking)
    except TemplateSyntaxError as fault:
        raise TemplateFault(f"line {fault.lineno}: {fault.message}") from fault
    except TemplateError as fault:
        raise TemplateFault(str(fault) or type(fault).__name__) from fault
    except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RecursionError) as fault:
        raise TemplateFault(f"{type(fault).__name__}: {fault}") from fault


def _compiled(template: str) -> Any:
    """As `_compile_jinja_template` in transformers.utils.chat_template_utils compiles it."""
    from jinja2 import TemplateError, nodes
    from jinja2.ext import Extension, loopcontrols
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Generation(Extension):
        """The block that marks an assistant's words. It renders as its content."""

        tags = {"generation"}  # noqa: RUF012 As jinja2 declares it.

        def parse(self, parser: Any) -> Any:
            line = next(parser.stream).lineno
            return nodes.Scope(parser.parse_statements(("name:endgeneration",), drop_needle=True)).set_lineno(line)

    def raise_exception(message: str) -> None:
        raise TemplateError(message)

    def tojson(value: Any, ensure_ascii: bool = False, **how: Any) -> str:
        return json.dumps(value, ensure_ascii=ensure_ascii, **how)

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols]
    )
    environment.filters["tojson"] = tojson
    environment.globals["raise_exception"] = raise_exception
    environment.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
    return environment.from_string(template)


def _special_tokens(folder: Path) -> Mapping[str, str]:
    """The tokens that a template may name, such as bos_token."""
    found: dict[str, Any] = {}
    for name in ("special_tokens_map.json", "tokenizer_config.json"):
        values = json_of(folder / name) or {}
        further = values.get("extra_special_tokens")
        found |= {**values, **(further if isinstance(further, dict) else {})}
    texts = {name: one.get("content") if isinstance(one, dict) else one for name, one in found.items()}
    return {name: text for name, text in texts.items() if name.endswith("_token") and isinstance(text, str)}


TOKENIZERS = ("tokenizer.json", "*.model", "vocab.*", "*.tiktoken", "tekken.json")
"""Files with a vocabulary, one of which every tokenizer has."""
INDEX = "model.safetensors.index.json"
HEADER_LIMIT = 100_000_000
"""Bytes that a header of the format has at most."""
CONTEXT = ("max_position_embeddings", "n_positions", "n_ctx", "seq_length", "max_seq_len")
"""Keys of the context length in a config.json, by family."""
TABLE = "MODEL_FOR_CAUSAL_LM_MAPPING_NAMES"
"""The table in Transformers of the model types that AutoModelForCausalLM loads."""


def checkpoint_problems(model: Model, folder: Path) -> Iterator[InputProblem]:
    """Reasons why a folder with weights, named by a `model` node, cannot be loaded. `folder`: below any adapter."""
    where = next((f"model.{name}" for name in ("path", "package", "name") if getattr(model, name)), "model")
    for name, what in _faults(folder, [] if model.from_scratch else [*_weights(folder)]):
        remedy = "name another checkpoint, or copy this one here a second time"
        yield InputProblem(where, what, str(folder / name), "", "", remedy)
    values = json_of(folder / "config.json") or {}
    yield from _of_kind(model, values, folder, where)
    if model.scratch == Scratch() and not model.random_weights:
        yield from _of_context(model, context_of(values))
        yield from _of_layers(model, folder)
    of_words = "model.tokenizer" if model.tokenizer else where
    yield from _tokenizer_problems(model, tokenizer_folder(model, folder), folder, of_words)


def _of_kind(model: Model, values: Mapping[str, Any], folder: Path, where: str) -> Iterator[InputProblem]:
    """A model that is no causal language model, by its config.json."""
    kind, named = values.get("model_type"), values.get("architectures")
    names = [name for name in named if isinstance(name, str)] if isinstance(named, list) else []
    own_code = model.trust_remote_code and "AutoModelForCausalLM" in (values.get("auto_map") or {})
    what = ""
    if values.get("is_encoder_decoder") is True:
        what = "an encoder-decoder model"
    elif names and all(name.endswith("ForMaskedLM") for name in names) and not values.get("is_decoder"):
        what = "a masked language model"
    elif isinstance(kind, str) and kind not in causal_types() and not own_code:
        what = f"a model of type {kind!r}, which Transformers cannot load as a causal language model"
    if what:
        remedy = "name the folder of a decoder, such as Llama, Qwen or Mistral"
        if "auto_map" in values and not own_code:
            remedy += ", or model.trust_remote_code=true to run the code that comes with it"
        got = f"{folder} ({', '.join(names) or kind or 'config.json'})"
        yield InputProblem(where, what, got, "a causal language model", "", remedy)


@cache
def causal_types() -> frozenset[str]:
    """The model types that the installed Transformers loads as causal language models, read from its source: importing it
    takes many seconds."""
    place = find_spec("transformers")
    file = Path(str(place and place.origin)).parent / "models" / "auto" / "modeling_auto.py"
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == TABLE and isinstance(node.value, ast.Call):
            return frozenset(name for name, _ in ast.literal_eval(node.value.args[0]))
    raise RuntimeError(f"{file} has no table {TABLE}: this version of Transformers is not supported")


def context_of(values: Mapping[str, Any]) -> int:
    """Tokens of the longest prompt with its completion, by a config.json; 0 if it does not say."""
    text = values.get("text_config")
    values = {**values, **text} if isinstance(text, dict) else values
    return next((value for name in CONTEXT if isinstance(value := values.get(name), int) and value > 0), 0)


def _of_context(model: Model, context: int) -> Iterator[InputProblem]:
    """Lengths that leave the prompt or the completion no token."""
    if not context:
        return
    room = {"max_prompt_tokens": "completion", "max_completion_tokens": "prompt"}
    for name, other in room.items():
        if (given := getattr(model, name)) >= context:
            what = f"the model's context of {context} tokens leaves no room for a {other}"
            remedy = (
                f"model.{name}={context // (2 if name == 'max_prompt_tokens' else 4)}, or a model with a longer context"
            )
            yield InputProblem(f"model.{name}", what, str(given), f"at most {context - 1}", "", remedy)


def _of_layers(model: Model, folder: Path) -> Iterator[InputProblem]:
    """Patterns of model.freeze and targets of an adapter that match nothing, for the families with a known shape."""
    try:
        shape, _ = read_architecture(folder)
    except (ValueError, KeyError):  # A damaged config.json is a problem of its own.
        return
    if not shape.known:
        return
    names = [*dict.fromkeys([*(name for name, _ in shape.named()), "lm_head.weight"])]
    for pattern in model.freeze:
        if not any(fnmatchcase(name, pattern) for name in names):
            yield frozen_nothing(pattern, names)
    if model.freeze and all(any(fnmatchcase(name, pattern) for pattern in model.freeze) for name in names):
        yield nothing_left(model.freeze)
    ends = sorted(shape.matrices())
    for target in model.adapter.targets if has_adapter(model) and not continued(model) else ():
        if target.rpartition(".")[2] not in ends:
            yield no_layer(target, ends)


def frozen_nothing(pattern: str, names: Sequence[str]) -> InputProblem:
    example = suggest(pattern, names) or suggest(pattern.strip("*") or pattern, names)
    allowed = "parameter names, * and [..] as in a shell: " + ", ".join(list(names)[:3]) + ", ..."
    return InputProblem("model.freeze", "fits no parameter", pattern, allowed, example)


def nothing_left(patterns: Sequence[str]) -> InputProblem:
    return InputProblem("model.freeze", "nothing is left to train", str(list(patterns)), remedy="freeze fewer layers")


def no_layer(target: str, ends: Sequence[str]) -> InputProblem:
    what = "no linear layer has this name"
    return InputProblem("model.adapter.targets", what, target, ", ".join(ends), suggest(target, ends))


def tokenizer_folder(model: Model, weights: Path) -> Path:
    """The folder of the tokenizer: `model.tokenizer` if given; else the adapter's folder if it has a tokenizer, because
    training may have changed it; else the folder of the weights."""
    if model.tokenizer:
        return Path(model.tokenizer)
    own = continued(model)
    return Path(own) if own and (Path(own) / "tokenizer_config.json").is_file() else weights


def _faults(folder: Path, weights: list[Path]) -> Iterator[tuple[str, str]]:
    """File and fault, of the configuration and of the weights."""
    if json_of(folder / "config.json") is None:
        yield "config.json", "damaged: it holds no JSON object"
    for path in weights:
        if not path.is_file():
            yield path.name, f"missing, though {INDEX} names it"
        elif fault := _fault_of_weights(path):
            yield path.name, fault


def _weights(folder: Path) -> Iterator[Path]:
    named = (json_of(folder / INDEX) or {}).get("weight_map") if (folder / INDEX).is_file() else None
    if isinstance(named, dict):
        yield from (folder / str(name) for name in sorted({*named.values()}))
    else:
        yield from sorted(folder.glob("*.safetensors"))


def _fault_of_weights(path: Path) -> str:
    """Fault of a file of weights by its header and its length; empty if there is none."""
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        text = file.read(length) if size >= 8 and length <= min(size - 8, HEADER_LIMIT) else b""
    try:
        header = json.loads(text)
        ends = [entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"]
        written = 8 + length + max(ends, default=0)
    except (ValueError, TypeError, KeyError, IndexError, AttributeError):
        return "damaged: no safetensors file"
    return "" if size == written else f"{'cut short' if size < written else 'too long'}: {size} bytes of {written}"


def _tokenizer_problems(model: Model, folder: Path, weights: Path, where: str) -> Iterator[InputProblem]:
    if not any(path for pattern in TOKENIZERS for path in folder.glob(pattern)):
        remedy = "copy the files of its tokenizer there: tokenizer.json, tokenizer_config.json"
        yield InputProblem(where, "no tokenizer is there", str(folder), "", "", remedy)
        return
    last, rows = _last_id(folder), (json_of(weights / "config.json") or {}).get("vocab_size")
    if last is not None and isinstance(rows, int) and last >= rows:
        yield tokenizer_too_large(where, last, rows)
    if model.chat_template == "always" and not has_template(folder):
        yield no_template(folder)
    yield from template_problems(model, folder)


def tokenizer_too_large(where: str, last: int, rows: int) -> InputProblem:
    what, got = "the tokenizer is larger than the embedding", f"token ids up to {last}, {rows} rows"
    return InputProblem(where, what, got, f"ids up to {rows - 1}", "", "give the model its own tokenizer")


def no_template(folder: Path | str) -> InputProblem:
    remedy = "model.chat_template=auto, or add chat_template.jinja to the tokenizer's files"
    return InputProblem("model.chat_template", "the tokenizer has no chat template", str(folder), "", "", remedy)


def _last_id(folder: Path) -> int | None:
    """The largest id of the vocabulary in tokenizer.json; None if another file holds it."""
    values = json_of(folder / "tokenizer.json") if (folder / "tokenizer.json").is_file() else None
    if values is None:
        return None
    vocabulary = (values.get("model") or {}).get("vocab") or {}
    added = [token["id"] for token in values.get("added_tokens") or []]
    listed = vocabulary.values() if isinstance(vocabulary, dict) else range(len(vocabulary))
    return max([*listed, *added], default=None)


LAYERS, HIDDEN = ("num_hidden_layers", "n_layer", "n_layers"), ("hidden_size", "n_embd", "d_model")
HEADS = ("num_attention_heads", "n_head", "n_heads")
"""Keys of a public config.json, by family."""
BYTES = {"float32": 4, "float16": 2, "bfloat16": 2}
MOST_HEADER = 2**27
"""A longer header of a safetensors file is none."""


@dataclass(frozen=True)
class CheckpointFacts:
    """Zero and empty: unknown."""

    parameters: int = 0
    context: int = 0
    """Tokens of the longest prompt with its completion."""
    cached: int = 0
    """Numbers that one token takes in the cache of keys and values."""
    stored: str = ""
    """Type of the weights on disk."""
    chat_template: bool = False
    run: Mapping[str, Any] = field(default_factory=dict)
    """Options of the run of ours that wrote it, by their dotted paths; empty for a checkpoint of others."""


def read_facts(weights: Path, tokenizer: Path, trained: Path) -> CheckpointFacts:
    """
    Args:
        weights: folder of the model below any adapter; its config.json is enough.
        tokenizer: folder of its tokenizer.
        trained: folder of the checkpoint, an adapter's too: of ours it records its run.
    """
    values = json_of(weights / "config.json") or {}
    values = {**values, **values["text_config"]} if isinstance(values.get("text_config"), dict) else values
    stored = str(values.get("dtype") or values.get("torch_dtype") or "").removeprefix("torch.")
    layers, hidden, heads = (_first(values, names) for names in (LAYERS, HIDDEN, HEADS))
    keys = _first(values, ("num_key_value_heads",)) or heads
    width = _first(values, ("head_dim",)) or (hidden // heads if heads else 0)
    return CheckpointFacts(
        _shape(weights).parameters or _parameters(weights, BYTES.get(stored, 2)),
        context_of(values),
        2 * layers * keys * width,
        stored,
        has_template(tokenizer),
        _run(trained),
    )


def _shape(folder: Path) -> Architecture:
    """Unknown for a family without a shape and a file that cannot be read."""
    try:
        return read_architecture(folder)[0]
    except (OSError, ValueError, KeyError, TypeError):
        return Architecture()


def _run(folder: Path) -> Mapping[str, Any]:
    """The options in the manifest of a checkpoint of ours, or of that whose role's folder this is."""
    folder = folder.resolve()
    sealed = next((place for place in (folder, folder.parent) if marks(place) > 1), None)
    options = (json_of(sealed / NAME) or {}).get("config") if sealed else None
    return options if isinstance(options, dict) else {}


def _first(values: Mapping[str, Any], names: Iterable[str]) -> int:
    return next((value for name in names if isinstance(value := values.get(name), int) and value > 0), 0)


def _parameters(folder: Path, width: int) -> int:
    """From the headers of safetensors files; else from the size of the weights, at `width` bytes a number."""
    files = sorted(folder.glob("*.safetensors"))
    try:
        if files:
            return sum(map(_numbers, files))
    except (OSError, ValueError, KeyError, TypeError, struct.error):  # Damaged: reported where it is loaded.
        pass
    files = files or sorted(folder.glob("pytorch_model*.bin"))
    return sum(path.stat().st_size for path in files if path.is_file()) // width


def _numbers(file: Path) -> int:
    """Numbers in a safetensors file: 8 bytes with the length of a header in JSON, the header, the numbers."""
    with file.open("rb") as opened:
        (length,) = struct.unpack("<Q", opened.read(8))
        header = json.loads(opened.read(min(length, MOST_HEADER)))
    return sum(math.prod(entry["shape"]) for name, entry in header.items() if name != "__metadata__")
