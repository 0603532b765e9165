"""The fields of a row (one JSON object a line), the faults of unreadable ones, and the limits of a candidate."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

RowId = str | int | None
Fields = Mapping[str, Any]


class Fault(ValueError):
    """The fault of a row: the key, its value, the allowed values."""


def object_of(line: bytes) -> Fields:
    """The JSON object that a line is. Raises Fault."""
    try:
        value = json.loads(line.decode("utf-8"))
    except UnicodeDecodeError as fault:
        raise Fault(f"not UTF-8: byte {fault.start + 1} of the line is {line[fault.start]:#04x}") from fault
    except json.JSONDecodeError as fault:
        raise Fault(f"not JSON: {fault.msg} at character {fault.pos + 1} of the line") from fault
    except RecursionError as fault:
        raise Fault("not readable: nested too deep") from fault
    except ValueError as fault:  # An integer of more digits than Python reads.
        raise Fault(f"not readable: {fault}") from fault
    if type(value) is not dict:
        raise Fault(f"not a JSON object but {kind_of(value)}")
    return value


def identity_of(fields: Fields) -> RowId:
    """The row's id. Raises Fault."""
    value = fields.get("id")
    if type(value) not in (str, int):
        raise Fault(wrong("id", fields, "a string or an integer"))
    return value


def text_of(fields: Fields, key: str) -> str:
    """The text of a key. Raises Fault."""
    if type(fields.get(key)) is not str:
        raise Fault(wrong(key, fields, "text"))
    return fields[key]


def optional_text(fields: Fields, key: str) -> str | None:
    """The text of a key; None if it is absent or null. Raises Fault."""
    return text_of(fields, key) if fields.get(key) is not None else None


def wrong(where: str, holder: Fields, allowed: str, key: str = "") -> str:
    """The words of a Fault. `where`: the key as a person finds it, if it is not `key` of the row itself."""
    key = key or where
    return f"{where}: got {short(holder[key])}, allowed {allowed}" if key in holder else f"{where}: missing; {allowed}"


def kind_of(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")


def short(value: Any) -> str:
    try:
        text = json.dumps(value)
    except (ValueError, RecursionError):
        return kind_of(value)
    return text if len(text) <= 80 else f"{text[:60]}... ({kind_of(value)})"


KEYS = ("cpu_s", "wall_s", "memory_mb")
LARGEST = 1e6
"""Largest limit or tolerance: more is a mistake."""


@dataclass(frozen=True)
class Limits:
    """Limits of one candidate. Zero stands for the verifier's default."""

    cpu_s: float = 0.0
    wall_s: float = 0.0
    memory_mb: int = 0


def limits_of(fields: Fields) -> Limits:
    """The `limits` of a row. Raises Fault."""
    given = fields.get("limits")
    if given is None:
        return Limits()
    if type(given) is not dict or set(given) - set(KEYS):
        raise Fault(wrong("limits", fields, f"an object with {', '.join(KEYS)}"))
    named = {name: value for name, value in given.items() if value is not None}
    for name, value in named.items():
        if type(value) not in (int, float) or not 0 < value <= LARGEST:
            raise Fault(wrong(f"limits.{name}", given, f"a number above 0, at most {LARGEST:g}", name))
    memory = named.get("memory_mb", 0)
    if memory != int(memory):
        raise Fault(wrong("limits.memory_mb", given, "a whole number of MB", "memory_mb"))
    return Limits(float(named.get("cpu_s", 0.0)), float(named.get("wall_s", 0.0)), int(memory))
