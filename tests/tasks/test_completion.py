"""Parsing a complete program from a completion: code is never cut, words around it are."""

import pytest

from rlvr_exp.tasks.completion import syntax_fault, whole_program

PROGRAM = "import sys\n\n\ndef main():\n    print('x')\n\n\nif __name__ == '__main__':\n    main()\n"
CALLS = "def f():\n    return 1\n\n\nf()\n'text'\n"
INNER = 'def page():\n    """Shows:\n\n```python\npage()\n```\n    """\n    return 1\n'


@pytest.mark.parametrize("program", [PROGRAM, CALLS, INNER, "x = 1", "class A:\n    pass\n\n\nA()\n"])
@pytest.mark.parametrize(
    "wrapping",
    ["{}", "```python\n{}\n```", "Here it is:\n\n```\n{}\n```\nIt works because it does.", "```py\n{}"],
)
def test_a_program_comes_back_whole(program: str, wrapping: str) -> None:
    found = whole_program(wrapping.format(program)).text
    assert found is not None and found.strip() == program.strip()


def test_the_last_block_that_defines_something_is_taken() -> None:
    first, use = "First:\n```python\ndef f():\n    return 0\n```\n", "Use it:\n```python\nf()\n```\n"
    text = f"{first}Better:\n```python\n{CALLS}```\n{use}"
    assert whole_program(text).text == CALLS


@pytest.mark.parametrize(
    "before",
    [
        "## Plan\n\n```text\n1. add\n```\n\n## Solution\n\n",
        "```bash\npip install numpy scipy\n```\n### Code\n",
        "```\nIt prints: 3 4\n```\nSolution\n\n",
        "```text\nnever closed\n",
    ],
)
def test_headings_between_blocks_are_no_program(before: str) -> None:
    assert whole_program(f"{before}```python\n{CALLS}```\n").text == CALLS


def test_the_block_with_what_is_asked_for_is_taken_before_a_later_one() -> None:
    tests = "import unittest\n\n\nclass T(unittest.TestCase):\n    def test_f(self):\n        assert f() == 1\n"
    text = f"```python\n{CALLS}```\nSome tests:\n```python\n{tests}```\n"
    assert whole_program(text, "f").text == CALLS and whole_program(text).text == tests
    assert whole_program(text, "g").text == tests, "where none defines it, the last that defines something"


def test_words_around_bare_code_are_dropped_and_calls_kept() -> None:
    assert whole_program(f"Sure, here is the code:\n{PROGRAM}\nHope this helps!").text == PROGRAM


@pytest.mark.parametrize(
    "text", ["", "  \n", "```python\ndef f(:\n```", "```python\ndef f():\n    return (1,\n", "no code at all, sorry"]
)
def test_what_is_no_program_is_a_fault(text: str) -> None:
    found = whole_program(text)
    assert found.text is None and found.fault


def test_many_fence_marks_take_no_time() -> None:
    assert whole_program("```\n(\n" * 5000 + "```python\nx = 1\n```").text == "x = 1\n"


def test_line_ends_of_any_kind_are_one() -> None:
    found = whole_program("def f():\r\n\treturn 1\r\n").text
    assert found == "def f():\n\treturn 1\n" and syntax_fault(found) is None
