"""Batched products whose rows have the same bits whatever else is computed with them, on the machines where a trial shows it
(rlvr_exp.rollouts.exactness):

- a product has at least `ROWS` rows, below which libraries compute in another order;
- a sum goes over at most `EXACT` columns at once, where columns of zeros change nothing; a longer one is made part by part.
"""

import numpy as np
import torch
from torch.nn.functional import pad

EXACT = 192
"""Columns up to which zeros behind them change no bit of a product."""
ROWS = 4
"""The fewest rows of a product whose bits do not depend on their number."""


class Places:
    """Where tokens stand among owners with room for `many` each; a place that holds none stands for the first token.

    Args:
        place: (tokens,) of each, owner by owner.
    """

    def __init__(self, place: np.ndarray, owners: int, many: int):
        self.owners, self.many = owners, many
        self._place, self._token = place, np.zeros(owners * many, dtype=np.int64)
        self._token[place] = np.arange(len(place))
        self._indices: dict[tuple[int, torch.device], tuple[torch.Tensor, torch.Tensor]] = {}

    @property
    def trivial(self) -> bool:
        """Whether each owner has the token of its own number."""
        return (
            self.many == 1
            and len(self._place) == len(self._token)
            and bool((self._token == np.arange(len(self._token))).all())
        )

    def indices(self, heads: int, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
        """(owners * heads * many,) which of tokens * heads each is; and (tokens * heads,) the way back."""
        found = self._indices.get((heads, device))
        if found is None:
            head = np.arange(heads)
            out = self._token.reshape(self.owners, 1, self.many) * heads + head[:, None]
            back = (self._place // self.many * heads * self.many + self._place % self.many)[:, None] + head * self.many
            both = (torch.from_numpy(x.reshape(-1)).to(device, non_blocking=True) for x in (out, back))
            found = self._indices[heads, device] = tuple(both)
        return found


def times(x: torch.Tensor, places: Places | None, right: torch.Tensor) -> torch.Tensor:
    """Each token's x (tokens, query heads, inner) times its owner's `right` (owners, heads, inner, columns); without places the
    token's own. Query heads that share their keys are further rows of a single head's product: keys are read once, not
    repeated. The sum over `inner` is one."""
    heads, inner = right.shape[1:3]
    shared = x.shape[1] // heads
    parts = x.reshape(-1, shared, inner) if x.is_contiguous() else x.unflatten(1, (heads, shared)).flatten(0, 1)
    if places is not None:
        out, back = places.indices(heads, x.device)
        parts = parts.index_select(0, out).view(len(right) * heads, places.many * shared, inner)
    found = _product(parts, right.flatten(0, 1))
    if places is not None:
        found = found.reshape(-1, shared, found.shape[-1]).index_select(0, back)
    return found.reshape(*x.shape[:2], -1)


def weighed(chances: torch.Tensor, places: Places | None, values: torch.Tensor) -> torch.Tensor:
    """Each token's `chances` (tokens, query heads, columns) times its owner's `values` (owners, heads, columns, dimension); see
    `times`. Summed in parts of EXACT columns on CPU."""
    part = EXACT if values.device.type == "cpu" else values.shape[2]
    cuts = [slice(start, start + part) for start in range(0, values.shape[2], part)]
    total = times(chances[..., cuts[0]], places, values[:, :, cuts[0]])
    for cut in cuts[1:]:
        total = total + times(chances[..., cut], places, values[:, :, cut])
    return total


def _product(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """(batch, rows, columns) of (batch, rows, inner) and (batch, inner, columns)"""
    rows = left.shape[1]
    if rows >= ROWS:
        return torch.bmm(left, right)
    return torch.bmm(pad(left, (0, 0, 0, ROWS - rows)), right)[:, :rows]
