"""Names that a scope of a program binds."""

import ast

import pytest

from rlvr_exp.tasks.python_syntax import bound_names


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a = b", "a"),
        ("a, (b, *c) = d", "abc"),
        ("del a", "a"),
        ("for a in b: c += 1", "ac"),
        ("with a as b: pass", "b"),
        ("import a.x, y as b\nfrom c import d", "abd"),
        ("def a(b): c = 1", "a"),
        ("class a: b = 1", "a"),
        ("if x:\n    def a(): b = 1", "a"),
        ("try: pass\nexcept E as a: pass", "a"),
        ("match x:\n    case [a, *b]: pass\n    case {1: c, **d}: pass\n    case e: pass", "abcde"),
        ("x[(a := 1)]", "a"),
        ("[b for b in c if (a := b)]", "a"),
        ("lambda a: (b := 1)", ""),
    ],
)
def test_names_that_a_module_binds(text: str, names: str) -> None:
    assert set(bound_names([ast.parse(text)])) == set(names)


def test_global_names_keep_theirs_and_nonlocal_ones_are_bound_elsewhere() -> None:
    (function,) = ast.parse("def f():\n    global a\n    nonlocal b\n    a = b = c = 1").body
    assert isinstance(function, ast.FunctionDef) and bound_names(function.body) == {"a": "a", "c": ""}
