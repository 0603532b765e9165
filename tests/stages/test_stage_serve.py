"""+stage=serve: refused options, the bounded queue, malformed requests, and the verdicts of POST /verify.

tests/stages/test_serve_clients.py has the clients of OpenEnv.
"""

import base64
import json
import re
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from program import json_rows, run_program
from serving import post, served
from starlette.testclient import TestClient

from rlvr_exp.config.compose import compose
from rlvr_exp.config.needs import missing_artifacts
from rlvr_exp.config.stage_options import Serve
from rlvr_exp.core.errors import InputError
from rlvr_exp.launch.preflight import domain_of
from rlvr_exp.serve.judge import BROKEN, Busy, Judge, Refused, VerifyEndpoint
from rlvr_exp.serve.server import application
from rlvr_exp.tasks.base import Candidate
from rlvr_exp.verifiers.base import Request, Verdict, Verifier

ROW = {"id": "sum", "code": "def add(a, b):\n    return a + b", "entry_point": "add"}
CASES = [{"args": [2, 3], "expected": 5}, {"args": [918273, 1], "expected": 918274}]
KEY = "a-key-of-clients"


class Slow(Verifier):
    """A verifier whose verdicts come when a test says so."""

    name, version = "python_io", "1"

    def __init__(self) -> None:
        self.waiting: list[Future[Verdict]] = []

    def submit(self, request: Request) -> Future[Verdict]:
        if request.candidate.text == "break":
            raise RuntimeError("a secret of the server")
        self.waiting.append(Future())
        return self.waiting[-1]

    def finish(self) -> None:
        for one in self.waiting:
            one.set_result(Verdict("passed", passed=1, total=1))
        self.waiting.clear()

    def close(self) -> None:
        """Nothing to end."""


def body(*codes: str) -> bytes:
    rows = [{"id": index, "code": code, "entry_point": "f", "cases": CASES} for index, code in enumerate(codes)]
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def client(verifier: Verifier, key: str = "", **options: Any) -> TestClient:
    """A client of the judge alone."""
    options_ = Serve(judge_only=True, **options)
    app = application(VerifyEndpoint(Judge(verifier, options_.queue), "python_io"), None, options_, key)
    return TestClient(app, base_url="http://127.0.0.1:8000")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["serve.host=0.0.0.0"], "serve.host: other machines reach this address, so that clients need a key"),
        (["serve.api_key_env=sk-1"], "serve.api_key_env: the name of an environment variable, never the key"),
        (["serve.port=70000"], "serve.port"),
        (["serve.sessions=0"], "serve.sessions"),
        (["serve.timeout_s=0"], "serve.timeout_s"),
        (["model=smollm2"], "model"),
    ],
)
def test_faulty_options_are_refused(words: Sequence[str], told: str) -> None:
    with pytest.raises(InputError, match=re.escape(told)):
        compose(["+stage=serve", *words])


def test_missing_packages_and_keys_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def told(*words: str) -> str:
        return "\n".join(str(need.problem) for need in missing_artifacts(compose(["+stage=serve", *words]).config))

    monkeypatch.setattr("rlvr_exp.config.needs.find_spec", lambda name: None if name == "openenv" else True)
    assert "the package openenv is not installed" in told() and "pip install 'rlvr_exp[openenv]'" in told()
    assert told("serve.judge_only=true") == ""
    assert "serve.api_key_env: the variable is not set" in told("serve.judge_only=true", "serve.api_key_env=NO_KEY")


def test_the_judge_alone_needs_no_data() -> None:
    assert domain_of(compose(["+stage=serve"]).config) is not None
    assert domain_of(compose(["+stage=serve", "serve.judge_only=true", "data.path=nowhere"]).config) is None


def test_a_full_queue_pushes_back_and_recovers() -> None:
    verifier = Slow()
    judge = Judge(verifier, 2)
    first = judge.submit([Request(None, Candidate("a")), Request(None, Candidate("b"))])
    with pytest.raises(Busy, match="2 of 2 places"):
        judge.submit([Request(None, Candidate("c"))])
    with pytest.raises(Refused, match="at most serve.queue=2"):
        judge.submit([Request(None, Candidate("c"))] * 3)
    verifier.finish()
    assert [one.result(1).outcome for one in first] == ["passed", "passed"]
    assert len(judge.submit([Request(None, Candidate("c"))] * 2)) == 2 and judge.outcomes() == {"passed": 2}


def test_a_broken_verifier_gives_no_verdict_and_frees_its_place() -> None:
    judge = Judge(Slow(), 1)
    for _ in range(3):
        [broken] = judge.submit([Request(None, Candidate("break"))])
        assert broken.result(1) == Verdict("no_verdict", log=BROKEN) and "secret" not in BROKEN


def test_the_endpoint_answers_503_with_retry_after_while_the_queue_is_full() -> None:
    verifier = Slow()
    with client(verifier, queue=2) as judge, ThreadPoolExecutor() as threads:
        waiting = threads.submit(judge.post, "/verify", content=body("x = 1", "x = 2"))
        while len(verifier.waiting) < 2:
            time.sleep(0.01)
        full = judge.post("/verify", content=body("x = 3"))
        assert full.status_code == 503 and full.headers["retry-after"] == "1"
        assert full.json() == {"error": "2 of 2 places of the queue are taken"}
        verifier.finish()
        assert [json.loads(line)["id"] for line in waiting.result().text.splitlines()] == [0, 1]
        too_many = judge.post("/verify", content=body("x", "y", "z"))
        assert too_many.status_code == 413 and "at most serve.queue=2" in too_many.json()["error"]


def test_malformed_requests_have_one_json_error() -> None:
    with client(Slow(), key=KEY, max_body_mb=1) as judge:
        key = {"authorization": f"Bearer {KEY}"}
        refused = {
            400: [judge.post("/verify", content=b" \n", headers=key)],
            401: [
                judge.post("/verify", content=b"[]"),
                judge.post("/verify", headers={"authorization": "Bearer x"}),
            ],
            403: [
                judge.post("/verify", headers={**key, "origin": "http://elsewhere.example"}),
                judge.post("/verify", headers={**key, "host": "elsewhere.example"}),
                judge.post("/verify", headers={**key, "host": "["}),
                judge.post("/verify", headers={**key, "origin": "http://["}),
            ],
            404: [judge.get("/../etc/passwd", headers=key), judge.post("/reset", headers=key)],
            405: [judge.get("/verify", headers=key)],
            413: [judge.post("/verify", content=b"x" * (2 << 20), headers=key)],
        }
        for status, answers in refused.items():
            for answer in answers:
                assert answer.status_code == status and [*answer.json()] == ["error"], answer.text
        unread = judge.post("/verify", content=b'{"id": 1}\n\n\xff\n[]', headers=key).text.splitlines()
        assert [json.loads(line)["outcome"] for line in unread] == ["no_verdict"] * 3
        assert [json.loads(line)["log"].partition(":")[0] for line in unread] == ["line 1", "line 3", "line 4"]
        by_address = {"authorization": "Basic " + base64.b64encode(f"user:{KEY}".encode()).decode()}
        assert judge.post("/verify", content=b'{"id": 1}', headers=by_address).status_code == 200
        assert judge.get("/health").json() == {"status": "healthy"}


@pytest.mark.heavy
def test_the_judge_gives_the_verdicts_of_the_file(tmp_path: Path) -> None:
    rows = [
        {**ROW, "cases": CASES},
        {**ROW, "id": "wrong", "code": "def add(a, b):\n    return a - b", "cases": CASES},
        {**ROW, "id": 3, "code": "def add(a", "cases": CASES},
        {"id": "no cases", "code": ""},
        {**ROW, "id": "null", "code": None, "cases": CASES},
    ]
    given = b"".join(json.dumps(row).encode() + b"\n" for row in rows) + b"not JSON\n"
    (tmp_path / "in.jsonl").write_bytes(given)
    run_program(
        tmp_path, "+stage=verify", "verify.input=in.jsonl", "verify.output=out.jsonl", "verifier.max_no_verdict_rate=1"
    )

    def compared(found: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        return [{key: value for key, value in row.items() if key not in ("seconds", "cached")} for row in found]

    with served(tmp_path / "run", "serve.judge_only=true", "serve.api_key_env=CLIENT_KEY", CLIENT_KEY=KEY) as (url, _):
        status, answer = post(f"{url}/verify", given, authorization=f"Bearer {KEY}")
        assert status == 200 and post(f"{url}/verify", given)[0] == 401
    answers = [json.loads(line) for line in answer.splitlines()]
    assert [row["outcome"] for row in answers][:2] == ["passed", "failed"]
    assert compared(answers) == compared(json_rows(tmp_path / "out.jsonl"))
    written = [path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()]
    assert written and not any(KEY.encode() in content for content in written)
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["status"] == "completed" and summary["metrics"]["passed"] == 1
