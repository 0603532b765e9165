"""Every task equally often, in an order shuffled for each epoch. A function of the position in the run: no state."""

from collections.abc import Sequence

from rlvr_exp.config import curriculum as options
from rlvr_exp.core.seeds import stream
from rlvr_exp.curriculum.base import Curriculum
from rlvr_exp.tasks.base import Task


class Uniform(Curriculum, options.Uniform):
    """Epochs of seeded permutations, laid end to end."""

    def __init__(self, tasks: Sequence[Task], seed: int):
        if not tasks:
            raise ValueError("Uniform: no tasks to choose from")
        self._tasks = tasks
        self._seed = seed
        self._orders: dict[int, list[int]] = {}

    def pick(self, offset: int, count: int) -> list[Task]:
        return [self._tasks[self._place(index)] for index in range(offset, offset + count)]

    def _place(self, index: int) -> int:
        epoch, offset = divmod(index, len(self._tasks))
        return self._order(epoch)[offset]

    def _order(self, epoch: int) -> list[int]:
        if epoch not in self._orders:
            order = list(range(len(self._tasks)))
            stream(self._seed, "curriculum", epoch).shuffle(order)
            # A pick may cross from one epoch into the next: the two newest are enough.
            self._orders = dict([*self._orders.items(), (epoch, order)][-2:])
        return self._orders[epoch]
