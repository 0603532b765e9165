"""A function read from a completion: in a fence or bare, among words, with the line of its fault."""

import ast
import textwrap
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvr_exp.tasks.completion import extract
from rlvr_exp.tasks.python_syntax import syntax_fault

PROGRAM = "def solve(g):\n    return [r[::-1] for r in g]\n"
HELPED = "import math\nN = 3\n\n\ndef flip(r):\n    # turn\n    return r[::-1]\n\n\n" + PROGRAM
CHATTER = [
    "",
    "Sure! Here is the rule.\n\n",
    "from what I see, rows mirror:\n",
    "Done\n",
    "P\n",
    "I\n12\n30\nO\n21\n03\n",
]
LINES = [
    "x = 1",
    "if x:",
    "    y = (2",
    "    return 3",
    "for r in g:",
    "        pass",
    ")",
    "'''",
    "else:",
    "def solve(g):",
]


def fenced(code: str, language: str = "python") -> str:
    return f"```{language}\n{code}```\n"


@pytest.mark.property(28)
@given(st.lists(st.sampled_from(LINES), max_size=8))
def test_a_fenced_answer_is_taken_iff_python_reads_it(lines: list[str]) -> None:
    code = "\n".join(["def solve(g):", "    x = 0", *lines]) + "\n"
    found = extract(f"Well.\n{fenced(code)}", "solve")
    try:
        ast.parse(code)
    except SyntaxError as error:
        # Words after a program, outside any function, are cut; the rest must be a program.
        if found.text is not None:
            assert code.startswith(found.text.rstrip("\n")) and not lines[error.lineno - 3][:1].isspace()
    else:
        assert found.text is not None
    assert (found.text is None) != (found.fault == "")
    if found.text is not None:
        assert syntax_fault(found.text) is None
        assert any(isinstance(node, ast.FunctionDef) and node.name == "solve" for node in ast.parse(found.text).body)


@pytest.mark.property(28)
@given(st.text(st.sampled_from("def solve(g):\n rtun=[`'\"\\#\x00\t1\r\f")), st.booleans())
def test_any_text_gives_a_program_or_a_fault(text: str, prefixed: bool) -> None:
    found = extract("def solve(g):\n" * prefixed + text, "solve")
    assert (found.text is None) != (found.fault == "")
    assert found.text is None or syntax_fault(found.text) is None


@pytest.mark.property(28)
@pytest.mark.parametrize("code", [PROGRAM, HELPED])
@given(
    st.sampled_from(CHATTER),
    st.sampled_from(CHATTER),
    st.sampled_from(["bare", "fence", "open", "tilted", "crlf", "cr"]),
)
def test_words_around_a_program_change_nothing(code: str, before: str, after: str, shape: str) -> None:
    shaped = {
        "bare": code + after,
        "fence": fenced(code) + after,
        "open": f"```python\n{code}",
        "tilted": textwrap.indent(fenced(code), "   ") + after,
        "crlf": fenced(code, "").replace("\n", "\r\n") + after,
        "cr": (code + after).replace("\n", "\r"),
    }
    assert extract(before + shaped[shape], "solve").text == code


def test_the_last_fence_with_the_function_counts() -> None:
    draft = "def solve(g):\n    return g\n"
    assert (
        extract(fenced(draft) + "Better:\n" + fenced(PROGRAM) + "Try it:\n" + fenced("print(1)\n"), "solve").text
        == PROGRAM
    )


def test_a_program_beside_a_fence_without_one_is_found() -> None:
    assert extract(fenced("12\n30\n", "") + PROGRAM, "solve").text == PROGRAM


def test_calls_and_words_after_the_program_are_cut_comments_inside_stay() -> None:
    assert extract(fenced(HELPED + "\n# try it\nprint(solve([[1]]))\n"), "solve").text == HELPED


@pytest.mark.parametrize(
    ("completion", "fault"),
    [
        ("", "no function solve at top level"),
        ("I cannot find the rule.", "line 1: invalid syntax"),
        (fenced("def answer(g):\n    return g\n"), "no function solve at top level"),
        (fenced("class A:\n    def solve(g):\n        return g\n"), "no function solve at top level"),
        (fenced("async def solve(g):\n    return g\n"), "no function solve at top level"),
        ("Well.\n\n" + fenced("def solve(g):\n    x = 1\n    return (g\n"), "line 6: '(' was never closed"),
        ("def solve(g):\n    return [r for r in", "line 2: '[' was never closed"),
        ("def solve(g):\n", "line 1: expected an indented block after function definition on line 1"),
        ("def solve(g):\n  if g:\n    return 1\n   return 2", "line 4: unindent does not match"),
        ("def solve(g):\n    return " + "(" * 500, "line 2: too many nested parentheses"),
        ("def solve(g):\n    return " + "-" * 200000 + "1", "too deep"),
        ("def solve(g):\n    return '\x00'", "null"),
    ],
)
def test_faults_name_their_line(completion: str, fault: str) -> None:
    found = extract(completion, "solve")
    assert found.text is None
    assert fault in found.fault


def test_a_cut_off_function_is_no_program() -> None:
    for end in range(len(PROGRAM) - len("    return [r[::-1] for r in g]\n") - 1, len(PROGRAM) - 2):
        found = extract(PROGRAM[:end], "solve")
        assert found.text is None or found.text == PROGRAM[:end] + "\n", found


def test_odd_escapes_give_no_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert extract("def solve(g):\n    return '\\d'\n", "solve").text is not None


def test_many_wrong_lines_take_little_time() -> None:
    assert extract("def solve(g):\n    return g\n" + "some words\n" * 3000, "solve").text is not None
    assert extract("x = 1\nimport a\n" * 2000 + "((", "solve").text is None
