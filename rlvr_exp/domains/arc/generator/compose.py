"""From bodies to programs: size lines, one or two steps, and running the corpus's trusted text in this process."""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache

from rlvr_exp.domains.arc.generator.sampling import Grid

Shape = tuple[int, int]
Run = Callable[[Grid], Grid]
SIZES = {"h": "len(g)", "w": "len(g[0])"}


def size_names(body: str) -> list[str]:
    """Which of `h` and `w` a body reads."""
    return [name for name in SIZES if re.search(rf"\b{name}\b", body)]


def render(bodies: Sequence[str], shapes: Sequence[Shape] | None = None) -> str:
    """The program of one or more steps; `shapes`, one for each step, writes sizes as numbers in place of `len`."""
    lines = ["def solve(g):"]
    known: dict[str, str] = {}
    for step, body in enumerate(bodies):
        values = SIZES if shapes is None else {name: str(n) for name, n in zip(SIZES, shapes[step], strict=True)}
        stale = [name for name in size_names(body) if shapes is None or known.get(name) != values[name]]
        known |= {name: values[name] for name in stale}
        *helpers, result = body.split("\n")
        if stale:
            lines.append(f"    {', '.join(stale)} = {', '.join(values[name] for name in stale)}")
        lines += [f"    {helper}" for helper in helpers]
        lines.append(f"    return {result}" if step == len(bodies) - 1 else f"    g = {result}")
    return "\n".join(lines)


@lru_cache(maxsize=4096)
def load(program: str) -> Run:
    """The function `solve` of a program of this corpus. Only for trusted text: it runs in this process."""
    scope: dict[str, Run] = {}
    exec(compile(program, "<corpus>", "exec"), scope)
    return scope["solve"]
