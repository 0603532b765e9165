"""data.mix through the commands: each update, and each step's prompts, take their sources in the shares."""

import json
import subprocess
from pathlib import Path

import pytest
from program import ENVIRONMENT, PROGRAM

from rlvr_exp.records.rollout_files import read_rollouts, rollout_steps

pytest.importorskip("ast_grep_py")
SHORT = ["+experiment=quick", "data=edits", "data.path=rows", "evaluation.tasks=2", "evaluation.samples=2"]
MIX = "data.mix={first: 3, second: 1}"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("mix")
    for start, split in enumerate(("train", "dev", "test")):
        (place / "rows" / split).mkdir(parents=True)
        for place_of, (source, count) in enumerate({"first": 6, "second": 9, "third": 9}.items()):
            rows = [
                row(f"{split}-{source}-{number}", source, 100 * start + 10 * place_of + number)
                for number in range(count)
            ]
            text = "".join(json.dumps(one) + "\n" for one in rows)
            (place / "rows" / split / f"{source}.jsonl").write_text(text)
    return place


def row(name: str, source: str, number: int) -> dict:
    word = name.replace("-", "_")
    return {
        "id": name,
        "source": source,
        "instruction": f"Replace `{word}` by `b`.",
        "before": f"{word} = {number}\n",
        "after": f"b = {number}\n",
        "action": json.dumps({"pattern": word, "rewrite": "b"}),
    }


def program(place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [*PROGRAM, *SHORT, *words]
    return subprocess.run(command, cwd=place, env=ENVIRONMENT, capture_output=True, text=True, timeout=300)


def metrics(run: Path) -> list[dict]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def test_imitation_counts_the_examples_of_each_source(place) -> None:
    done = program(place, "+stage=sft", MIX, "algorithm.max_steps=3", "algorithm.batch_size=8", "run.dir=sft")
    assert done.returncode == 0, done.stdout + done.stderr
    rows = metrics(place / "sft")
    assert [(row["mix/first"], row["mix/second"]) for row in rows] == [(6, 2), (12, 4), (18, 6)]
    assert "mix/third" not in rows[-1]


def test_prompts_come_from_the_sources_of_the_mixture(place) -> None:
    words = ["algorithm.max_steps=2", "algorithm.prompts_per_step=4", "algorithm.group_size=4", "run.dir=grpo"]
    done = program(place, "+stage=grpo", MIX, *words)
    assert done.returncode in (0, 3), done.stdout + done.stderr  # 3: nothing to learn from, whatever was prompted
    tasks = {row.completion.task.id for file in rollout_steps(place / "grpo").values() for row in read_rollouts(file)}
    assert (
        len([name for name in tasks if "first" in name]) == 6 and len([name for name in tasks if "second" in name]) == 2
    )
    assert not [name for name in tasks if "third" in name]
    assert metrics(place / "grpo")[-1]["curriculum/first/prompts"] == 6


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["+stage=sft", "data.mix={forth: 1}"], "first (6 tasks)"),
        (["+stage=grpo", "data.mix={first: 0}"], "data.mix: no share"),
        (["+stage=evaluate", MIX], "data.mix: has no effect under this stage"),
    ],
)
def test_what_cannot_be_mixed_is_refused_before_anything_starts(place, words, found) -> None:
    done = program(place, *words, "run.dir=refused")
    assert done.returncode == 2 and found in done.stdout + done.stderr, done.stdout + done.stderr
    assert not (place / "refused" / "metrics.jsonl").exists()
