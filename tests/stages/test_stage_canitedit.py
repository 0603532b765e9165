"""CanItEdit as a person starts it: both instructions by the published preset, excess code, two policies paired; served by an
endpoint that knows the answers."""

import json
import subprocess
from pathlib import Path

import pytest
from code_samples import CANITEDIT, write, write_set
from endpoint import Endpoint, serving
from program import ENVIRONMENT, PROGRAM

from rlvr_exp.records.rollout_files import read_evaluation

PRESET = ["+stage=evaluate", "+experiment=canitedit", "engine=server", "cache.enabled=false", "sandbox.workers=1"]
FEW = ["evaluation.samples=2"]
SQUARE = CANITEDIT | {
    "full_name": "8_square",
    "before": "def square(x):\n    return 0",
    "after": "def square(x):\n    return x * x",
    "tests": "### START TESTS ###\nassert square(3) == 9",
    "instruction_descriptive": "Make `square` right.",
    "instruction_lazy": "Fix it.",
    "taxonomy": {"change_kind": "corrective"},
}
ABSENT = SQUARE | {
    "full_name": "9_absent",
    "before": "x = 1",
    "after": "import no_such_package_here\n\n\ndef square(x):\n    return x * x",
    "instruction_descriptive": "Import it.",
    "instruction_lazy": "Import.",
}
"""Its own solution does not pass here."""
UNUSED = "\n\n\ndef unused(x):\n    half = x / 2\n    return half"


def answer(prompt: str, seed: object) -> str:
    """The set's own solution; to the first problem's lazy instruction one with a function that no test calls, to the second's
    the program as it was; to the third's its own solution with a line more."""
    row = CANITEDIT if "Counter" in prompt else ABSENT if "Import" in prompt else SQUARE
    text = {"Count up.": row["after"] + UNUSED, "Fix it.": row["before"], "Import": row["after"] + "\n\n\ny = 1"}
    return f"```python\n{next((text[words] for words in text if words in prompt), row['after'])}\n```"


def tidy(prompt: str, seed: object) -> str:
    return answer(prompt, seed).replace(UNUSED, "")


def evaluated(folder: Path, text, *words: str) -> dict:
    with serving(Endpoint(text=text)) as endpoint:
        command = [*PROGRAM, *PRESET, *FEW, f"engine.url={endpoint.url}", f"data.path={folder / 'set'}", *words]
        done = subprocess.run(command, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads((folder / "run" / "summary.json").read_text())


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("canitedit")
    write(folder / "set" / "canitedit.jsonl", [CANITEDIT, SQUARE, ABSENT])
    evaluated(folder, answer, "run.dir=run")
    return folder / "run"


def test_success_is_shown_for_each_style_and_family(run: Path) -> None:
    summary, numbers = (json.loads((run / name).read_text()) for name in ("summary.json", "evaluation/after.json"))
    assert summary["after"]["pass_at_1"]["value"] == 0.75 and summary["after"]["pass_at_1"]["n"] == 4
    assert summary["after"]["pass_at_1"]["samples"] == 2 and summary["after"]["pass_at_1_greedy"]["n"] == 4
    assert summary["metrics"]["verdict_sampled/no_verdict"] == 4, "of the problem that cannot be judged here"
    styles = numbers["strata"]["instruction"]
    assert {name: styles[name]["pass_at_1"]["value"] for name in styles} == {"descriptive": 1.0, "lazy": 0.5}
    assert summary["metrics"]["instruction/lazy/pass_at_1"] == styles["lazy"]["pass_at_1"]
    kinds = ("adaptive", "corrective")
    assert set(numbers["families"]) == {f"canitedit/{style}/{kind}" for style in styles for kind in kinds}


def test_excess_code_is_that_of_passing_completions(run: Path) -> None:
    summary = json.loads((run / "summary.json").read_text())
    rows = read_evaluation(run, "after")
    counted = [one for one in rows if one.about]
    assert [one for one in rows if one.mode == "sampled" and one.verdict.outcome == "passed"] == counted
    assert {one.completion.task.id for one in counted if one.about["excess_code"]["uncovered"]} == {
        "CanItEdit/7_counter/lazy"
    }
    lazy = next(one.about["excess_code"] for one in counted if one.about["excess_code"]["uncovered"])
    assert lazy["uncovered"] == 2 and lazy["uncovered_added"] == 2 and lazy["added"] == 8
    rates = summary["after"]
    assert rates["excess_code"]["value"] == pytest.approx(2 / lazy["diff"] / 3) and rates["excess_code"]["n"] == 3
    assert rates["excess_code_strict"]["value"] == pytest.approx(2 / 8 / 3)
    metrics = summary["metrics"]
    assert metrics["excess_code/passed"] == metrics["excess_code/measured"] == 6


def test_the_report_shows_both(run: Path) -> None:
    page = (run / "report.html").read_text()
    assert "excess code, lines of the diff" in page and "excess code, added statements" in page
    section = page[page.rindex("Success by kind of task") :].partition("</table>")[0]
    assert "<th>descriptive</th>" in section and "<th>lazy</th>" in section and "excess code strict" in section


def test_two_policies_are_compared_task_by_task(run: Path, tmp_path: Path) -> None:
    (tmp_path / "set").symlink_to(run.parent / "set")
    summary = evaluated(tmp_path, tidy, "run.dir=run", f"evaluate.baseline={run}", f"data.path={run.parent / 'set'}")
    better, same = summary["metrics"]["difference/excess_code"], summary["metrics"]["difference/pass_at_1"]
    assert (better["won"], better["lost"], better["n"]) == (1, 0, 3) and better["value"] < 0
    assert (same["won"], same["lost"], same["n"]) == (0, 0, 4)


def action(prompt: str, seed: object) -> str:
    """Rules that make `square` right; to the lazy instruction with a function that no test calls."""
    right = SQUARE["after"] + (UNUSED if "Fix it." in prompt else "")
    return f"```json\n{json.dumps({'pattern': SQUARE['before'], 'rewrite': right})}\n```"


def test_of_a_policy_that_answers_by_actions_it_is_that_of_the_program_they_make(tmp_path: Path) -> None:
    write(tmp_path / "set" / "canitedit.jsonl", [SQUARE])
    edits = ["data=edits", "data.set=canitedit", "data.prompt.style=instruct", "verifier=ast_grep", "run.dir=run"]
    summary = evaluated(tmp_path, action, *edits)
    assert summary["after"]["pass_at_1"]["value"] == 1.0
    found = {one.completion.task.id: one.about for one in read_evaluation(tmp_path / "run", "after") if one.about}
    counted = {name.rpartition("/")[2]: about["excess_code"]["uncovered_added"] for name, about in found.items()}
    assert counted == {"descriptive": 0, "lazy": 2}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["+stage=evaluate", "data=edits", "data.set=canitedit", "data.path=edits", "environment=edits", "evaluation.excess_code=true"], "last action alone"),
        (["+stage=evaluate", "evaluation.excess_code=true"], "evaluation.excess_code: these tasks are no edits"),
        (["+stage=evaluate", "data=code", "data.path=set", "data.draw_splits=false", "verifier=pytest", "evaluation.excess_code=true"], "no edits"),
        (["+stage=validate", "data=code", "data.path=set", "verifier=pytest", "data.instruction=both"], "in one style"),
        (["+stage=sft", "data=code", "data.path=edits", "verifier=pytest", "data.instruction=lazy"], "no policy may be"),
    ],
)  # fmt: skip
def test_what_cannot_be_measured_is_refused_before_anything_starts(words: list[str], told: str, tmp_path: Path) -> None:
    write_set(tmp_path / "set", "human_eval"), write_set(tmp_path / "edits", "canitedit")
    done = subprocess.run(
        [*PROGRAM, *words, "run.dir=run"], cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 2 and told in done.stdout + done.stderr, done.stdout + done.stderr
    assert not (tmp_path / "run").exists()
