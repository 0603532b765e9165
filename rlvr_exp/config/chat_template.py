"""The chat template of a tokenizer's folder: whether there is one, and whether it words a prompt as the policy will need it.

It is rendered by jinja2 alone, as Transformers renders it, so that a template that fails is refused before anything starts.
"""

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from rlvr_exp.config.model import Model
from rlvr_exp.core.errors import InputProblem
from rlvr_exp.core.files import json_of

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
    """The problem of a system message that no prompt contains. `other`: what else helps."""
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
        """The block that marks an assistant's words; it renders as what it contains."""

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
