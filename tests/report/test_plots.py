"""Plots as files: the same shapes as SVG and as PNG, with text escaped and every value inside its area."""

import io
import re
import xml.etree.ElementTree as ElementTree

import pytest
from PIL import Image
from report_pages import Page

from rlvr_exp.core.statistics import Estimate
from rlvr_exp.report.charts import line_chart
from rlvr_exp.report.plots import LETTER, PALETTE, SCALE, SIZE, Curve, Dot, Drawing, Line, Text, curves, intervals

ROWS = {"better": Estimate(3.0, 1.0, 5.0), 'a < b & "c"': Estimate(0.0, -2.0, 2.0), "worse": Estimate(-4.0, -6.0, -2.0)}


def pixels(drawing: Drawing) -> Image.Image:
    return Image.open(io.BytesIO(drawing.png())).convert("RGB")


def test_a_png_has_what_the_svg_has() -> None:
    drawing = Drawing(
        "t", 40, 20, [Line(((0, 10), (40, 10)), "#ff0000", 4.0), Dot((30, 10), "#0000ff"), Text((2, 5), "x")]
    )
    image = pixels(drawing)
    assert image.size == (40 * SCALE, 20 * SCALE)
    at = {place: image.getpixel((place[0] * SCALE, place[1] * SCALE)) for place in ((10, 10), (30, 10), (10, 18))}
    assert at == {(10, 10): (255, 0, 0), (30, 10): (0, 0, 255), (10, 18): (255, 255, 255)}
    tree = ElementTree.fromstring(drawing.svg())
    assert [child.tag.rpartition("}")[2] for child in tree] == ["title", "path", "circle", "text"]


def test_rows_are_coloured_by_whether_their_interval_leaves_0_out() -> None:
    drawing = intervals("impact", ROWS, "points")
    dots = [shape for shape in drawing.shapes if isinstance(shape, Dot)]
    assert [dot.color for dot in dots] == [PALETTE[0], "#8b8a85", PALETTE[5]]
    assert dots[0].at[0] > dots[1].at[0] > dots[2].at[0]
    texts = [child.text for child in ElementTree.fromstring(drawing.svg()) if child.tag.endswith("text")]
    assert {'a < b & "c"', "points", "0"} <= set(texts)
    assert len(pixels(drawing).getcolors(1 << 24)) > 3


@pytest.mark.parametrize("log", [False, True])
def test_curves_stay_inside_and_rise_to_the_right(log: bool) -> None:
    points = [(10.0, Estimate(0.2, 0.1, 0.3)), (100.0, Estimate(0.4, 0.3, 0.5)), (1000.0, Estimate(0.5, 0.45, 0.55))]
    drawing = curves("c", [Curve("measured", points), Curve("one", points[:1])], "tasks", "success", log)
    dots = [shape.at for shape in drawing.shapes if isinstance(shape, Dot)][:3]
    assert [x for x, _ in dots] == sorted(x for x, _ in dots) and dots[0][1] > dots[2][1]
    if log:
        assert dots[1][0] - dots[0][0] == pytest.approx(dots[2][0] - dots[1][0])
    numbers = [float(found) for found in re.findall(r'c[xy]="([\d.-]+)"', drawing.svg())]
    assert all(0 <= number <= drawing.width for number in numbers)


def test_a_legend_names_the_curves_with_points_in_rows_that_fit() -> None:
    names = [f"an arm with a long name {number}" for number in range(7)]
    value = Estimate(0.25, 0.2, 0.3)
    drawn = [Curve(name, [(1.0, value), (2.0, value)]) for name in names]
    plot = curves("Success", [*drawn, Curve("without points", [])], "step", "pass_at_1", percent=True)
    texts = {shape.text: shape for shape in plot.shapes if isinstance(shape, Text)}
    assert {*names} < {*texts} and "without points" not in texts and "20%" in texts
    assert all(texts[name].at[0] + LETTER * len(name) <= plot.width for name in names)
    assert all(texts[name].at[1] + SIZE / 2 <= plot.height for name in names)


def test_a_chart_names_no_curve_without_a_number() -> None:
    page = Page(line_chart("Reward", [1, 2], {"a": [1.0, 2.0], "b": [None, None], "c": [2.0, 3.0]}, colors=[4, 5, 6]))
    assert [text for tag, text in page.texts if tag == "li"] == ["a ", "c "]
    assert {named["class"] for tag, named in page.tags if tag == "i" and named["class"] != "hair"} == {"c4", "c6"}
