"""The batch of the stages that answer without training: its option, its preset and the number of tasks."""

import json
from pathlib import Path

import pytest

from rlvr_exp.config.compose import compose
from rlvr_exp.launch.inference_inputs import answered_tasks
from rlvr_exp.memory.advice import memory, nearest, room
from rlvr_exp.memory.plan import plan
from rlvr_exp.memory.reading import workload_of

SEVEN = ["model=qwen_coder_7b", "parallel=single", "parallel.device=rtx5090"]


def settings(*words: str) -> list[str]:
    config = compose([*words, *SEVEN]).config
    workload = workload_of(config)
    assert workload is not None
    return nearest(workload, room(config))


def rows(folder: Path, count: int) -> Path:
    path = folder / "rows.jsonl"
    lines = ({"id": f"t{n}", "prompt": f"Write f{n}.", "tests": [f"assert f{n}() == {n}"]} for n in range(count))
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (["+stage=infer", "infer.batch_size=512"], "infer.batch_size"),
        (["+stage=collect", "data=edits", "collect.batch_size=512"], "collect.batch_size"),
        (["+stage=evaluate", "evaluation.batch_size=4096"], "evaluation.batch_size"),
    ],
)
def test_the_advice_names_an_option_that_the_stage_reads(words: list[str], option: str) -> None:
    found = settings(*words)
    assert found[0].startswith(f"{option}=")
    for changed in found:
        kept = [word for word in words if not changed.startswith(word.partition("=")[0] + "=")]
        assert "TOO MUCH" not in "\n".join(memory(compose([*kept, *SEVEN, *changed.split()]).config))


def test_rollouts_with_their_own_batch_are_reduced_by_their_own_option() -> None:
    found = settings("+stage=grpo", "algorithm.prompts_per_step=64", "algorithm.rollout_batch_size=512")
    assert any("algorithm.rollout_batch_size=" in one and "evaluation" not in one for one in found), found


@pytest.mark.parametrize("stage", ["infer", "collect"])
def test_a_presets_batch_bounds_every_stage(stage: str) -> None:
    data = ["data=edits"] if stage == "collect" else []
    sizes = [
        getattr(compose([f"+stage={stage}", *data, *words]).config, stage).batch_size
        for words in ([], ["model=qwen_coder_7b"], ["model=qwen_coder_7b", f"{stage}.batch_size=100"])
    ]
    assert sizes == [64, 32, 100]


def test_no_more_tasks_are_planned_than_there_are(tmp_path: Path) -> None:
    path = rows(tmp_path, 20)
    own = ["+stage=infer", "data=code", f"data.path={path}", *SEVEN]
    given = ["+stage=infer", f"infer.input={path}", *SEVEN]
    config = compose(own).config
    assert answered_tasks(config) == 2 and "2 tasks at once" in plan(config, [])
    assert workload_of(config).sampling_batch.groups == 2
    assert [answered_tasks(compose([*given, *more]).config) for more in ([], ["infer.tasks=3"])] == [20, 3]
    assert answered_tasks(compose([*given, "infer.ids=[t1,t2]"]).config) == 2
    assert answered_tasks(compose(["+stage=infer", "infer.input=-"]).config) == 0
    assert answered_tasks(compose(["+stage=grpo", "data=code", f"data.path={path}"]).config) == 0
