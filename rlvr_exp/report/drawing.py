"""A plot as a file of its own: the same shapes as SVG, which also stands in pages, and as PNG. Knows no statistics."""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from rlvr_exp.core.files import replacing, write_text

INK, SOFT = "#1a1a19", "#8b8a85"
PALETTE = ("#2a78d6", "#eb6834", "#1baf7a", "#eda100", "#4a3aa7", "#d03b3b", "#e87ba4", "#8f7a5e")
"""The first colours of pages; in a page, ink is the page's own."""
SIZE = 12
"""Pixels of a text."""
SCALE = 2
"""Pixels of a PNG for one of the drawing."""
ANCHORS = {"start": "lm", "middle": "mm", "end": "rm"}
Point = tuple[float, float]


@dataclass(frozen=True)
class Line:
    points: tuple[Point, ...]
    color: str = INK
    width: float = 1.5

    def svg(self) -> str:
        path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in self.points)
        return f'<path d="{path}" fill="none" stroke="{_shown(self.color)}" stroke-width="{self.width:g}"/>'

    def paint(self, canvas: Any) -> None:
        canvas.line([_scaled(point) for point in self.points], self.color, round(self.width * SCALE), joint="curve")


@dataclass(frozen=True)
class Dot:
    at: Point
    color: str = INK
    radius: float = 4.0

    def svg(self) -> str:
        x, y = self.at
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{self.radius:g}" fill="{_shown(self.color)}"/>'

    def paint(self, canvas: Any) -> None:
        (x, y), r = _scaled(self.at), self.radius * SCALE
        canvas.ellipse((x - r, y - r, x + r, y + r), fill=self.color)


@dataclass(frozen=True)
class Text:
    at: Point
    """Where it begins, has its middle or ends; half its height."""
    text: str
    anchor: str = "start"
    color: str = INK

    def svg(self) -> str:
        x, y = self.at
        place = f'x="{x:.1f}" y="{y + SIZE / 3:.1f}" text-anchor="{self.anchor}" fill="{_shown(self.color)}"'
        return f"<text {place}>{escape(self.text)}</text>"

    def paint(self, canvas: Any) -> None:
        from PIL import ImageFont

        font = ImageFont.load_default(SIZE * SCALE)
        canvas.text(_scaled(self.at), self.text, self.color, font, ANCHORS[self.anchor])


@dataclass(frozen=True)
class Drawing:
    """Shapes from the back to the front, on an area that is as many pixels wide and high."""

    title: str
    width: int
    height: int
    shapes: Sequence[Line | Dot | Text]

    def svg(self) -> str:
        size = f'viewBox="0 0 {self.width} {self.height}" width="{self.width}" height="{self.height}"'
        body = "".join(shape.svg() for shape in self.shapes)
        font = f'font-family="system-ui, sans-serif" font-size="{SIZE}"'
        head = f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escape(self.title)}" {size} {font}>'
        return f"{head}<title>{escape(self.title)}</title>{body}</svg>"

    def png(self) -> bytes:
        from PIL import Image, ImageDraw  # Only where a file is written: the light path stays light.

        image = Image.new("RGB", (self.width * SCALE, self.height * SCALE), "white")
        canvas = ImageDraw.Draw(image)
        for shape in self.shapes:
            shape.paint(canvas)
        written = io.BytesIO()
        image.save(written, "PNG")
        return written.getvalue()

    def write(self, place: Path) -> None:
        """As SVG and as PNG, with these endings behind the name."""
        write_text(place.with_name(f"{place.name}.svg"), self.svg())
        with replacing(place.with_name(f"{place.name}.png")) as temporary:
            temporary.write_bytes(self.png())


def _shown(color: str) -> str:
    return "currentColor" if color == INK else color


def _scaled(point: Point) -> Point:
    return point[0] * SCALE, point[1] * SCALE
