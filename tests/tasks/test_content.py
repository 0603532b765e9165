"""Keys of content: what two programs share, and their parts."""

import re

from hypothesis import given
from hypothesis import strategies as st

from rlvr_exp.tasks.content import keyed_parts, program_key, text_key

LINES = (
    "    x: int = a + 1",
    "    y: list",
    "    if a:\n        x = 2\n    else:\n        'said'",
    "    '''said'''",
    "    for b in a:\n        x = [c for c in b]",
    "    def inner(d):\n        e = d\n        f = e\n        return f",
    "    return x",
)
PROGRAMS = st.lists(st.sampled_from(LINES), min_size=1, max_size=6).map(
    lambda lines: "def f(a):\n    x = a\n" + "\n".join(lines) + "\n"
)


def disguised(program: str) -> str:
    """The same program with other names, comments, annotations and a docstring."""
    renamed = re.sub(r"\b([a-fxy]|inner)\b", r"other_\1", program)
    renamed = renamed.replace("other_x: int", "other_x").replace("(other_a):", "(other_a: int) -> None:")
    return "from typing import Any\n# said\n" + renamed.replace("None:\n", "None:\n    'A docstring.'\n", 1)


@given(PROGRAMS)
def test_parts_of_a_disguised_program_are_the_same(program: str) -> None:
    assert list(keyed_parts(program)) == list(keyed_parts(disguised(program)))


@given(PROGRAMS, PROGRAMS)
def test_equal_keys_have_equal_shapes(one: str, other: str) -> None:
    parts, others = list(keyed_parts(one)), list(keyed_parts(other))
    assert all(shape == shape_ for shape, key in parts for shape_, key_ in others if key == key_)
    wanted = {shape for shape, _ in others}
    assert list(keyed_parts(one, wanted)) == [part for part in parts if part[0] in wanted]


def test_a_definition_is_a_part_and_a_small_one_is_not() -> None:
    inside = "def g(v):\n    w = v\n    u = w\n    return u\n"
    shared = {key for _, key in keyed_parts(inside)} & {key for _, key in keyed_parts(f"import os\n{inside}os.x()\n")}
    assert shared == {program_key(inside)}
    assert len(list(keyed_parts("def g(v):\n    return v\nx = 1\n"))) == 1


def test_what_is_no_program_or_too_deep_is_one_part() -> None:
    assert list(keyed_parts("not a ( program")) == [((), text_key("not a ( program"))]
    deep = f"def g(a):\n    x = a\n    y = x\n    return {'+'.join(['a'] * 2000)}\n"
    parts = list(keyed_parts(deep))
    assert parts[0][1] == text_key(deep) and len(parts) == 1
