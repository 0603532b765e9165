"""A short real run: no secret in its files, equal verdicts when rescored, and equal results when a step is repeated."""

import gzip
import hashlib
import json
import shutil
import subprocess
import sys
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import pytest
import torch
from huggingface_hub import ModelCard
from program import ENVIRONMENT, PROGRAM, json_rows, run_program

from rlvr_exp.algorithms.base import Algorithm
from rlvr_exp.config.compose import compose
from rlvr_exp.config.data import Data
from rlvr_exp.config.load import build, load
from rlvr_exp.core.errors import GuardStop, InputError, Interrupted
from rlvr_exp.core.sealed import CARD, check_sound
from rlvr_exp.episodes.types import TokenSample
from rlvr_exp.launch.preflight import preflight_problems
from rlvr_exp.records import manifest
from rlvr_exp.records.context import RunContext, StageResult
from rlvr_exp.records.rollout_files import RolloutRow, RunReader, read_rollouts, rollout_steps
from rlvr_exp.rewards.compose import Reward
from rlvr_exp.rollouts.groups import Group, Groups
from rlvr_exp.stages import rescore
from rlvr_exp.stages.shared import data_and_verifier as domain
from rlvr_exp.tasks.base import Candidate
from rlvr_exp.training.step_log import rollout_rows

SECRETS = {
    "WANDB_API_KEY": "planted-wandb-key-0123456789",
    "HF_TOKEN": "hf_" + "plantedtoken" * 3,
    "JUDGE_PASSWORD": "planted password of a judge",
    "AWS_SECRET": "AKIA" + "PLANTED7" * 2,
}
SIZE = ["algorithm.max_steps=3", "data.limit=40", "evaluation.tasks=2", "evaluation.samples=1", "sandbox.workers=1"]
SIZE += ["run.checkpoint.every_steps=1"]
LENIENT = '''
from dataclasses import dataclass
from rlvr_exp.verifiers.base import Direct, Verdict

@dataclass
class Lenient(Direct):
    """Passes whatever holds the word."""
    name, version = "lenient", "1"
    word: str = "def"

    def judge(self, request):
        if self.word == "broken":
            return Verdict("no_verdict", log="no oracle")
        text = request.candidate.text or ""
        if self.word in text:
            return Verdict("passed", passed=1, total=1)
        return Verdict("failed", "wrong_answer", total=1)
'''


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """A run directory with rollouts of three steps, tracked by W&B, under an environment full of secrets."""
    place = tmp_path_factory.mktemp("made")
    home = {name: str(place / "home") for name in ("HOME", "XDG_CONFIG_HOME")}
    words = ["+stage=grpo", "+experiment=quick", *SIZE, "tracking=wandb", "reward=normalized", "run.dir=run"]
    words += ["algorithm.log_token_logprobs=true"]
    env = {**ENVIRONMENT, **home, **SECRETS, "WANDB_MODE": "offline"}
    done = subprocess.run([*PROGRAM, *words], cwd=place, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr + (place / "run" / "log.txt").read_text()
    return place / "run"


def test_each_sampled_token_has_its_text_and_log_probability(made: Path) -> None:
    rows = list(RunReader(made).rows())
    assert rows
    for row in rows:
        assert len(row.token_logprobs) == row.completion.tokens
        assert "".join(text for text, _ in row.token_logprobs).startswith(row.completion.text)
        assert all(value <= 0 for _, value in row.token_logprobs)
    values = {value for row in rows for _, value in row.token_logprobs}
    assert len(values) > 100 and min(values) < -1, "values of a policy that samples"


@pytest.fixture(autouse=True)
def one_corpus(monkeypatch) -> None:
    """The corpus takes seconds to build and is the same in every test."""
    monkeypatch.setattr(domain, "build", once)


def once(node, **more):
    if not isinstance(node, Data):
        return build(node, **more)
    if repr(node) not in KNOWN:
        KNOWN[repr(node)] = build(node)
    return KNOWN[repr(node)]


KNOWN: dict[str, object] = {}


def context_in(directory: Path, stage: str) -> tuple[RunContext, list[dict]]:
    events: list[dict] = []
    manifest.begin(directory, stage, 0, [], "")
    return RunContext(directory, events.append), events


def sums(directory: Path) -> dict[Path, str]:
    return {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in directory.rglob("*") if path.is_file()}


@pytest.mark.slow
def test_no_file_of_a_run_holds_a_secret(made: Path) -> None:
    files = [path for path in made.rglob("*") if path.is_file()]
    assert {"metrics.jsonl", "log.txt", "manifest.json", "config.yaml", "report.html"} <= {path.name for path in files}
    assert any(path.suffix == ".wandb" for path in files)
    for path in files:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        assert [name for name, value in SECRETS.items() if value.encode() in content] == [], path


def test_every_checkpoint_has_a_card_with_the_success(made: Path) -> None:
    cards = [ModelCard.load(folder / CARD) for folder in made.glob("checkpoints/step_*")]
    assert len(cards) == 3 and all(card.data.library_name == "transformers" for card in cards)
    assert all("| after training, of step 3 |" in card.text and "% (95% CI " in card.text for card in cards)
    check_sound((made / "checkpoints" / "latest").resolve())


def test_wandb_has_the_metrics_and_samples_of_the_run(made: Path) -> None:
    (written,) = made.glob("wandb/offline-run-*/run-*.wandb")
    names = {name for row in json_rows(made / "metrics.jsonl") for name in row} - {"step"}
    kept = written.read_bytes()
    assert [name for name in names if name.encode() not in kept] == []
    assert b"max_steps" in kept and str(made / "checkpoints").encode() in kept, "configuration and paths"
    assert len(list(made.glob("wandb/offline-run-*/files/media/table/samples*.table.json"))) == 3


@pytest.mark.property(23)
def test_a_checkpoint_of_a_real_run_holds_all_that_training_needs(made: Path) -> None:
    folder = (made / "checkpoints" / "latest").resolve()
    said = check_sound(folder)
    parts = {"optimizer.pt", "scheduler.pt", "trainer_state.json", "rank_0.pt"}
    whole = {
        "model.safetensors",
        "config.json",
        "tokenizer.json",
        "state.json",
        *(f"training/{name}" for name in parts),
    }
    assert whole <= set(said["sha256"]) and (said["step"], said["stage"], said["max_steps"]) == (3, "grpo", 3)
    assert json.loads((folder / "training" / "trainer_state.json").read_text())["global_step"] == 3
    moments = torch.load(folder / "training" / "optimizer.pt", weights_only=True)["state"]
    assert moments and all({"exp_avg", "exp_avg_sq", "step"} <= one.keys() for one in moments.values())


@pytest.fixture(scope="module")
def rescored(made: Path, tmp_path_factory) -> Path:
    """The directory of a rescoring with nothing changed, by the command."""
    place = tmp_path_factory.mktemp("rescored")
    words = ["+stage=rescore", f"rescore.run={made}", "run.dir=again"]
    before = sums(made)
    done = run_program(place, *words)
    assert done.returncode == 0, done.stderr
    assert "100.00% agree" in done.stdout and sums(made) == before, "the run is read and never written"
    return place / "again"


def test_an_unchanged_verifier_agrees_in_full(made: Path, rescored: Path) -> None:
    rows, stored = json_rows(rescored / "rescored.jsonl"), list(RunReader(made).rows())
    assert len(rows) == len(stored) > 0 and all(row["old"] == row["new"] and not row["changed"] for row in rows)
    assert [(row["step"], row["task"]) for row in rows] == [(row.step, row.completion.task.id) for row in stored]
    metrics = json.loads((rescored / "summary.json").read_text())["metrics"]
    assert metrics["agreement"] == 1.0 and metrics["changed"] == 0 and 0 < metrics["distinct"] <= len(rows)
    assert (rescored / "changed.jsonl").read_text() == ""
    page = (rescored / "report.html").read_text().partition("<h2>Numbers")[0]
    assert "old \\ new" in page and "learn" not in page and "Nothing wrong" not in page
    told = json.loads((rescored / "rescore.json").read_text())
    assert [step["step"] for step in told["steps"]] == list(rollout_steps(made))
    assert all(step["old"] == step["new"] and step["old"]["n"] > 0 for step in told["steps"])


def test_it_goes_on_after_a_kill_in_the_middle_of_a_line(made: Path, rescored: Path, tmp_path: Path) -> None:
    whole, output = (rescored / "rescored.jsonl").read_bytes(), tmp_path / "out.jsonl"
    lines = whole.splitlines(keepends=True)
    half = len(lines) // 2
    output.write_bytes(b"".join(lines[:half]) + lines[half][:20])
    (tmp_path / "out.jsonl.made.json").write_bytes((rescored / "rescored.jsonl.made.json").read_bytes())
    context, _ = context_in(tmp_path / "run", "rescore")
    result = rescore.run(compose(["+stage=rescore", f"rescore.run={made}", f"rescore.output={output}"]).config, context)
    assert output.read_bytes() == whole and result.metrics["system/rows_from_before"] == half
    assert result.metrics["completions"] == len([row for row in map(json.loads, lines) if not row["waited"]])
    with pytest.raises(InputError, match=r"was written with another verifier.sandbox.cpu_s"):
        words = ["+stage=rescore", f"rescore.run={made}", f"rescore.output={output}", "sandbox.cpu_s=9"]
        rescore.run(compose(words).config, context)


@pytest.fixture
def lenient(tmp_path: Path, monkeypatch) -> list[str]:
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "own" / "verifier").mkdir(parents=True)
    (tmp_path / "own" / "leniency.py").write_text(LENIENT)
    (tmp_path / "own" / "verifier" / "lenient.yaml").write_text("_target_: leniency.Lenient\n")
    return [f"hydra.searchpath=[{tmp_path / 'own'}]", "verifier=lenient"]


def rescore_with(made: Path, place: Path, *words: str) -> StageResult:
    context, _ = context_in(place, "rescore")
    return rescore.run(compose(["+stage=rescore", f"rescore.run={made}", *words]).config, context)


def test_another_verifier_shows_what_changed_and_never_what_was_cut(made: Path, tmp_path: Path, lenient) -> None:
    result = rescore_with(made, tmp_path / "run", *lenient, "verifier.word=''")
    told = json.loads((tmp_path / "run" / "rescore.json").read_text())
    counts = {(row["old"], row["new"]): row["completions"] for row in told["table"]}
    stored = [row for row in RunReader(made).rows() if not row.waited]
    changed = [row for row in stored if not row.completion.correct and not row.completion.truncated]
    assert result.metrics["changed"] == result.metrics["gained"] == len(changed) > 0
    assert {new for _, new in counts} <= {"passed", "truncated"} and sum(counts.values()) == len(stored)
    shown = json_rows(tmp_path / "run" / "changed.jsonl")
    verdicts = [row for row in shown if row["changed"] == "verdict"]
    assert [row["completion"] for row in verdicts] == [row.completion.text for row in changed]
    assert all(row["prompt"] and row["new"]["outcome"] == "passed" != row["old"]["outcome"] for row in verdicts)
    rates = (result.before["success"], result.after["success"])
    assert rates[1].value > rates[0].value and all(rate.low <= rate.value <= rate.high for rate in rates)


def test_a_broken_grader_ends_with_the_guard_once_all_is_answered(made: Path, tmp_path: Path, lenient) -> None:
    with pytest.raises(GuardStop, match="no oracle"):
        rescore_with(made, tmp_path / "run", *lenient, "verifier.word=broken")
    assert len(json_rows(tmp_path / "run" / "rescored.jsonl")) == len(list(RunReader(made).rows()))


def test_an_interrupt_keeps_what_is_judged(made: Path, tmp_path: Path, lenient) -> None:
    context, _ = context_in(tmp_path / "run", "rescore")
    context.interrupted = True
    with pytest.raises(Interrupted, match="continues there"):
        rescore.run(compose(["+stage=rescore", f"rescore.run={made}", *lenient]).config, context)


def test_options_are_the_run_s_own_but_for_what_is_given(made: Path) -> None:
    config = compose(["+stage=rescore", f"rescore.run={made}", "sandbox.cpu_s=9"]).config
    assert config.sandbox.cpu_s == 9 and config.data.limit == 40 and not config.cache.enabled


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "not given"),
        (["rescore.run=nowhere"], "no run is there"),
        (["rescore.run={bare}"], "the run holds no rollouts"),
    ],
)
def test_what_cannot_be_rescored_is_told_before_anything_starts(made: Path, tmp_path: Path, words, said) -> None:
    (tmp_path / "config.yaml").write_text((made / "config.yaml").read_text())
    config = compose(["+stage=rescore", *(word.format(bare=tmp_path) for word in words)]).config
    assert said in str([str(problem) for problem in preflight_problems(config, fetchable=False)])


def test_other_data_is_refused_by_the_tasks_that_it_lacks(made: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="rollouts answer tasks that the data has not"):
        rescore_with(made, tmp_path / "run", "data.limit=1")


def test_a_step_repeats_bit_for_bit_from_its_checkpoint(made: Path, tmp_path: Path) -> None:
    again = shutil.copytree(made, tmp_path / "again", symlinks=True)
    for path in (again / "summary.json", rollout_steps(again)[3]):
        path.unlink()
    shutil.rmtree(again / "checkpoints" / "step_000003")
    words = [f"run.resume={again}", "tracking=files"]
    done = run_program(tmp_path, *words)
    assert done.returncode in (0, 3), done.stderr + (again / "log.txt").read_text()
    assert rollout_steps(again)[3].read_bytes() == rollout_steps(made)[3].read_bytes()
    before, after = (json_rows(run / "metrics.jsonl")[-1] for run in (made, again))
    timed = [name for name in before if name.startswith(("time/", "system/"))]
    assert before["step"] == 3 and {**before, **{name: after.get(name) for name in timed}} == after
    folders = [run / "checkpoints" / "step_000003" for run in (made, again)]
    sums = [check_sound(folder)["sha256"] for folder in folders]
    assert sums[0]["model.safetensors"] == sums[1]["model.safetensors"]
    optimizers = [torch.load(folder / "training" / "optimizer.pt", weights_only=True)["state"] for folder in folders]
    torch.testing.assert_close(*optimizers, rtol=0, atol=0)


def test_rewards_advantages_and_fates_follow_from_the_rollouts(made: Path) -> None:
    """The normalizer's state follows from the rollouts of earlier steps."""
    config = load(made / "config.yaml")
    algorithm = build(config.algorithm, max_completion_tokens=config.model.max_completion_tokens)
    reward = build(config.reward)
    for path in rollout_steps(made).values():
        rows = read_rollouts(path)
        groups = recomputed(rows, reward, algorithm)
        again = rollout_rows(groups, algorithm.experience(groups, pad_id=0), algorithm.regularised)
        assert [row.fate for row in again] == [row.fate for row in rows]
        for name in ("reward", "advantage"):
            values = ([getattr(row, name) for row in side] for side in (again, rows))
            assert next(values) == pytest.approx(next(values)), name


def recomputed(rows: list[RolloutRow], reward: Reward, algorithm: Algorithm) -> Groups:
    """The groups of a step in which no group waits.

    Rows have neither tokens nor candidates: advantages depend on the number of tokens, and the verdict of a completion
    without a candidate has the bucket `parse`.
    """
    counts = [row.completion.tokens for row in rows]
    answers = [
        replace(row.completion, sampled=TokenSample((0,) * count, (0.0,) * count, False), candidate=Candidate(""))
        for row, count in zip(rows, counts, strict=True)
    ]
    found = []
    for number, members in groupby(zip(rows, answers, reward(answers), strict=True), lambda member: member[0].group):
        old, completions, rewarded = zip(*members, strict=True)
        shaped = algorithm.shaped_group(rewarded, completions)
        prompts, ids = tuple(row.prompt for row in old), ((0,),) * len(old)
        found.append(Group(old[0].step - 1, number, prompts, ids, completions, rewarded, shaped))
    variance = {group.id: kind for group in found if (kind := algorithm.group_filter().zero_variance_kind(group))}
    return Groups(rows[0].step - 1, tuple(found), tuple(found), (), (), variance, {})
