"""The order in which examples are seen: in passes over all of them."""

from rlvr_exp.core.seeds import Key, stream


class Passes:
    """Passes over a number of things, laid end to end: every pass is a new order, which depends on the key alone."""

    def __init__(self, count: int, *key: Key):
        self._count, self._key = count, key

    def between(self, first: int, last: int) -> list[tuple[int, int]]:
        """(index, pass) at the places from `first` up to before `last`."""
        known = {number: self._order(number) for number in range(first // self._count, -(-last // self._count))}
        return [
            (known[place // self._count][place % self._count], place // self._count) for place in range(first, last)
        ]

    def _order(self, number: int) -> list[int]:
        order = list(range(self._count))
        stream(*self._key, number).shuffle(order)
        return order
