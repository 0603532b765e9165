"""The reward for short code measures the code alone."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from verified_samples import WRONG, passed

from rlvr_exp.episodes.types import TokenCount
from rlvr_exp.rewards.code_length import CodeLength, length
from rlvr_exp.tasks.base import Candidate
from rlvr_exp.tasks.formats.dafny import DafnyProblem

LINES = st.lists(st.tuples(st.sampled_from(["x", "long_name", "y1"]), st.integers(0, 10**6)), min_size=1, max_size=6)
PROSE = st.text("ab #/*\n", max_size=30).map(lambda text: re.sub(r"\*+/", "", text))
TERM = CodeLength(1.0, 100)


def answered(code: str, around: str = "", tokens: int = 10, problem=None):
    task = replace(passed().task, problem=problem)
    text, sampled = around + code, TokenCount(tokens, False)
    return replace(passed(), task=task, text=text, candidate=Candidate(code), sampled=sampled)


def python(lines, comments=()) -> str:
    return "".join(f"{name} = {value}\n" for name, value in lines) + "".join(
        f"# {one}\n\n" for text in comments for one in text.splitlines()
    )


def dafny(lines, comments=()) -> str:
    body = "".join(f"  {name} := {value};\n" for name, value in lines)
    return body + "".join(f"/* {text} */\n" if text.count("/*") == 0 else "// gone\n" for text in comments)


WRITERS = [(python, None), (dafny, DafnyProblem("method m() {}"))]


@pytest.mark.property(16)
@pytest.mark.parametrize(("write", "problem"), WRITERS, ids=["python", "dafny"])
@given(LINES, LINES, st.lists(PROSE, max_size=2), st.lists(PROSE, max_size=2), PROSE, st.integers(1, 10_000))
def test_the_longer_code_never_earns_more(write, problem, one, other, comments, more, around, tokens):
    first = answered(write(one, comments), around, tokens, problem)
    second = answered(write(other, more), problem=problem)
    bare = [len("".join(write(lines).split())) for lines in (one, other)]
    assert [length(first), length(second)] == bare
    assert (TERM(first) > TERM(second)) == (bare[0] < bare[1]) and (TERM(first) == TERM(second)) == (bare[0] == bare[1])


@given(WRONG)
def test_it_pays_correct_answers_only(wrong):
    assert TERM(wrong) == 0.0


def test_its_value_is_one_half_just_below_its_scale_and_for_what_is_no_python_blanks_are_left_out():
    assert TERM(answered("x" * 99)) == 0.5
    assert length(answered("'''never  closed")) == len("'''neverclosed")
    assert length(answered('{"pattern": "a  b"}')) == len('{"pattern":"a  b"}')
