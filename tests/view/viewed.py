"""A folder of runs for the tests of the page, its index, and a real server of it."""

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn
from completions import completion
from report_pages import HOSTILE, rollouts, whole_run

from rlvr_exp.records.rollout_files import RolloutRow, write_rollouts
from rlvr_exp.view.index import Index
from rlvr_exp.view.server import Watch, app, listen

TOKEN = "a-token"
TOKENS = [("x", -0.5), (" =", -0.01), (" 1", -2.25), ("<eos>", -0.04)]
"""Tokens of a sample with their log-probabilities."""


def runs(root: Path) -> Path:
    """Two finished runs, one with two seeds, and a run of which only steps are written."""
    root.mkdir()
    whole_run(root / "first")
    begun = root / "below" / "begun"
    begun.mkdir(parents=True)
    (begun / "config.yaml").write_text("stage: grpo\nseed: 3\nalgorithm: {max_steps: 9}\n")
    rollouts(begun, 1, text=HOSTILE)
    episode(begun, 2)
    write_rollouts(begun, 3, [RolloutRow(completion("t7", completion="x = 1"), 3, 0, "Set x.", token_logprobs=TOKENS)])
    return root


def episode(run: Path, step: int) -> None:
    """A solver's plan and two programs, then a tester's set of tests."""
    plan, good, bad = "add one", "def f(x): return x + 1", "def f(x): return 2"
    asked = "Write f.\n"
    caught = [{"text": "f(1) == 2", "valid": True, "catches": []}, {"text": "f(2) == 3", "valid": True, "catches": [1]}]
    turns = [
        (0, 0, asked, plan, {"role": "solver", "stage": "plan"}),
        (1, 0, asked + plan + "\n", good, {"role": "solver", "stage": "code", "program": 0}),
        (1, 1, asked + plan + "\n", bad, {"role": "solver", "stage": "code", "program": 1}),
        (2, 0, asked + good + "\n", "f(1) == 2\nf(2) == 3", {"role": "tester", "tests": caught, "programs": 2}),
    ]
    rows = [
        RolloutRow(completion("t9", completion=text, sample=sample), step, group, prompt, reward=0.5, about=about)
        for group, sample, prompt, text, about in turns
    ]
    write_rollouts(run, step, rows)


def indexed(root: Path, place: Path) -> Index:
    index = Index(root, place / "index.sqlite")
    index.refresh()
    return index


@contextmanager
def served(index: Index) -> Iterator[tuple[Watch, int]]:
    """A server of an index that is brought up to date, with its port."""
    watch = Watch(index, lambda done, total: None)
    with listen(0) as socket, watch:
        config = uvicorn.Config(app(watch, TOKEN), log_level="warning", lifespan="off", timeout_graceful_shutdown=1)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [socket]})
        thread.start()
        try:
            yield watch, socket.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join()


def ask(port: int, target: str, method: str = "GET", **headers: str) -> http.client.HTTPResponse:
    """The answer to a request, as it stands in `target`; with the cookie unless another is given."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
    given = {"Host": f"127.0.0.1:{port}", "Cookie": f"rlvr_view={TOKEN}"}
    given |= {name.replace("_", "-"): value for name, value in headers.items()}
    for name, value in given.items():
        if value:
            connection.putheader(name, value)
    connection.endheaders()
    return connection.getresponse()
