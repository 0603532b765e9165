"""+stage=prepare through the command line: what it makes, and what it refuses."""

import json
import lzma
import re
import shlex
import subprocess
from pathlib import Path

import pytest
from program import ENVIRONMENT, PROGRAM
from shipped import fingerprint

from rlvr_exp.config.compose import compose
from rlvr_exp.config.tree import PACKAGE, conf_directory
from rlvr_exp.domains.arc.generator import corpus
from rlvr_exp.domains.arc.tasks import Arc
from rlvr_exp.main import main


def prepare(cwd: Path, *words: str) -> tuple[int, str]:
    words = [*PROGRAM, "+stage=prepare", *words]
    done = subprocess.run(words, cwd=cwd, env=ENVIRONMENT, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout + done.stderr


def test_a_small_corpus_is_drawn_and_loads(tmp_path: Path) -> None:
    code, printed = prepare(tmp_path, "prepare=arc", "prepare.rows=2", "run.dir=run", "prepare.output=made/arc")
    assert code == 0, printed
    made, run = tmp_path / "made", tmp_path / "run"
    found = {name: len(tasks) for name, tasks in Arc(str(made / "arc")).splits().items()}
    assert found == dict.fromkeys(corpus.SPLITS, 2)
    splits = json.loads((made / "arc.manifest.json").read_text())["splits"]
    for name in found:
        packed = (made / "arc" / f"{name}.jsonl.xz").read_bytes()
        assert splits[name]["tasks"] == 2 and splits[name]["content_sha256"] == fingerprint(lzma.decompress(packed))
    summary = json.loads((run / "summary.json").read_text())
    assert (summary["status"], summary["metrics"]) == ("completed", {f"rows/{name}": 2 for name in found})
    assert "rows/train: 2" in printed and (run / "prepare.txt").read_text() in printed + "\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "prepare: not chosen\n    allowed: arc, "),
        (["prepare=ark"], "did you mean: prepare=arc"),
        (["prepare=arc", "prepare.wall_s=3"], "prepare.wall_s: unknown key"),
        (["prepare=arc", "prepare.sides=[8,9]"], "prepare.sides: not sizes of grids"),
        (["prepare=arc", "sandbox.workers=2"], "has no effect under +stage=prepare"),
    ],
)
def test_what_a_maker_does_not_read_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    assert main(["+stage=prepare", *words, f"run.dir={tmp_path}/run"]) == 2
    assert message in capsys.readouterr().err and not (tmp_path / "run").exists()


def test_every_command_of_the_pages_composes() -> None:
    pages = "".join(page.read_text(encoding="utf-8") for page in (PACKAGE / "docs").rglob("*.md")).replace("\\\n", " ")
    commands = re.findall(r"^    python -m rlvr_exp (\+stage=prepare prepare=[a-z][^#\n]*)", pages, re.MULTILINE)
    chosen = {re.search(r"prepare=(\w+)", command)[1] for command in commands if compose(shlex.split(command)).config}
    assert len(commands) > 10 and chosen == {file.stem for file in (conf_directory() / "prepare").glob("*.yaml")}
