"""The domain of a resumed run: without the golds that its first part left out, whatever Dafny would say today."""

from pathlib import Path

import pytest
from dafny_samples import MAX, SUM, named, write_rows

from rlvr_exp.config.compose import compose
from rlvr_exp.core.errors import InputError
from rlvr_exp.records import manifest
from rlvr_exp.records.context import RunContext
from rlvr_exp.stages.shared.data_and_verifier import build_domain


def test_a_resumed_run_leaves_out_the_same_golds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = write_rows(tmp_path / "data", train=(MAX, SUM, named(MAX, "other")))
    words = ["+stage=sft", "data=dafny", f"data.path={data}", "data.usable=check", "data.role=annotator"]
    config = compose([*words, "data.dev_fraction=0", "data.test_fraction=0"]).config
    told: list[dict] = []
    manifest.begin(tmp_path, "sft", 0, [], "")
    manifest.update(tmp_path, golds={"checked": 3, "left_out": {"sum/annotator": "the program ends with timeout: ..."}})
    manifest.mark_resumed(tmp_path, tmp_path / "step_000002", [], "")
    monkeypatch.setattr(
        "rlvr_exp.stages.shared.data_and_verifier._golds", lambda *_: pytest.fail("Dafny is asked again")
    )
    domain = build_domain(config, RunContext(tmp_path, told.append))
    assert [task.id for task in domain.splits()["train"]] == ["max", "other"]
    assert "golds: 2 of 3 are proved" in told[-1]["text"] and "1 the program ends with timeout" in told[-1]["text"]


def test_a_domain_that_makes_no_folds_refuses_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = compose(["+stage=sft", "data=arc", "data.folds=5"]).config
    assert build_domain(config, RunContext(tmp_path, print)).folds == 5
    monkeypatch.setattr("rlvr_exp.domains.arc.tasks.Arc.makes_folds", False)
    with pytest.raises(InputError, match=r"data\.folds: this domain makes no folds"):
        build_domain(config, RunContext(tmp_path, print))
