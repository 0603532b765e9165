"""What one candidate may use, as a row gives it."""

from dataclasses import dataclass

from rlvr_exp.tasks.formats.fields import Fault, Fields, wrong

KEYS = ("cpu_s", "wall_s", "memory_mb")
LARGEST = 1e6
"""Largest limit or tolerance: more is a mistake."""


@dataclass(frozen=True)
class Limits:
    """What one candidate may use. Zero means: the verifier's default."""

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
