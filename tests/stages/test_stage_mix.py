"""data.mix through the commands: each update, and each step's prompts, take their sources in the shares."""

import json
import lzma
import shutil
from pathlib import Path

import pytest
from program import metrics_of, run_program

from rlvr_exp.config.compose import compose
from rlvr_exp.core.errors import InputError
from rlvr_exp.domains.arc.tasks import EMBEDDED
from rlvr_exp.launch.preflight import data_problems
from rlvr_exp.records.rollout_files import read_rollouts, rollout_steps

pytest.importorskip("ast_grep_py")
SMALL = ["+experiment=quick", "evaluation.tasks=2", "evaluation.samples=2"]
EDITS = [*SMALL, "data=edits", "data.path=rows"]
MIX = "data.mix={first: 3, second: 1}"
SOURCES = {"first": 6, "second": 9, "third": 9}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("mix")
    for start, split in enumerate(("train", "dev", "test")):
        (place / "rows" / split).mkdir(parents=True)
        for place_of, (source, count) in enumerate(SOURCES.items()):
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


def program(place: Path, *words: str, codes: tuple[int, ...] = (0,)) -> None:
    done = run_program(place, *words)
    assert done.returncode in codes, done.stdout + done.stderr


def counts(run: Path) -> list[dict]:
    return [{name: value for name, value in row.items() if name.startswith("mix/")} for row in metrics_of(run)]


@pytest.mark.slow
def test_imitation_counts_the_examples_of_each_source(place) -> None:
    program(place, *EDITS, "+stage=sft", MIX, "algorithm.max_steps=3", "algorithm.batch_size=8", "run.dir=sft")
    assert counts(place / "sft") == [{"mix/first": 6 * n, "mix/second": 2 * n} for n in (1, 2, 3)]
    assert "Prompts or examples so far, by source" in (place / "sft" / "report.html").read_text()


@pytest.fixture(scope="module")
def grpo(place) -> Path:
    words = ["algorithm.max_steps=4", "algorithm.prompts_per_step=4", "algorithm.group_size=4"]
    words += ["algorithm.rollout_steps=2", "run.checkpoint.every_steps=1", "run.checkpoint.keep=9", "run.dir=grpo"]
    # 3: nothing to learn from, whatever was prompted.
    program(place, *EDITS, "+stage=grpo", MIX, *words, codes=(0, 3))
    return place / "grpo"


def prompted(run: Path, step: int) -> list[str]:
    rows = read_rollouts(rollout_steps(run)[step])
    return list(dict.fromkeys(row.completion.task.id for row in rows))


@pytest.mark.slow
def test_prompts_come_from_the_sources_of_the_mixture(grpo) -> None:
    tasks = prompted(grpo, 1)
    found = [sum(source in name for name in tasks) for source in SOURCES]
    assert found == [6, 2, 0], "a batch of prompts for two steps"
    of_two_steps = [{"mix/first": 6 * n, "mix/second": 2 * n} for n in (1, 2)]
    assert counts(grpo) == [one for one in of_two_steps for _ in range(2)]


@pytest.mark.slow
def test_a_resumed_run_draws_and_counts_the_same(place, grpo) -> None:
    resumed = place / "resumed"
    shutil.copytree(grpo, resumed, symlinks=True)
    for step in (2, 3, 4):
        shutil.rmtree(resumed / "checkpoints" / f"step_00000{step}")
    (resumed / "summary.json").unlink()
    program(place, f"run.resume={resumed}", codes=(0, 3))
    assert counts(resumed) == counts(grpo)
    assert prompted(resumed, 3) == prompted(grpo, 3)


@pytest.mark.slow
def test_self_play_prompts_and_imitates_in_the_shares(place) -> None:
    folder = place / "arc" / "training"
    folder.mkdir(parents=True)
    found = lzma.decompress((EMBEDDED / "train.jsonl.xz").read_bytes()).splitlines()
    for start, source in enumerate(SOURCES):
        (folder / f"{source}.jsonl").write_bytes(b"\n".join(found[60 * start : 60 * (start + 1)]))
    words = ["+stage=self_play", "data.path=arc", "run.select.tasks=2", MIX, "run.dir=self_play"]
    program(place, *SMALL, *words)
    rows = metrics_of(place / "self_play")
    begun = [row for row in rows if "self_play/answers" in row]
    assert [(row["mix/first"], row["mix/second"]) for row in begun] == [(18, 6), (36, 12)], "24 tasks a round"
    golds = [(row["mix/golds/first"], row["mix/golds/second"]) for row in rows]
    assert all(first > 0 and abs(first - 3 * second) < 4 for first, second in golds)
    assert not any("third" in name for row in rows for name in row)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["+stage=sft", "data.mix={forth: 1}"], "allowed: second (9 tasks), third (9 tasks), first (6 tasks)"),
        (["+stage=grpo", "data.mix={first: 1, forth: 1}"], "got: forth"),
        (["+stage=evaluate", MIX], "data.mix: has no effect where nothing is trained"),
        (["+stage=validate", MIX], "allowed: +stage=sft, +stage=grpo"),
    ],
)
def test_what_cannot_be_mixed_is_refused_before_anything_starts(place, monkeypatch, words, said) -> None:
    monkeypatch.chdir(place)
    (problem,) = data_problems(compose([*words, "data=edits", "data.path=rows"]).config)
    assert said in str(problem)


def test_every_task_once_is_no_mixture() -> None:
    config = compose(["+stage=self_play", "data.mix={arc: 1}", "self_play.tasks=0"]).config
    assert "every task once is no mixture" in str(*data_problems(config))


@pytest.mark.parametrize("share", ["0", "-1", "nan", "inf"])
def test_a_share_is_a_number_above_0(share: str) -> None:
    with pytest.raises(InputError, match=rf"data.mix: no share\n    got: second: {share}"):
        compose(["+stage=sft", f"data.mix={{first: 1, second: {share}}}"])
