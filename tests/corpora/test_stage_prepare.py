"""+stage=prepare through the command line: what it makes, and what it refuses."""

import json
import lzma
import subprocess
from pathlib import Path

import pytest
from program import ENVIRONMENT, PROGRAM

from rlvr_exp.corpora.arc.build import build_splits
from rlvr_exp.main import main
from rlvr_exp.tasks.arc.domain import Arc


def prepare(cwd: Path, *words: str) -> tuple[int, str]:
    words = [*PROGRAM, "+stage=prepare", *words]
    done = subprocess.run(words, cwd=cwd, env=ENVIRONMENT, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout + done.stderr


def test_a_small_corpus_is_drawn_and_loads(tmp_path: Path) -> None:
    code, printed = prepare(tmp_path, "prepare=arc", "prepare.rows=2", "run.dir=run", "prepare.output=made/arc")
    assert code == 0, printed
    drawn = build_splits({"test": 2, "dev": 2, "test_unseen": 2, "train": 2})
    made, run = tmp_path / "made", tmp_path / "run"
    packed = {name: (made / "arc" / f"{name}.jsonl.xz").read_bytes() for name in drawn}
    assert {name: [*map(json.loads, lzma.decompress(text).splitlines())] for name, text in packed.items()} == drawn
    assert {name: len(tasks) for name, tasks in Arc(str(made / "arc")).splits().items()} == dict.fromkeys(drawn, 2)
    assert set(json.loads((made / "arc.manifest.json").read_text())["splits"]) == set(drawn)
    summary = json.loads((run / "summary.json").read_text())
    assert (summary["status"], summary["metrics"]) == ("completed", {f"rows/{name}": 2 for name in drawn})
    assert "rows/train: 2" in printed and (run / "prepare.txt").read_text() in printed + "\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "prepare: not chosen\n    allowed: arc, "),
        (["prepare=ark"], "did you mean: prepare=arc"),
        (["prepare=arc", "prepare.wall_s=3"], "prepare.wall_s: unknown key"),
        (["prepare=arc", "sandbox.workers=2"], "has no effect under +stage=prepare"),
    ],
)
def test_what_a_maker_does_not_read_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    assert main(["+stage=prepare", *words, f"run.dir={tmp_path}/run"]) == 2
    assert message in capsys.readouterr().err and not (tmp_path / "run").exists()
