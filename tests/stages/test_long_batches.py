"""A batch that takes long shows how far it is, and an interrupt costs no completion that has ended: each is in a journal
when it ends, the run goes on from there, and its files are those of a run without the stop."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from endpoint import Endpoint, serving
from program import ENVIRONMENT, INTERPRETED, PROGRAM

from rlvr_exp.config.compose import compose
from rlvr_exp.config.load import to_yaml
from rlvr_exp.core.errors import InputError, Interrupted
from rlvr_exp.launch.resume import Start, begin, prepare
from rlvr_exp.models.policy import load_policy
from rlvr_exp.records import manifest
from rlvr_exp.records.context import RunContext
from rlvr_exp.records.rollout_files import read_evaluation
from rlvr_exp.rollouts.engines import journaled, local
from rlvr_exp.rollouts.sampler import sample_groups
from rlvr_exp.rollouts.sampling_params import LogitFilters, SamplingParams
from rlvr_exp.stages import collect, evaluate, infer, sft

SMALL = ["model.max_completion_tokens=24", "sandbox.workers=1"]
MEASURE = ["+stage=evaluate", *SMALL, "evaluation.tasks=4", "evaluation.samples=3", "verifier.validate=0"]
ALL = 4 * (3 + 1)
SOLVE = ["+stage=infer", *SMALL, "infer.tasks=6", "infer.decoding=sample", "infer.samples=3", "infer.batch_size=9"]


@cache
def policy():
    return load_policy(compose(MEASURE).config.model, 0)


def answer(prompt: str, seed: object) -> str:
    """What the real policy answers, behind the endpoint."""
    own = policy()
    sampling = SamplingParams(LogitFilters(), 24, own.eos_ids)
    key = None if seed is None else (str(seed),)
    [[found]] = sample_groups(own.model, [own.encode_prompt(prompt)], [[key]], sampling)
    return own.decode(found.ids)


def measured(run: Path) -> list:
    return [replace(one, prompt="") for one in read_evaluation(run, "after")]


def lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True) if path.exists() else []


def start(program: list[str], folder: Path, *words: str) -> subprocess.Popen[str]:
    command = [*program, *words]
    return subprocess.Popen(
        command, cwd=folder, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip


def ended(started: subprocess.Popen[str]) -> str:
    out, err = started.communicate(timeout=600)
    return out + err


def wait_for(what: Callable[[], bool], started: subprocess.Popen[str]) -> None:
    limit = time.monotonic() + 300
    while not what():
        assert started.poll() is None and time.monotonic() < limit, ended(started)
        time.sleep(0.05)


@pytest.mark.slow
@pytest.mark.parametrize(("stop", "program"), [(signal.SIGINT, PROGRAM), (signal.SIGKILL, INTERPRETED)])
def test_an_evaluation_of_an_endpoint_goes_on_without_asking_again(tmp_path, stop, program):
    served = ["engine=server", "engine.concurrency=4"]
    with serving(Endpoint(text=answer, chat=False, faults=[""] * 6, always="hang")) as endpoint:
        words = [*MEASURE, *served, f"engine.url={endpoint.url}"]
        journal = tmp_path / "run" / "journal" / "after.jsonl"
        started = start(program, tmp_path, *words, "run.dir=run")
        wait_for(lambda: len(lines(journal)) == 7, started)  # With its head.
        os.kill(started.pid, stop)
        said = ended(started)
        assert started.returncode == (130 if stop == signal.SIGINT else -stop), said
        assert stop == signal.SIGKILL or "6 completions are kept, run.resume=run goes on" in said
        with journal.open("ab") as torn:
            torn.write(b'{"key": "cut by a ki')
        asked = len(endpoint.completions())
        endpoint.always = ""
        again = ["run.resume=run"] if stop == signal.SIGINT else [*words, "run.dir=run", "run.resume=auto"]
        resumed = start(program, tmp_path, *again)
        said = ended(resumed)
        assert resumed.returncode == 0, said
        assert len(endpoint.completions()) - asked == ALL - 6, "what was answered is not asked for again"
        assert "6 completions are known from" in said and f"held out {ALL}/{ALL} completions" in said
        assert not (tmp_path / "run" / "journal").exists()
        asked, before = len(endpoint.seen), (tmp_path / "run" / "evaluation" / "after.jsonl.gz").read_bytes()
        again = start(program, tmp_path, "run.resume=run")
        assert "completed already: run" in ended(again) and again.returncode == 0
        assert len(endpoint.seen) == asked
        assert (tmp_path / "run" / "evaluation" / "after.jsonl.gz").read_bytes() == before
        whole = start(program, tmp_path, *words, "run.dir=whole")
        assert ended(whole) and whole.returncode == 0
    assert measured(tmp_path / "run") == measured(tmp_path / "whole")
    rates = [json.loads((tmp_path / name / "summary.json").read_text())["after"] for name in ("run", "whole")]
    assert rates[0] == rates[1]


@pytest.fixture
def stage(tmp_path, monkeypatch):
    """Runs a stage in this process and counts what is sampled; `after`: a stop is requested after so many completions."""
    monkeypatch.setattr(journaled, "EVERY_S", 0.0)
    monkeypatch.setattr(go := Stage(tmp_path), "stream", local.stream)
    monkeypatch.setattr(local, "stream", go.counted)
    return go


class Stage:
    def __init__(self, folder: Path):
        self.folder, self.sampled, self.events, self.stream = folder, 0, [], None

    def counted(self, model, prompts, keys, *rest):
        self.sampled += sum(map(len, keys))
        return self.stream(model, prompts, keys, *rest)

    def __call__(self, module, words: list[str], name: str, after: int = 10**9):
        self.sampled, self.events = 0, []

        def listen(event):
            self.events.append(event)
            if event.get("completions", event.get("done", 0)) >= after:
                context.interrupted = True

        context = RunContext(self.folder / name, listen)
        context.directory.mkdir(exist_ok=True)
        (context.directory / "config.yaml").write_text(to_yaml(compose(words)))
        manifest.begin(context.directory, words[0].partition("=")[2], 0, [], "")
        return module.run(compose(words).config, context)

    @property
    def progress(self) -> list[tuple[int, int]]:
        return [(one["done"], one["total"]) for one in self.events if one.get("unit") == "completions"]


def test_an_evaluation_is_interrupted_within_a_batch_and_ends_the_same(stage, tmp_path):
    whole = stage(evaluate, MEASURE, "whole")
    assert stage.sampled == ALL and stage.progress[0] == (0, ALL) and stage.progress[-1] == (ALL, ALL)
    assert any(one.get("tokens_per_second") for one in stage.events)
    with pytest.raises(Interrupted, match=r"stopped during held out; \d+ completions are kept, run.resume="):
        stage(evaluate, MEASURE, "run", after=5)
    kept = len(lines(tmp_path / "run" / "journal" / "after.jsonl")) - 1
    assert 5 <= kept < ALL
    found = stage(evaluate, MEASURE, "run")
    assert stage.sampled == ALL - kept and stage.progress[0] == (kept, ALL)
    assert measured(tmp_path / "run") == measured(tmp_path / "whole") and found.after == whole.after
    assert not (tmp_path / "run" / "journal").exists()


def test_a_training_that_stops_before_its_first_checkpoint_has_its_first_measurement(stage, tmp_path, monkeypatch):
    """The run measures success and loss on dev, as for tuning."""
    words = ["+stage=sft", *MEASURE[1:], "algorithm.max_steps=1", "run.select.every_steps=0", "run.select.times=0"]
    words += ["evaluation.split=dev"]
    with monkeypatch.context() as changed, pytest.raises(Interrupted):
        changed.setattr(sft, "train", lambda *_: (_ for _ in ()).throw(Interrupted("stopped in the first step")))
        stage(sft, words, "run")
    assert stage.sampled == ALL
    first = read_evaluation(tmp_path / "run", "before")
    prepare(Start(), tmp_path / "run", tmp_path / "run")
    monkeypatch.setattr(sft, "train", lambda *_: (1, {}))
    stage(sft, words, "run")
    assert stage.sampled == ALL, "those after training alone"
    assert read_evaluation(tmp_path / "run", "before") == first
    assert not (tmp_path / "run" / "journal").exists()


def test_answers_are_continued_within_a_batch(stage, tmp_path):
    """Three tasks a batch; the second one is interrupted."""
    out = tmp_path / "out.jsonl"
    journal = tmp_path / "out.jsonl.journal"
    stage(infer, [*SOLVE, f"infer.output={out}"], "whole")
    assert stage.sampled == 18 and stage.progress[-1] == (18, 18)
    whole = out.read_bytes()
    out.unlink()
    with pytest.raises(Interrupted, match="stopped after 3 of 6 tasks"):
        stage(infer, [*SOLVE, f"infer.output={out}"], "run", after=11)
    kept = len(lines(journal)) - 1
    assert out.read_bytes() == b"".join(whole.splitlines(keepends=True)[:3]) and 2 <= kept < 9
    journal.write_bytes(journal.read_bytes() + b'{"key": "to')
    stage(infer, [*SOLVE, f"infer.output={out}"], "again")
    assert stage.sampled == 9 - kept and stage.progress[0] == (9 + kept, 18)
    assert out.read_bytes() == whole and not journal.exists()


@pytest.mark.slow
def test_trajectories_of_several_turns_are_continued_within_a_batch(stage, tmp_path):
    """A later turn follows from turns of the journal as from those that were just sampled."""
    pytest.importorskip("ast_grep_py")
    words = ["+stage=collect", *SMALL, "collect.split=practice", "collect.tasks=4", "collect.samples=2"]
    words += ["collect.batch_size=8", "model.max_completion_tokens=48"]
    out, journal = tmp_path / "out.jsonl", tmp_path / "out.jsonl.journal"
    words += [f"collect.output={out}"]
    stage(collect, words, "whole")
    turns, whole = stage.sampled, out.read_bytes()
    assert turns > 8
    out.unlink()
    with pytest.raises(Interrupted, match="stopped after 0 of 8 trajectories"):
        stage(collect, words, "run", after=(turns + 8) // 2)
    kept = len(lines(journal)) - 1
    assert not out.read_bytes() and 8 < kept < turns
    stage(collect, words, "again")
    assert out.read_bytes() == whole and stage.sampled == turns - kept and not journal.exists()


def test_an_evaluation_is_resumed_by_name_and_training_only_if_it_stopped_in_a_measurement(tmp_path):
    for words, kept in ((MEASURE, False), (["+stage=grpo"], False), (["+stage=grpo"], True)):
        root = tmp_path / f"{len(words)}-{kept}"
        checked = compose([*words, f"run.resume={root}"])
        (root / "journal").mkdir(parents=True) if kept else root.mkdir()
        (root / "config.yaml").write_text(to_yaml(checked))
        (root / "metrics.jsonl").touch()
        if words == MEASURE or kept:
            assert "starts over" in begin(checked, root).notes[0]
        else:
            with pytest.raises(InputError, match="holds no checkpoint"):
                begin(checked, root)
