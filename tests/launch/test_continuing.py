"""The command that an interrupted run prints last."""

from pathlib import Path

import pytest

from rlvr_exp.config.compose import compose
from rlvr_exp.launch.resume import continuing


@pytest.mark.parametrize(
    ("stage", "made", "words"),
    [
        ("grpo", "checkpoints/step_000002", "'run.resume=my run'"),
        ("grpo", "journal", "'run.resume=my run'"),
        ("grpo", ".", "run.resume=auto 'run.dir=my run'"),
        ("evaluate", ".", "'run.resume=my run'"),
        ("infer", ".", ""),
    ],
)
def test_the_command_is_one_that_the_directory_allows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage: str, made: str, words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my run" / made).mkdir(parents=True)
    command = continuing(compose([f"+stage={stage}"]).config, Path("my run"))
    assert command == (f"python -m rlvr_exp {words}" if words else "")
