"""A process that adds solutions to a store and prints each batch once it is committed: PATH NAME FIRST BATCH BATCHES PER_TASK.
Others write, read or kill it meanwhile."""

import sys
from pathlib import Path

from solution_samples import solution

from rlvr_exp.solutions.store import Keeping, SolutionStore

if __name__ == "__main__":
    path, name, *numbers = sys.argv[1:]
    first, batch, batches, per_task = map(int, numbers)
    with SolutionStore(Path(path), Keeping(per_task)) as store:
        for start in range(first, first + batch * batches, batch):
            store.add_many(
                solution(f"t{n % 7}", n, outputs=(n, n % 3), run=name, step=start) for n in range(start, start + batch)
            )
            print(start, flush=True)
