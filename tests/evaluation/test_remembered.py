"""Which measurements before training are taken for equal: by weights, tasks, draws and judging, not by how a run learns."""

import json
from pathlib import Path

import pytest
from completions import completion

from rlvr_exp.config.compose import compose
from rlvr_exp.config.load import to_yaml
from rlvr_exp.evaluation.remembered import measurement, recall, remember
from rlvr_exp.records.rollout_files import EvalSample

MANIFEST = {
    "data": {"train": {"fingerprint": "a"}, "test": {"fingerprint": "b"}},
    "start": {"model/x": "1"},
    "versions": {},
}


def place(folder: Path, *words: str, **changed: object) -> Path:
    run = folder / "run"
    run.mkdir(exist_ok=True)
    (run / "config.yaml").write_text(to_yaml(compose(["+stage=grpo", *words])))
    (run / "manifest.json").write_text(json.dumps({**MANIFEST, **changed}))
    return measurement(str(folder), run, "test")


@pytest.mark.heavy
def test_runs_that_learn_otherwise_share_a_measurement_and_others_do_not(tmp_path: Path) -> None:
    base = place(tmp_path)
    same = (
        ["optimizer.lr=1e-5", "algorithm.group_size=4", "reward.terms.length.weight=0", "curriculum=ordered"],
        ["evaluation.batch_size=8", "evaluation.remember=elsewhere", "run.log_every_steps=2"],
    )
    assert {place(tmp_path, *words) for words in same} == {base}
    assert place(tmp_path, data={**MANIFEST["data"], "train": {"fingerprint": "c"}}) == base, "not measured on"
    other = (
        ["seed=1"],
        ["evaluation.samples=4"],
        ["evaluation.temperature=0.5"],
        ["sandbox.cpu_s=1"],
        ["model.max_completion_tokens=9"],
    )
    found = {place(tmp_path, *words) for words in other}
    found |= {place(tmp_path, start={"model/x": "2"}), place(tmp_path, data={"test": {"fingerprint": "d"}})}
    assert len(found) == len(other) + 2 and base not in found


def test_what_is_remembered_is_recalled_whole(tmp_path: Path) -> None:
    scored = [EvalSample(completion(f"t{i}"), "greedy", "prompt") for i in range(3)]
    assert recall(tmp_path / "a") is None
    remember(tmp_path / "a", scored)
    assert recall(tmp_path / "a") == scored
