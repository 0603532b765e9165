"""What a plan says of how a policy learns and answers: algorithm, rate, lengths, temperature, wording, template."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rlvr_exp.config.algorithm import Drawing
from rlvr_exp.config.checkpoint_files import tokenizer_folder
from rlvr_exp.config.engine import is_server
from rlvr_exp.config.model import Model, has_adapter
from rlvr_exp.config.needs import config_folder, weights_folder
from rlvr_exp.config.roles import of_role
from rlvr_exp.config.schema import Config, reads
from rlvr_exp.config.suited import facts_of


def choices(config: Config) -> Iterator[tuple[str, str]]:
    """Name and text; where roles differ, one for each."""
    roles = {"": config, **{f" of {role}": of_role(config, role) for role in config.roles}}
    seen: set[tuple[str, str]] = set()
    for suffix, own in roles.items():
        for name, text in _of_policy(own):
            if (name, text) not in seen:
                seen.add((name, text))
                yield name + suffix, text


def _of_policy(config: Config) -> Iterator[tuple[str, str]]:
    if reads(config, "optimizer") and config.algorithm is not None:
        yield "algorithm", _name(config.algorithm)
        kind = "an adapter" if has_adapter(config.model) else "all weights"
        schedule = _name(config.scheduler).lower()
        yield "rate", f"{config.optimizer.lr:g} for {kind}, by {_name(config.optimizer)}, {schedule} schedule"
    model = config.model
    yield (
        "lengths",
        f"prompts of at most {model.max_prompt_tokens} tokens, completions of {model.max_completion_tokens}",
    )
    drawn = {"training": config.algorithm if reads(config, "algorithm") else None}
    drawn |= {name: getattr(config, name) for name in ("evaluation", "infer") if reads(config, name)}
    parts = [f"{_drawing(node)} in {name}" for name, node in drawn.items() if isinstance(node, Drawing)]
    if parts:
        yield "temperature", "; ".join(parts)
    yield "wording", _wording(config)
    yield "template", "the server's own" if is_server(config.engine) else _template(model)


def _name(node: Any) -> str:
    return str(node._target_).rpartition(".")[2]


def _drawing(node: Drawing) -> str:
    filters = {"top_k": 0, "top_p": 1.0, "min_p": 0.0}
    given = [f"{name} {getattr(node, name):g}" for name, off in filters.items() if getattr(node, name) != off]
    return " with ".join([f"{node.temperature:g}", *filter(None, [", ".join(given)])])


def _wording(config: Config) -> str:
    prompt = getattr(config.data, "prompt", None)
    style = getattr(prompt, "style", "") or "the data's own"
    shots = getattr(prompt, "shots", 0)
    return f"{style}, {shots} solved examples shown" if shots else style


def _template(model: Model) -> str:
    there, system = facts_of(model).chat_template, ", with a system message" if model.system else ""
    if model.chat_template != "never" and not there and (folder := _planned_from(model)):
        remedy = "if the model has one in a file of its own, chat_template.jinja, copy it too"
        return f"none: the tokenizer in {folder} has no chat template; {remedy}{system}"
    if model.chat_template != "never" and not there and not model.random_weights and not weights_folder(model):
        return f"the tokenizer's chat template, if it has one: not fetched yet{system}"
    if model.chat_template == "never" or not there:
        why = "not used" if there else "the tokenizer has none"
        return f"none ({why}){system}"
    return f"the tokenizer's chat template{system}"


def _planned_from(model: Model) -> Path | None:
    """The folder of a tokenizer that is here without the weights."""
    weights = config_folder(model)
    folder = tokenizer_folder(model, weights) if weights and not weights_folder(model) else None
    return folder if folder and (folder / "tokenizer_config.json").is_file() else None
