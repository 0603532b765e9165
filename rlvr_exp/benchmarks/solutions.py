"""`benchmark=solutions`: solutions that the store writes and finds per second, in a file on this disk.

The programs differ by a constant and are spread over tasks until each task is full.
"""

import random
import time
from collections.abc import Callable, Iterator
from itertools import islice

from rlvr_exp.config.schema import Config
from rlvr_exp.records.context import RunContext
from rlvr_exp.solutions.record import Solution, output_hash
from rlvr_exp.solutions.store import BATCH, Keeping, Query, SolutionStore
from rlvr_exp.verifiers.base import Verdict

PER_TASK, SINGLE, LOOKUPS, PAIRS = 50, 200, 2000, 4
"""Solutions of a full task, of a transaction each, look-ups of a kind, and pairs of a task."""
PROGRAM = "def solve(g):\n    h, w = len(g), len(g[0])\n    return [[(g[r][c] + {}) % 10 for c in range(w)] for r in range(h)]"
"""About as long as the programs of the embedded model."""


def measure(config: Config, context: RunContext) -> tuple[str, dict[str, float]]:
    """Rates a second, and the size of the file."""
    rows = config.benchmark.rows
    path = context.directory / "solutions.sqlite"
    draw, best = random.Random(0), ("correct", "pairs_right", "size")
    with SolutionStore(path, Keeping(PER_TASK)) as store:
        stream = synthetic_solutions(rows)
        first = list(islice(stream, min(rows, LOOKUPS)))

        def fill() -> None:
            for solutions in (first, stream):
                for added in store.add_all(solutions):
                    context.progress(kind="phase", name="insert", done=min(rows, added.new), total=rows)

        rates = {"insert": _timed(rows, fill)}
        tasks = [f"task {number}" for number in range(-(-rows // PER_TASK))]
        keys = [draw.choice(first).key for _ in range(LOOKUPS)]
        some = [Query(task=draw.choice(tasks), quality=best) for _ in range(LOOKUPS // 4)]
        of_family = Query(family="family 7", correct=True, quality=("size",), limit=10)
        of_all = Query(quality=best, limit=10)
        # New objects, whose hashes are computed as by another process that found the same.
        again = [Solution(one.task, one.program, one.verdict, one.outputs) for one in first]
        works: dict[str, tuple[int, Callable[[], object]]] = {
            "look-up by key": (len(keys), lambda: [store.get(key) for key in keys]),
            "a task's solutions, ranked": (len(some), lambda: [store.find(one) for one in some]),
            "best 10 of a family": (10, lambda: [store.find(of_family) for _ in range(10)]),
            "best 10 of all": (3, lambda: [store.find(of_all) for _ in range(3)]),
            "insert, duplicates": (len(again), lambda: store.add_many(again)),
            "insert, full tasks": (BATCH, lambda: store.add_many(synthetic_solutions(BATCH, "later", len(tasks)))),
            "insert, a commit each": (SINGLE, lambda: [*map(store.add, synthetic_solutions(SINGLE, "single", 1))]),
        }
        rates |= {name: _timed(count, work) for name, (count, work) in works.items()}
        size = sum(one.stat().st_size for one in path.parent.glob(f"{path.name}*"))
        counts = {"rows": float(store.count()), "mb": size / 2**20}
    lines = [f"| {name} | {rate:,.0f} |" for name, rate in rates.items()]
    head = f"{rows:,} solutions of {len(tasks):,} tasks, a commit each {BATCH:,}, {counts['mb']:.0f} MB"
    return "\n".join([head, "", "| | a second |", "| --- | --- |", *lines]), {**rates, **counts}


def synthetic_solutions(count: int, run: str = "first", tasks: int = 0) -> Iterator[Solution]:
    """Solutions that are all different. Tasks take turns."""
    programs = [PROGRAM.format(number) for number in range(200)]
    tasks = tasks or -(-count // PER_TASK)
    for number in range(count):
        right = number % (PAIRS + 1)
        verdict = Verdict("passed", passed=PAIRS, total=PAIRS, seconds=0.01)
        if right < PAIRS:
            verdict = Verdict("failed", "wrong_answer", passed=right, total=PAIRS, seconds=0.01)
        outputs = tuple(output_hash([[pair, number if pair >= right else 0]]) for pair in range(PAIRS))
        program = f"{programs[number % len(programs)]}\nMADE = {run!r}, {number}\n"
        place = number % tasks
        yield Solution(f"task {place}", program, verdict, outputs, f"family {place % 20}", place / tasks, run=run)


def _timed(count: int, work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return count / (time.perf_counter() - start)
