"""Programs formatted for a reader: the same program, or none; never verified."""

import ast
import dataclasses
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from input_rows import puzzle
from thinning import tries

from rlvr_exp.config.needs import formatter_missing
from rlvr_exp.config.stage_options import Infer
from rlvr_exp.core.errors import InputError
from rlvr_exp.domains.dafny.problem import DafnyProblem
from rlvr_exp.domains.edits.action import parse_action
from rlvr_exp.domains.edits.problem import AstGrepProblem
from rlvr_exp.inference import load
from rlvr_exp.tasks.base import Candidate
from rlvr_exp.tasks.formats.pytest_suite import PytestProblem
from rlvr_exp.tasks.formats.rows import laid_out

MODULE = PytestProblem("def test_nothing(): pass")
EDIT = AstGrepProblem("python", "print(a)\n", "log(a)\n")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("def f( x ):\n  return [ x,1 ]", "def f(x):\n    return [x, 1]\n"),
        ("x = 'a'; y = {1:2}\n", 'x = "a"\ny = {1: 2}\n'),
        ("", ""),
    ],
)
def test_python_is_laid_out(text, wanted):
    assert laid_out(MODULE, Candidate(text)) == wanted


@pytest.mark.parametrize(
    "text",
    [
        'def f():\n    """  first  \n      second """\n    return f.__doc__\n',  # Its blanks would be moved.
        "def f(:\n",
        "x = '\ud800'\n",
    ],
    ids=["docstring", "no Python", "no text"],
)
def test_what_would_be_another_program_is_not_laid_out(text):
    assert laid_out(MODULE, Candidate(text)) is None


NAMES = st.sampled_from(["g", "row", "x"])
EXPRESSIONS = st.recursive(
    st.one_of(NAMES, st.integers(0, 99).map(str), st.text("ab'\"\\\n#", max_size=5).map(repr)),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda two: f"({two[0]}  +{two[1]})"),
        st.lists(inner, max_size=3).map(lambda some: f"[{' ,'.join(some)}]"),
        inner.map(lambda one: f"( lambda x :{one} )"),
        st.tuples(NAMES, inner).map(lambda two: f"[{two[0]} for {two[0]} in {two[1]}]"),
    ),
    max_leaves=8,
)


@settings(max_examples=tries(15), deadline=None)
@given(EXPRESSIONS)
def test_a_layout_has_the_same_syntax_tree(expression):
    text = f"def solve(g) :\n  # why\n  return {expression}"
    found = laid_out(MODULE, Candidate(text))
    assert found is not None and ast.dump(ast.parse(found)) == ast.dump(ast.parse(text)) and "# why" in found


def test_an_action_is_indented_and_stays_the_same_action():
    text = '{"pattern":"print($X)","rewrite":"log($X)"}'
    found = laid_out(EDIT, Candidate(text))
    assert found.count("\n") == 4 and json.loads(found) == json.loads(text)
    assert parse_action(found, "python") == parse_action(text, "python")
    assert laid_out(EDIT, Candidate("pattern: print($X)\nrewrite: log($X)\n")) is None, "YAML stays as it is"


def test_what_has_no_formatter_or_no_program_has_no_layout():
    assert laid_out(DafnyProblem("method M() { }"), Candidate("method M() { }")) is None
    assert laid_out(MODULE, Candidate(None, "no program")) is None


def test_what_is_judged_stays_as_it_was_written():
    plain, shown = (load("", Infer(format=asked)).solve(puzzle("a")) for asked in (False, True))
    assert dataclasses.replace(shown, formatted=None) == plain and plain.row()["formatted"] is None
    assert ast.dump(ast.parse(shown.formatted)) == ast.dump(ast.parse(shown.program))
    assert shown.row()["formatted"] == shown.formatted


def test_without_the_formatter_it_is_refused(monkeypatch):
    monkeypatch.setattr("rlvr_exp.config.needs.find_spec", lambda name: None)
    (need,) = formatter_missing(Infer(format=True))
    assert need.problem.where == "infer.format" and need.command == "pip install ruff"
    assert list(formatter_missing(Infer())) == []
    with pytest.raises(InputError, match="ruff is not installed"):
        load("", Infer(format=True))
