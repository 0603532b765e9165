"""The penalty for lint, by the real Ruff, and the reward without information."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from verified_samples import CORRECT, WRONG, answer, passed

from rlvr_exp.config import needs
from rlvr_exp.config.compose import compose
from rlvr_exp.rewards.lint import Ruff, findings
from rlvr_exp.rewards.terms import Random
from rlvr_exp.verifiers.base import Verdict

RULES = ("E", "F", "W", "B")
CLEAN = "def double(x):\n    return 2 * x\n"
PASSED = Verdict("passed", passed=1, total=1)


def paid(text: str | None, *select: str) -> float:
    return Ruff(1.0, list(select or RULES))(answer(PASSED, text=text))


def test_a_clean_program_costs_nothing():
    assert paid(CLEAN) == 0


def test_findings_count_per_line_of_code():
    assert findings("import os\nimport re\n" + CLEAN, RULES) == 2
    assert paid("import os\n\n\nimport re\n\n\n" + CLEAN, "F") == -2 / 4


@pytest.mark.parametrize("text", ["def f(:\n    pass\n", None, "\ud800", "not Python at all, but prose"])
def test_what_is_no_program_costs_most(text):
    assert paid(text) == -1


def test_only_the_chosen_rules_count():
    text = "l = 1\nimport os\n"
    assert findings(text, ("E741",)) == 1 and findings(text, ("F",)) == 1 and findings(text, ("B",)) == 0


def test_settings_of_the_folder_and_marks_of_the_program(tmp_path, monkeypatch):
    """A folder that ignores everything changes nothing, and a comment that hides a finding does not either."""
    (tmp_path / "ruff.toml").write_text("exclude = ['*']\nlint.ignore = ['ALL']\n")
    monkeypatch.chdir(tmp_path)
    assert findings("import os\nx = 1\n", RULES) == 1
    assert findings("# ruff: noqa\nimport os  # noqa\n", RULES) == 1


@pytest.mark.parametrize("rules", ["[NO_SUCH_RULE]", "[]"])
def test_rules_that_ruff_does_not_take_are_told_before_the_start(rules):
    found = needs.missing_artifacts(compose(["+stage=grpo", "reward=lint", f"reward.terms.ruff.select={rules}"]).config)
    [problem] = [one.problem for one in found]
    assert problem.where == "reward.terms.ruff.select" and problem.what
    assert not needs.missing_artifacts(compose(["+stage=grpo", "reward=lint"]).config)


def test_the_missing_package_is_told_before_the_start(monkeypatch):
    monkeypatch.setattr(needs, "find_spec", lambda name: None)
    config = compose(["+stage=grpo", "reward=lint"]).config
    assert "the package ruff is not installed" in [one.problem.what for one in needs.missing_artifacts(config)]


@given(st.text(), st.integers(0, 9))
def test_chance_is_the_same_each_time(text, sample):
    one = replace(passed(), text=text, sample=sample)
    assert Random()(one) == Random()(replace(one)) and Random()(one) in (0.0, 1.0)


def test_chance_pays_half_of_the_answers_whatever_they_are():
    values = [Random()(replace(passed(), text=str(k), sample=k % 8)) for k in range(4000)]
    assert abs(sum(values) / 4000 - 0.5) < 0.04


@given(CORRECT, WRONG)
def test_chance_does_not_read_the_verdict(correct, wrong):
    same = replace(wrong, text=correct.text, sample=correct.sample, task=correct.task)
    assert Random()(correct) == Random()(same)
