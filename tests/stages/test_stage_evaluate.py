"""A baseline is compared with only where it was measured in the same way."""

from pathlib import Path

import pytest

from rlvr_exp.config.compose import compose
from rlvr_exp.config.load import to_yaml
from rlvr_exp.core.errors import InputError
from rlvr_exp.stages.evaluate import _baseline, _told

RETRY = ["environment=retry", "environment.attempts=3"]


def compared(folder: Path, theirs: list[str], ours: list[str]) -> list[str]:
    """The keys that a baseline is refused for; it has no evaluation to be read."""
    (folder / "config.yaml").write_text(to_yaml(compose(["+stage=grpo", *theirs])))
    with pytest.raises(InputError) as refused:
        _baseline(compose(["+stage=evaluate", f"evaluate.baseline={folder}", *ours]).config)
    return [problem.what for problem in refused.value.problems]


def test_attempts_with_the_verifiers_words_are_another_measurement(tmp_path: Path) -> None:
    assert compared(tmp_path, RETRY, RETRY) == compared(tmp_path, [], []) == ["it was not evaluated"]
    assert any("environment" in what for what in compared(tmp_path, RETRY, []))
    assert "environment.attempts differs" in compared(tmp_path, RETRY, ["environment=retry"])


def test_a_vote_on_the_same_answers_is_no_other_measurement(tmp_path: Path) -> None:
    assert compared(tmp_path, [], ["evaluation.vote=2"]) == ["it was not evaluated"]


def test_the_differences_are_printed_with_who_won() -> None:
    change = {"value": 0.03125, "low": -0.044, "high": 0.1064, "n": 16, "won": 6, "lost": 5, "tied": 5}
    assert _told({"pass_at_1": change}, "RUN").splitlines() == [
        "change against RUN, paired by task:",
        "  pass_at_1: +3.1 points [-4.4, +10.6], 6 won, 5 lost",
    ]
