"""environment=openenv: refused options, verdicts of servers, failures of servers, and training on an environment of `openenv init`."""

import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from program import ENVIRONMENT, json_rows, run_program
from serving import served

from rlvr_exp.config.compose import compose
from rlvr_exp.config.load import build
from rlvr_exp.core.errors import InputError
from rlvr_exp.domains.remote.client import RemoteServer, Unfit
from rlvr_exp.domains.remote.tasks import RemoteProblem, RemoteTasks
from rlvr_exp.domains.remote.verifier import REWARD, RemoteJudge
from rlvr_exp.stages.shared.data_and_verifier import build_verifier
from rlvr_exp.tasks.base import Candidate, Task
from rlvr_exp.verifiers.base import Request, Verdict

NOWHERE = "http://127.0.0.1:9"
KEY = "a-key-of-clients"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "environment.url: no address"),
        (["environment.url=HOST:1"], "environment.url: no address"),
        (["environment.url=http://u:hunter22@h:1"], "an address of a run holds no credentials"),
        ([f"environment.url={NOWHERE}", "environment.api_key_env=sk-1"], "the name of an environment variable"),
        ([f"environment.url={NOWHERE}", "data=arc"], "the tasks of a server are its own"),
        ([f"environment.url={NOWHERE}", "data.path=x"], "data.path: the tasks come from the server"),
        ([f"environment.url={NOWHERE}", "environment.turns=0"], "environment.turns"),
    ],
)
def test_faulty_options_are_refused(words: Sequence[str], told: str) -> None:
    with pytest.raises(InputError, match=re.escape(told)) as refused:
        compose(["+stage=grpo", "environment=openenv", *words])
    assert "hunter22" not in str(refused.value)


def test_the_environment_chooses_data_verifier_and_reward() -> None:
    config = compose(["+stage=grpo", "environment=openenv", f"environment.url={NOWHERE}"]).config
    assert (config.data.url, config.verifier.url) == (NOWHERE, NOWHERE)
    assert build(config.reward).terms["environment"].weight == 1


def test_an_answer_becomes_the_only_field_or_an_object() -> None:
    def of(text: str, **schema: Any) -> Any:
        server = RemoteServer(NOWHERE, "")
        server.__dict__["action"] = schema
        try:
            return server.action_of(text)
        except Unfit as fault:
            return str(fault)

    text, number = {"text": {"type": "string"}}, {"move": {"type": "integer"}}
    assert of('{"a": 1}', required=["text"], properties=text) == {"text": '{"a": 1}'}
    assert (
        of("3", required=["move"], properties=number)
        == of('{"move": 3}', required=["move"], properties={})
        == {"move": 3}
    )
    assert of('{"x": 1, "y": 2}', required=["x", "y"]) == {"x": 1, "y": 2}
    assert "JSON object with the fields x, y" in of("[1]", required=["x", "y"])
    assert "not JSON" in of("[" * 100_000, required=["x", "y"])


def test_later_prompts_continue_the_earlier_ones() -> None:
    domain = RemoteTasks(url=NOWHERE)
    first = Task("seed-0", "remote", 0.0, "Say it.\n", RemoteProblem(0, ('{"prompt": "Say it."}',)))
    second = domain.after(first, "it", '{"prompt": "Again."}', 0.5)
    assert second.inputs == "Say it.\nit\n\nAgain.\n"
    assert second.problem == RemoteProblem(0, ('{"prompt": "Say it."}', '{"prompt": "Again."}'), ("it",), 0.5)


def test_a_server_that_is_not_there_gives_no_tasks_and_no_verdict() -> None:
    pytest.importorskip("openenv", reason="needs the package openenv: pip install 'rlvr_exp[openenv]'")
    with pytest.raises(InputError, match=re.escape("environment.url: the OpenEnv server gives no tasks")):
        RemoteTasks(url=NOWHERE).splits()
    with RemoteJudge(url=NOWHERE, timeout_s=0.5) as judge:
        [verdict] = judge.verify([Request(RemoteProblem(0, ("",)), Candidate("x"))])
    assert verdict.outcome == "no_verdict" and "in 0.5 s" in verdict.log


# Real servers.


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return found.getsockname()[1]


@contextmanager
def counting(port: int, sessions: int = 4, steady: bool = True) -> Iterator[str]:
    """A server whose episodes have two steps: say the seed, then its double."""
    import uvicorn
    from openenv.core.env_server import Action, Environment, Observation, State
    from openenv.core.env_server.http_server import create_fastapi_app

    class Say(Action):
        number: int

    class Seen(Observation):
        text: str

    class Count(Environment[Say, Seen, State]):
        SUPPORTS_CONCURRENT_SESSIONS = True
        made = 0

        def reset(self, seed: int | None = None, episode_id: str | None = None, **_: Any) -> Seen:
            Count.made += 1
            self._seed, self._step = seed or 0, 0
            return Seen(text=f"Say {seed}" if steady else f"Say {seed} for the {Count.made}th time")

        def step(self, action: Say, timeout_s: float | None = None, **_: Any) -> Seen:
            self._step += 1
            if action.number == 666:
                raise RuntimeError("a fault of the environment")
            if self._step == 1:
                return Seen(text="Now its double", reward=0.5 if action.number == self._seed else 0.0)
            return Seen(text="", reward=0.5 if action.number == 2 * self._seed else 0.0, done=True)

        @property
        def state(self) -> State:
            return State()

    app = create_fastapi_app(Count, Say, Seen, sessions, mode="simulation")
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_level="error", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join()


Asked = Callable[..., Verdict]


def asked_of(judge: RemoteJudge, domain: RemoteTasks) -> Asked:
    """Asks for the verdict on the last of several answers of the task of a seed."""

    def ask(seed: int, *answers: str) -> Verdict:
        task = domain.splits()["train"][seed]
        for answer in answers:
            verdict = judge.verify([Request(task.problem, domain.parse(answer, task))])[0]
            if verdict.outputs:
                task = domain.after(task, answer, verdict.outputs[0], verdict.measures[REWARD])
        return verdict

    return ask


@pytest.mark.heavy
@pytest.mark.slow
def test_an_episode_of_two_turns_is_played_by_repetition() -> None:
    pytest.importorskip("openenv", reason="needs the package openenv: pip install 'rlvr_exp[openenv]'")
    with counting(free_port(), sessions=1) as url, RemoteJudge(url=url, concurrency=3, timeout_s=20) as judge:
        domain = RemoteTasks(url=url, tasks=4, held_out=2)
        ask = asked_of(judge, domain)
        assert [task.inputs for task in domain.splits()["train"][:2]] == ['{"text": "Say 0"}\n', '{"text": "Say 1"}\n']
        half, whole = ask(3, "3"), ask(3, "3", "6")
        assert (half.outcome, half.measures[REWARD], half.outputs) == ("failed", 0.5, ('{"text": "Now its double"}',))
        assert (whole.outcome, whole.measures[REWARD], whole.outputs) == ("passed", 1.0, None)
        assert (ask(3, "3", "7").outcome, ask(3, "3", "7").measures[REWARD]) == ("failed", 0.5)
        for unfit in (ask(3, "3", "many"), ask(3, "3", "[6]")):  # No JSON, and no number, which the server refuses.
            assert (unfit.outcome, unfit.bucket, unfit.measures[REWARD]) == ("failed", "parse", 0.5)
        task = domain.splits()["train"][2]
        both = judge.verify(
            [Request(task.problem, Candidate("2"))] * 12
        )  # The server has one session for three of ours.
        assert {one.measures[REWARD] for one in both} == {0.5}


@pytest.mark.heavy
@pytest.mark.slow
def test_failures_of_a_server_give_no_verdict_and_end_with_them() -> None:
    pytest.importorskip("openenv", reason="needs the package openenv: pip install 'rlvr_exp[openenv]'")
    port = free_port()
    with RemoteJudge(url=f"http://127.0.0.1:{port}", timeout_s=1.5) as judge:
        with counting(port) as url:
            ask = asked_of(judge, RemoteTasks(url=url, tasks=4, held_out=2))
            assert ask(1, "1").outcome == "failed"
            fault = ask(1, "666")
            assert fault.outcome == "no_verdict" and "a fault of the environment" in fault.log
        assert ask(1, "1").outcome == "no_verdict"
        with counting(port):
            assert ask(1, "1", "2").outcome == "passed"
    with counting(port, steady=False) as url, RemoteJudge(url=url, timeout_s=5) as judge:
        changed = asked_of(judge, RemoteTasks(url=url, tasks=4, held_out=2))(1, "1")
        assert changed.outcome == "no_verdict" and "did not repeat the episode" in changed.log


@pytest.mark.heavy
@pytest.mark.slow
def test_both_ways_give_the_verdicts_of_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Our client on our server, with a key, against the verifier of this process."""
    pytest.importorskip("openenv", reason="needs the package openenv: pip install 'rlvr_exp[openenv]'")
    monkeypatch.setenv("CLIENT_KEY", KEY)
    arc = build(compose(["+stage=evaluate"]).config.data)
    tasks = arc.splits()["train"][:48]
    texts = [arc.gold_completion(tasks[at - at % 3]) or "" for at in range(len(tasks))]
    with build_verifier(compose(["+stage=verify"]).config) as verifier:
        own = verifier.verify(
            [Request(task.problem, arc.parse(text, task)) for task, text in zip(tasks, texts, strict=True)]
        )
    with served(tmp_path / "run", "serve.api_key_env=CLIENT_KEY", CLIENT_KEY=KEY) as (url, _):
        domain = RemoteTasks(url=url, api_key_env="CLIENT_KEY", tasks=len(tasks), held_out=1)
        remote = domain.splits()["train"]
        assert [task.inputs for task in remote] == [arc.task_prompt(task) for task in tasks]
        with RemoteJudge(url=url, api_key_env="CLIENT_KEY") as judge:
            asked = [Request(task.problem, domain.parse(text, task)) for task, text in zip(remote, texts, strict=True)]
            found = judge.verify(asked)
            before = len(os.listdir("/proc/self/fd"))
            assert {one.outcome for one in judge.verify(asked * 10)} == {"passed", "failed"}
            assert len(os.listdir("/proc/self/fd")) <= before
        with pytest.raises(InputError, match="the OpenEnv server gives no tasks"):
            RemoteTasks(url=url, tasks=1, held_out=1).splits()
    assert [one.outcome == "passed" for one in found] == [one.outcome == "passed" for one in own]
    assert 0 < sum(one.outcome == "passed" for one in found) < len(found)


@pytest.mark.heavy
@pytest.mark.slow
def test_it_trains_on_an_environment_of_openenv_init(tmp_path: Path) -> None:
    pytest.importorskip("openenv", reason="needs the package openenv: pip install 'rlvr_exp[openenv]'")
    code = "from openenv.cli.__main__ import main; main()"
    subprocess.run([sys.executable, "-c", code, "init", "parrot"], cwd=tmp_path, check=True, capture_output=True)
    port = free_port()
    url, folder = f"http://127.0.0.1:{port}", tmp_path / "parrot"
    command = [sys.executable, "-m", "uvicorn", "server.app:app", "--port", str(port), "--log-level", "error"]
    with subprocess.Popen(command, cwd=folder, env=ENVIRONMENT) as server:
        try:
            for _ in range(600):
                with socket.socket() as link:
                    if link.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.1)
            words = (
                f"+stage=grpo +experiment=quick environment=openenv environment.url={url} environment.turns=2".split()
            )
            sizes = (
                "data.tasks=8 data.held_out=4 run.dir=run model.max_completion_tokens=8 algorithm.max_steps=2".split()
            )
            done = run_program(tmp_path, *words, *sizes)
        finally:
            server.terminate()
    assert done.returncode == 0, done.stdout + done.stderr
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["status"] == "completed" and summary["steps"] == 2
    rows = [row for row in json_rows(tmp_path / "run" / "metrics.jsonl") if row.get("step")]
    assert rows and all(0 < row["reward/mean"] <= 2 for row in rows if "reward/mean" in row)
