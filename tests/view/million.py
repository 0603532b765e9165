"""The page's questions at the size of a long run: seconds and memory of a command.

    PYTHONPATH=.:tests python tests/view/million.py FOLDER [SAMPLES]

A run of so many synthetic samples, 2,000 in each step, is written into the folder unless it is there. The figures are of
a fresh process: the build of the index, then the answers that the page waits for. Seconds are of the processor.
"""

import json
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from completions import completion

from rlvr_exp.records.rollout_files import RolloutRow, write_rollouts
from rlvr_exp.view import queries
from rlvr_exp.view.index import Index
from rlvr_exp.view.queries import Filter

STEP, GROUP = 2000, 8
VOCABULARY = [
    *"for in range len return if else x y total items sorted data append".split(),
    *(f"name_{k}" for k in range(3000)),
]


def make(run: Path, samples: int) -> None:
    """Write the run."""
    run.mkdir(parents=True)
    (run / "config.yaml").write_text("stage: grpo\nseed: 0\n")
    rng = random.Random(0)
    metrics = []
    for step in range(1, samples // STEP + 1):
        rows = []
        for group in range(STEP // GROUP):
            task, prompt = f"train-{rng.randrange(20_000):05d}", " ".join(rng.choices(VOCABULARY, k=120))
            for sample in range(GROUP):
                bucket = rng.choice([None, None, "wrong_answer", "runtime_error", "parse"])
                text = "\n    ".join(" ".join(rng.choices(VOCABULARY, k=8)) for _ in range(10))
                more = dict(
                    sample=sample,
                    completion=text,
                    tokens=80,
                    family=f"family_{rng.randrange(60)}",
                    log="" if bucket is None else "a log",
                )
                one = completion(task, "failed" if bucket else "passed", bucket, **more)
                rows.append(
                    RolloutRow(
                        one, step, group, prompt, reward=rng.random(), terms={"all_passed": 1.0}, advantage=rng.random()
                    )
                )
        write_rollouts(run, step, rows)
        metrics.append({"step": step, "loss": rng.random(), **{f"system/{k}": rng.random() for k in range(60)}})
    (run / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in metrics))


def measure(folder: Path) -> dict[str, float]:
    """Seconds by question, and the most memory of this process in MB."""
    found: dict[str, float] = {}

    def timed(name: str, question: Callable[[], Any]) -> Any:
        begun = time.process_time()
        answer = question()
        found[name] = round(time.process_time() - begun, 3)
        return answer

    place = folder / "index.sqlite"
    timed("build the index", Index(folder / "runs", place).refresh)
    index = Index(folder / "runs", place)
    timed("compare the index with the files", index.refresh)
    with index.reading() as db:
        run = (queries.all_runs(db)[0]["id"],)

        def page(chosen: Filter, sort: str = "place") -> tuple[int, Any]:
            return queries.count(db, chosen), queries.samples(db, chosen, sort, True, most=50)

        def opened() -> None:
            queries.all_runs(db)
            queries.curves(db, run[0], ["loss"])
            queries.choices(db, run)
            page(Filter(run))

        timed("open", opened)
        timed("filter by verdict", lambda: page(Filter(run, outcome="failed", bucket="parse")))
        timed("filter by reward, sort", lambda: page(Filter(run, low=0.25, high=0.5), "reward"))
        timed("filter by task", lambda: page(Filter(run, task="0123")))
        timed("sort by task", lambda: page(Filter(run), "task"))
        timed("search a rare word", lambda: page(Filter(run, text="name_2999")))
        timed("search a frequent word", lambda: page(Filter(run, text="range")))
        timed("one sample", lambda: queries.whole_sample(db, index.root, run[0], 1, STEP - 1))
    status = Path("/proc/self/status").read_text()
    found["memory in MB"] = int(status.partition("VmHWM:")[2].split()[0]) / 1024
    found["index in MB"] = place.stat().st_size / 2**20
    return found


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    if not (folder / "runs" / "long").exists():
        make(folder / "runs" / "long", int((*sys.argv, 1_000_000)[2]))
    for name, value in measure(folder).items():
        print(f"{name:<34} {value:.3f}")
