import pytest
from arc_samples import grids
from hypothesis import given
from hypothesis import strategies as st

from rlvr_exp.core.errors import InputError
from rlvr_exp.domains.arc.puzzle import STYLES, from_lists, from_text, to_lists, to_text

WIDE = (tuple(n % 10 for n in range(93)),)


@pytest.mark.property(2)
@pytest.mark.parametrize("style", STYLES)
@given(grids(12))
def test_a_grid_survives_its_text(style: str, grid: tuple) -> None:
    assert from_text(to_text(grid, style), style) == grid


@pytest.mark.property(2)
@pytest.mark.parametrize("style", STYLES)
@given(text=st.text(st.sampled_from("0123456789 ,[]\n²"), max_size=30))
def test_a_text_that_is_read_survives_its_grid(style: str, text: str) -> None:
    try:
        grid = from_text(text, style)
    except InputError:
        return
    assert to_text(grid, style) == text


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("grid", [((7,),), WIDE, tuple(zip(*WIDE, strict=True)), ((0,) * 30,) * 30])
def test_extreme_sizes(style: str, grid: tuple) -> None:
    assert from_text(to_text(grid, style), style) == grid


def test_the_styles_look_as_documented() -> None:
    assert [to_text(((1, 2), (3, 0)), style) for style in STYLES] == ["12\n30", "1 2\n3 0", "[[1,2],[3,0]]"]


@pytest.mark.parametrize(
    ("style", "text"),
    [
        ("compact", ""),
        ("compact", "12\n3"),
        ("compact", "12\n"),
        ("compact", "1a"),
        ("compact", "1²"),
        ("spaced", "12"),
        ("spaced", "1  2"),
        ("spaced", "1 2 "),
        ("spaced", "10 2"),
        ("json", "[[1, 2]]"),
        ("json", "[[10]]"),
        ("json", "[[1]"),
        ("json", "[" * 100000),
    ],
)
def test_text_that_is_no_grid_is_refused(style: str, text: str) -> None:
    with pytest.raises(InputError):
        from_text(text, style)


@pytest.mark.parametrize(
    ("value", "where"),
    [
        (None, "f"),
        ([], "f"),
        ("12", "f"),
        ([[]], r"f\[0\]"),
        ([[1], 2], r"f\[1\]"),
        ([[1, 2], [3]], r"f\[1\]"),
        ([[10]], r"f\[0\]"),
        ([[-1]], r"f\[0\]"),
        ([[True]], r"f\[0\]"),
        ([[1.0]], r"f\[0\]"),
        ([[None]], r"f\[0\]"),
        ([[0, "1"]], r"f\[0\]"),
    ],
)
def test_values_that_are_no_grid_are_named(value: object, where: str) -> None:
    with pytest.raises(InputError, match=f"^{where}: "):
        from_lists(value, "f")


@given(grids())
def test_lists_and_back(grid: tuple) -> None:
    assert from_lists(to_lists(grid), "f") == grid


def test_a_number_of_too_many_digits_is_told_by_its_kind() -> None:
    with pytest.raises(InputError, match="not a colour\n    got: int"):
        from_lists([[10**5000]], "grid")
