"""+stage=cascade with the real Dafny and the embedded policy: the run's files, and that nothing starts without
Dafny."""

import json
import subprocess
from pathlib import Path

import pytest
from program import ENVIRONMENT, PROGRAM
from transformers import AutoModelForCausalLM

from rlvr_exp.core.errors import InputError
from rlvr_exp.domains.dafny.package import INSTALL
from rlvr_exp.domains.dafny.tool import find
from rlvr_exp.records.rollout_files import read_evaluation, read_rollouts, rollout_steps

pytestmark = pytest.mark.slow

SMALL = [
    "+stage=cascade",
    "cascade.annotations=2",
    "environment=retry",
    "cascade.credit=counterfactual",
    "cascade.counterfactual=resampled",
    "cascade.resamples=2",
    "algorithm.max_steps=2",
    "algorithm.prompts_per_step=2",
    "algorithm.group_size=3",
    "evaluation.tasks=2",
    "evaluation.samples=2",
    "verifier.validate=1",
]


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    try:
        find()
    except InputError:
        pytest.skip(f"NO DAFNY: nothing is proved here; {INSTALL}")
    place = tmp_path_factory.mktemp("cascade")
    done = subprocess.run(
        [*PROGRAM, *SMALL, f"run.dir={place / 'run'}"],
        cwd=place,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return place / "run"


def rows(run: Path) -> list[dict]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def test_what_it_learns_on_was_never_imitated(run: Path) -> None:
    assert json.loads((run / "manifest.json").read_text())["train"]["split"] == "practice"
    asked = {row.completion.task.id for path in rollout_steps(run).values() for row in read_rollouts(path)}
    assert asked and all(task.startswith("practice-") for task in asked)


def test_both_roles_have_metrics_of_their_own(run: Path) -> None:
    for row in rows(run):
        assert {"writer/loss", "annotator/loss", "cascade/success/mean", "cascade/credit/writer"} <= row.keys()
        assert row["writer/samples/sampled"] == 6 and row["annotator/samples/sampled"] % 2 == 0
        blamed = sum(row[f"cascade/failed_by/{role}"] for role in ("writer", "annotator"))
        assert row["cascade/success/mean"] + blamed == pytest.approx(1.0)


def test_a_checkpoint_holds_both_policies(run: Path) -> None:
    latest = (run / "checkpoints" / "latest").resolve()
    for role in ("writer", "annotator"):
        assert AutoModelForCausalLM.from_pretrained(latest / role).num_parameters() > 0
        assert (latest / "training" / role / "optimizer.pt").is_file()


def test_rollouts_hold_both_texts_and_who_failed(run: Path) -> None:
    found = read_rollouts(rollout_steps(run)[1])
    written, annotated = ([row for row in found if row.about["role"] == role] for role in ("writer", "annotator"))
    assert len(written) == 6 and annotated
    bodies = {row.about["body"] for row in written}
    assert {row.about["body"] for row in annotated} <= bodies
    assert all(
        row.completion.correct == (row.about["failed_by"] is None) for row in annotated if not row.about.get("again")
    )


def test_success_is_measured_of_the_cascade_and_of_each_role(run: Path) -> None:
    summary = json.loads((run / "summary.json").read_text())
    wanted = {"pass_at_1", "pass_at_1_greedy", "writer/pass_at_1", "writer/pass_at_1_greedy"}
    for when in ("before", "after"):
        assert wanted <= summary[when].keys()
        assert summary[when]["pass_at_1"]["value"] <= summary[when]["writer/pass_at_1"]["value"]
    assert {row.mode for row in read_evaluation(run, "after")} == {"greedy", "sampled"}
    assert json.loads((run / "evaluation" / "after.json").read_text())["lengths"]


def test_the_report_says_who_is_credited_with_what(run: Path) -> None:
    page = (run / "report.html").read_text()
    assert "Credit by role" in page and "annotations drawn afresh" in page


def test_a_trained_cascade_is_measured_again(run: Path, tmp_path: Path) -> None:
    words = ["+stage=evaluate", "data=dafny", "model=tiny_dafny", f"evaluate.cascade={run / 'checkpoints' / 'latest'}"]
    words += ["evaluation.tasks=2", "evaluation.samples=2", "environment=retry", f"run.dir={tmp_path / 'run'}"]
    done = subprocess.run(
        [*PROGRAM, *words], cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    after = [json.loads((folder / "summary.json").read_text())["after"] for folder in (run, tmp_path / "run")]
    assert after[0] == after[1]


def test_without_dafny_nothing_starts(tmp_path: Path) -> None:
    env = {**ENVIRONMENT, "PATH": str(tmp_path)}
    words = [*PROGRAM, *SMALL, f"run.dir={tmp_path / 'run'}"]
    done = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 2 and INSTALL in done.stderr, done.stderr
    assert not (tmp_path / "run").exists()
