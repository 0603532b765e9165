"""Cells of values: thirteen of a kind among which none stands out, so that being asked about all tells nothing.

An object whose comparing the solution wrote is told what it is compared with, and could hand that out at the next
call. So it is asked about a whole cell in an order of chance; the cell is the same whichever of its members is the one
that the suite named. `shifted(value, step)` walks through a cell; `SIZE` steps come round. Pure; standard library only.
"""

import string
from typing import Any

SIZE = 13
_DEPTH = 6
_RING = string.ascii_letters + string.digits + " _-"
_KNOWN = {char: at for at, char in enumerate(_RING)}
_STRIDE = len(_RING) // SIZE


def _classes() -> list[tuple[int, int]]:
    """(start, stride) of ranges of `SIZE` strides each, strides prime, up to beyond what digits of a float make."""
    found, start = [], 0
    for stride in (1, 17, 239, 3343, 46807, 655321, 9174461, 128442481, 1798194749, 25174726487, 352446170819):
        found.append((start, stride))
        start += SIZE * stride
    while start < 10**40:
        stride = start | 1
        while not all(stride % small for small in (3, 5, 7, 11, 13)):
            stride += 2
        found.append((start, stride))
        start += SIZE * stride
    return found


_CLASSES = _classes()


def cell(value: Any) -> list[Any]:
    """`value` first, then the others of its cell; alone where its kind has no cells."""
    others = [shifted(value, step) for step in range(1, SIZE)]
    return [value, *(other for other in others if other != value)]


def shifted(value: Any, step: int, depth: int = _DEPTH) -> Any:
    """The member `step` further on in the cell of a plain value: of a container, all members move."""
    kind = type(value)
    if kind is int:
        return _number(value, step)
    if kind is float:
        return _real(value, step)
    if kind is complex:
        return complex(_real(value.real, step), _real(value.imag, step))
    if kind is str:
        return "".join(_letter(char, step) for char in value)
    if kind is bytes:
        return bytes(ord(_letter(chr(byte), step)) for byte in value)
    if depth == 0:
        return value
    if kind is dict:
        return {key: shifted(part, step, depth - 1) for key, part in value.items()}
    if kind in (list, tuple, set, frozenset):
        return kind(shifted(part, step, depth - 1) for part in value)
    return value


def _number(value: int, step: int) -> int:
    if value < 0:
        return -1 - _number(-1 - value, step)
    size = value
    start, stride = next((one for one in reversed(_CLASSES) if one[0] <= size))
    place, rest = divmod(size - start, stride)
    if place >= SIZE:  # beyond all classes
        return value + step
    return start + (place + step) % SIZE * stride + rest


def _real(value: float, step: int) -> float:
    """By its digits, the point where it was."""
    if value != value or value in (float("inf"), float("-inf")):
        return value
    digits, _, power = repr(value).partition("e")
    whole, _, part = digits.partition(".")
    part = "" if part == "0" else part
    moved = _number(int(whole + part), step)
    sign = "-" if digits.startswith("-") and moved == 0 else ""
    return float(f"{sign}{moved}e{int(power or 0) - len(part)}")


def _letter(char: str, step: int) -> str:
    at = _KNOWN.get(char)
    return char if at is None else _RING[(at + step * _STRIDE) % len(_RING)]
