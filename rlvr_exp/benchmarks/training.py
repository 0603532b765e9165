"""`benchmark=training`: rollouts, verdicts, updates and full steps a second, paired with a plain `trl.GRPOTrainer`.

Both sides train the same model on the same tasks with the same verifier, reward, batch, seed, lengths and optimizer, in
turns of a few steps from the same weights; each is first in every other round. Stock runs with the number of threads at
which its own step is faster. Before anything is timed both losses take the same rollouts: sides whose gradients differ
are not compared.
"""

import torch

from rlvr_exp.benchmarks.arithmetic import matrix_flops
from rlvr_exp.benchmarks.bench import Bench, Sides, merge_laps
from rlvr_exp.benchmarks.clock import Lap
from rlvr_exp.benchmarks.contest import Progress
from rlvr_exp.benchmarks.training_table import Pairs
from rlvr_exp.config import benchmark as options
from rlvr_exp.core.errors import GuardStop
from rlvr_exp.sandbox.pool.cpu_budget import usable

ALIKE = 1e-4
"""Norm of the gradients' difference over that of stock's, up to which the sides compute the same."""
ALIKE_IN_16_BITS = 0.03
"""The same for weights of 16 bits, which round each side's arithmetic in its own order."""
LONG = 20.0
"""Seconds. If a step of stock takes longer, the one-time work of its first step is negligible."""


class Training(options.Training):
    def measure(self, bench: Bench, progress: Progress) -> Pairs:
        """Both sides, timed.

        Raises:
            GuardStop: their gradients differ on the same rollouts.
        """
        sides, own = Sides(bench), torch.get_num_threads()
        try:
            apart = difference(*sides.gradients(own))
            allowed = ALIKE if bench.policy.model.dtype.itemsize > 2 else ALIKE_IN_16_BITS
            if apart > allowed:
                raise GuardStop(
                    f"gradients of this trainer and of trl.GRPOTrainer differ by {apart:.2g} of their norm on the same rollouts, "
                    f"allowed {allowed:g}: what they compute is not the same, and their speed is not compared"
                )
            threads, warm = self._fastest(sides, own, progress)
            rounds, limits = [], []
            for number in range(self.rounds):
                torch.set_num_threads(own)
                limits.append(matrix_flops())
                rounds.append(self._round(sides, number, own, threads, warm, progress))
        finally:
            torch.set_num_threads(own)
        return Pairs(tuple(rounds), apart, own, threads, tuple(limits))

    def _fastest(self, sides: Sides, own: int, progress: Progress) -> tuple[int, int]:
        """Return the number of threads with which stock is faster, and the number of warm-up steps in a turn.

        If a step on all threads is long, one thread is not tried and turns have no warm-up steps.
        """
        progress("warm up", 0, 2)
        _, places = sides.ours(1, own)
        if sides.stock(places, 1, usable())[-1].total > LONG:
            return usable(), 0
        seconds = {}
        for threads in sorted({1, usable()}):
            progress("warm up", 1, 2)
            _, places = sides.ours(2, own)
            seconds[threads] = sides.stock(places, 2, threads)[-1].total
        return min(seconds, key=seconds.__getitem__), 1

    def _round(
        self, sides: Sides, number: int, own: int, threads: int, warm: int, progress: Progress
    ) -> tuple[Lap, Lap]:
        """(ours, stock's) of one round. The first `warm` steps of a turn are not counted."""
        steps, turns = warm + self.steps, 2 * self.rounds
        places = sides.next_tasks(steps)
        laps: dict[str, list[Lap]] = {}
        for turn, side in enumerate(("ours", "stock") if number % 2 == 0 else ("stock", "ours")):
            progress("turn", 2 * number + turn, turns)
            laps[side] = sides.ours(steps, own)[0] if side == "ours" else sides.stock(places, steps, threads)
        return merge_laps(laps["ours"][warm:]), merge_laps(laps["stock"][warm:])


def difference(ours: torch.Tensor, theirs: torch.Tensor) -> float:
    """||ours - theirs|| / ||theirs||; infinite where there is nothing to compare."""
    if ours.shape != theirs.shape or theirs.norm() == 0:
        return float("inf")
    return float((ours - theirs).norm() / theirs.norm())
