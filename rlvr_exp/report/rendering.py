"""HTML of the report from the jinja2 templates of this folder. All values are escaped unless they are `Markup`."""

import re
from functools import cache
from pathlib import Path
from typing import Any

from markupsafe import Markup


def part(name: str, /, **values: Any) -> Markup:
    """The macro of parts.html with this name."""
    return Markup(getattr(_templates().get_template("parts.html").module, name)(**values))


def render(template: str, /, **values: Any) -> str:
    return str(_templates().get_template(template).render(values))


@cache
def _templates() -> Any:
    from jinja2 import Environment, FunctionLoader, StrictUndefined  # Imported late: every command imports the report.

    found = Environment(loader=FunctionLoader(_source), autoescape=True, undefined=StrictUndefined)
    found.filters.update(words=words, f=format, verdict=_verdict, cut=lambda text, most: text[:most], slug=slug)
    return found


def _source(name: str) -> str:
    """A template, whose line breaks and indentation are not part of the page."""
    lines = Path(__file__).with_name(name).read_text(encoding="utf-8").splitlines()
    return "".join(line.strip() for line in lines)


def _verdict(verdict: Any) -> str:
    return words(verdict.reason)


def slug(title: str) -> str:
    """The title as the id of its section."""
    return re.sub(r"\W+", "-", title.lower())


def words(name: str) -> str:
    """A name as words: `wrong_answer` becomes `wrong answer`."""
    return name.replace("_", " ")


def duration(seconds: float) -> str:
    """`8.2 s`, `3 min 20 s`, `2 h 05 min`."""
    if seconds < 60:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"
