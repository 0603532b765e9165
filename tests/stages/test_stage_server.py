"""evaluate and infer against an endpoint, as a person starts them: with a server that fails now and then, one that hangs,
one that is wrong, and the real `transformers serve`."""

import json
import signal
import subprocess
import time
from pathlib import Path

import pytest
import servers
from endpoint import FAULTS, Endpoint, serving
from program import ENVIRONMENT, PROGRAM, json_rows

import rlvr_exp
from rlvr_exp.records import manifest

SERVED = ("engine=server", "engine.backoff_s=0.01", "engine.api_key_env=SERVER_CODE", "run.dir=run")
KEY = "words-that-nobody-may-see"
TINY = Path(rlvr_exp.__file__).parent / "assets" / "models" / "tiny"


def same(prompt: str, seed: object) -> str:
    return "def solve(g):\n    return g"


def run(folder: Path, stage: str, url: str, *words: str) -> subprocess.CompletedProcess[str]:
    command = [*PROGRAM, f"+stage={stage}", *SERVED, f"engine.url={url}", *words]
    environment = {**ENVIRONMENT, "SERVER_CODE": KEY}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)


def summary(folder: Path) -> dict:
    return json.loads((folder / "run" / "summary.json").read_text())


def answers(folder: Path) -> list[dict]:
    path = folder / "run" / "answers.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_an_evaluation_outlives_a_server_that_fails_and_counts_all_of_it(tmp_path):
    """Episodes of two turns; whatever fails is asked for again."""
    faults = [fault for fault in FAULTS if fault != "dribble"] * 2
    words = ["environment=retry", "evaluation.tasks=6", "evaluation.samples=2", "engine.retries=20"]
    with serving(Endpoint(text=same, key=KEY, faults=list(faults), seed=False)) as endpoint:
        done = run(tmp_path, "evaluate", endpoint.url, *words)
    assert done.returncode == 0, done.stderr
    found, engine = summary(tmp_path), manifest.section(tmp_path / "run", "engine")
    counts = {name: value for name, value in found["metrics"].items() if name.startswith("system/engine_")}
    assert found["after"]["pass_at_1"]["n"] == 6 and found["after"]["pass_at_1_greedy"]["n"] == 6
    assert counts["system/engine_requests"] == sum(bool(body) for _, body, _ in endpoint.seen) + 1  # and /models
    assert sum(value for name, value in counts.items() if "retries" in name) == len(faults) - faults.count("fewer")
    assert counts["system/engine_completions"] > 18 and counts["system/engine_unanswered"] == 0
    assert engine["model"] == "small" and engine["n"] == "honoured" and engine["url"] == endpoint.url
    assert "small" in done.stdout + done.stderr
    assert not [path for path in (tmp_path / "run").rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]


@pytest.mark.slow
def test_answers_are_resumed_after_a_stop_while_the_server_hangs(tmp_path):
    words = ["infer.tasks=5", "infer.batch_size=1", "infer.output=run/answers.jsonl", "engine.timeout_s=100"]
    with serving(Endpoint(text=same, key=KEY, faults=["", ""], always="hang")) as endpoint:
        command = [*PROGRAM, "+stage=infer", *SERVED, f"engine.url={endpoint.url}", *words]
        started = subprocess.Popen(
            command, cwd=tmp_path, env={**ENVIRONMENT, "SERVER_CODE": KEY}, stderr=subprocess.PIPE, text=True
        )
        while len(endpoint.completions()) < 3 and started.poll() is None:
            time.sleep(0.05)
        began = time.monotonic()
        started.send_signal(signal.SIGINT)
        said = started.communicate(timeout=60)[1]
    assert started.returncode == 130, said
    assert time.monotonic() - began < 40 and "stopped after 2 of 5 tasks" in said
    first = answers(tmp_path)
    with serving(Endpoint(text=same, key=KEY)) as endpoint:
        done = run(tmp_path, "infer", endpoint.url, *words, "run.dir=run2")
        fresh = run(tmp_path, "infer", endpoint.url, *words, "run.dir=run3", "infer.output=run3/all.jsonl")
    assert done.returncode == fresh.returncode == 0, done.stderr + fresh.stderr
    assert len(first) == 2 and answers(tmp_path)[:2] == first
    assert (tmp_path / "run" / "answers.jsonl").read_text() == (tmp_path / "run3" / "all.jsonl").read_text()


def test_a_server_that_is_not_there_is_exit_2_and_one_that_breaks_exit_3(tmp_path):
    wrong = run(tmp_path, "evaluate", "http://127.0.0.1:9/v1", "engine.retries=0")
    assert wrong.returncode == 2 and "engine.url: the server does not answer" in wrong.stderr
    with serving(Endpoint(text=same, key=KEY, always="500")) as endpoint:
        words = ["run.dir=run2", "evaluation.tasks=30", "engine.retries=1"]
        broken = run(tmp_path, "evaluate", endpoint.url, *words)
    assert broken.returncode == 3 and "completions were never answered" in broken.stderr
    found = json.loads((tmp_path / "run2" / "summary.json").read_text())
    assert found["metrics"]["system/engine_unanswered"] >= 1 and not found["after"]


@pytest.mark.slow
def test_transformers_serve_answers_as_our_own_sampler_does(tmp_path):
    """Greedily, token for token; and the probe finds what it ignores."""
    words = ["infer.tasks=8", "model.max_completion_tokens=64"]
    with servers.transformers(TINY, tmp_path / "log.txt") as real:
        done = run(tmp_path, "infer", real, f"engine.model={TINY}", "engine.retries=1", *words)
    assert done.returncode == 0, done.stderr
    ours = subprocess.run(
        [*PROGRAM, "+stage=infer", "run.dir=own", *words], cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True
    )
    assert ours.returncode == 0, ours.stderr
    own = json_rows(tmp_path / "own" / "answers.jsonl")
    assert [row | {"logprob": None} for row in own] == answers(tmp_path)
    found = manifest.section(tmp_path / "run", "engine")
    assert found["api"] == "completions" and "500" in found["why_text"]
    assert found["n"] == found["logprobs"] == "ignored" and found["temperature"] == "honoured"
    assert found["max_tokens"] == found["usage"] == found["greedy"] == "honoured"
    assert found["stop"] in ("honoured, the text is kept", "not known")
