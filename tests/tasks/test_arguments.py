"""Arguments that a function is made for: by known calls, by annotations, by neither."""

import pytest

from rlvr_exp.tasks.arguments import Arguments
from rlvr_exp.tasks.calls import literal_calls
from rlvr_exp.tasks.python_syntax import exceptions, tree

KNOWN = [([1, 2], "a"), ([], "b"), ([0], None)]


@pytest.mark.parametrize(
    ("args", "fits"),
    [
        (([5],), True),
        (([5], None), True),
        (((5,), "a"), False),
        (([True], "a"), False),
        (([1.0], "a"), False),
        (([[1]], "a"), False),
        (([-1], "a"), True),
        (([1], b"a"), False),
        (([1], "a", 7), True),
    ],
)
def test_types_are_those_of_known_calls(args: tuple, fits: bool) -> None:
    assert Arguments(KNOWN, "f", "def f(*args): pass").take(args) == fits


@pytest.mark.parametrize(
    ("annotation", "value", "fits"),
    [
        ("int", 1, True),
        ("int", True, False),
        ("float", 1, True),
        ("int", 1.0, False),
        ("list[int]", [1], True),
        ("List[int]", (1,), False),
        ("'list[str]'", [1], False),
        ("typing.Optional[str]", None, True),
        ("str | None", 1, False),
        ("Union[int, str]", "a", True),
        ("dict[str, list[int]]", {"a": [1]}, True),
        ("dict[str, list[int]]", {"a": ["b"]}, False),
        ("tuple[int, ...]", (1, 2), True),
        ("Sequence[int]", (1, 2), True),
        ("Sequence[int]", {1, 2}, False),
        ("T", {1}, True),
        ("list[T]", [{1}], True),
        ("int | T", "a", True),
    ],
)
def test_types_are_those_of_annotations(annotation: str, value: object, fits: bool) -> None:
    assert Arguments((), "f", f"def f(x: {annotation}): pass").take((value,)) == fits


@pytest.mark.parametrize(
    ("calls", "fits"), [([1, 2], True), ([1, 2, 3], False), ([1, 2, -3], True), ([1, -2.5, 3], True)]
)
def test_arguments_that_never_are_negative_stay_so(calls: list, fits: bool) -> None:
    assert Arguments([(one,) for one in calls], "f", "def f(x: int): pass").take((-3,)) == fits


def test_calls_are_read_from_a_test_file() -> None:
    source = "from solution import f\ndef test():\n    assert f(1, [2]) == 3\n    assert f(x) == g(1)\n    f(y=2)\n    h(f('a'))\n"
    assert list(literal_calls(source, "f")) == [(1, [2]), ("a",)] and list(literal_calls("def (", "f")) == []


@pytest.mark.parametrize(
    ("statement", "names"),
    [
        ("raise KeyError(1)", {"KeyError"}),
        ("raise errors.Own from None", {"Own"}),
        ("class Own(ValueError): pass\nraise Own", {"Own", "ValueError"}),
        ("assert x", {"AssertionError"}),
        ("raise", {"*"}),
        ("raise found[0]", {"*"}),
        ("int('a')", set()),
    ],
)
def test_exceptions_are_those_that_statements_name(statement: str, names: set) -> None:
    assert exceptions(tree(statement)) == names
