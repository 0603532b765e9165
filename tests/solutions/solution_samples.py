"""Solutions for tests: plain ones, and strategies that draw them."""

from typing import Any

from hypothesis import strategies as st

from rlvr_exp.solutions.record import OPERATORS, Solution, output_hash
from rlvr_exp.verifiers.base import Verdict

FAILED = {"outcome": "failed", "bucket": "wrong_answer"}


def solution(task: str = "t", number: int = 0, outputs: Any = (1, 2), **more: Any) -> Solution:
    """Differs from another of its task by its number alone; passed unless `passed` of `total` are given."""
    judged = {name: more.pop(name) for name in ("passed", "total", "seconds", "bucket", "rule") if name in more}
    verdict = {"outcome": "passed", "passed": 2, "total": 2}
    if judged.get("passed", 2) < judged.get("total", 2):
        verdict |= FAILED
    program = more.pop("program", f"def solve(g):\n    return {number}\n")
    return Solution(task, program, Verdict(**{**verdict, **judged}), tuple(map(output_hash, outputs)), **more)


SMALL = st.integers(0, 3)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


@st.composite
def solutions(draw: st.DrawFn) -> Solution:
    """Of few tasks, programs and outputs, so that duplicates and ties are common."""
    total = draw(SMALL)
    return solution(
        draw(st.sampled_from("ab")),
        program=draw(st.sampled_from(["x = 0", "def f(a):\n    return a", "def f(b): return b", "(", *"01234"]) | TEXT),
        outputs=draw(st.lists(SMALL, min_size=1, max_size=3)),
        passed=draw(st.integers(0, total)),
        total=total,
        seconds=draw(st.sampled_from([0.0, 0.5, 1e-9, 3.0])),
        family=draw(TEXT),
        difficulty=draw(st.sampled_from([0.0, 0.25, -1.0])),
        operator=draw(st.sampled_from(OPERATORS)),
        parent=draw(TEXT),
        run=draw(TEXT),
        step=draw(SMALL),
        policy=draw(TEXT),
    )
