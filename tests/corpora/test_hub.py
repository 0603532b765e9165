"""Downloads from the hub, by the real client from a local server that answers the requests of a download."""

import hashlib
import json
import subprocess
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from makers import made
from program import ENVIRONMENT, INTERPRETED, run_program

from rlvr_exp.config.compose import compose
from rlvr_exp.config.model import EMBEDDED_MODELS
from rlvr_exp.config.needs import missing_artifacts
from rlvr_exp.core.errors import InputError

COMMIT = "c" * 40
ROWS = b'{"prompt": "Add.", "tests": []}\n'
TINY = {path.name: path.read_bytes() for path in sorted((EMBEDDED_MODELS / "tiny").iterdir())}
REPOSITORIES = {
    ("models", "maker/tiny"): TINY | {"README.md": b"---\nlicense: mit\n---\n"},
    ("datasets", "maker/rows"): {"train.jsonl": ROWS, "data/more.bin": b"more"},
    ("models", "maker/broken"): {"config.json": b"{}", "model.safetensors": b"weights"},
}


class Hub(BaseHTTPRequestHandler):
    """`/api/KIND/NAME/revision/REVISION`, `/api/KIND/NAME/tree/COMMIT` and `NAME/resolve/COMMIT/FILE`."""

    def do_HEAD(self) -> None:
        self._answer(False)

    def do_GET(self) -> None:
        self._answer(True)

    def _answer(self, body: bool) -> None:
        parts = self.path.partition("?")[0].strip("/").split("/")
        asked = parts[1:] if parts[0] == "api" else parts if parts[0] == "datasets" else ["models", *parts]
        kind, name, what, revision, *rest = asked[0], "/".join(asked[1:3]), *asked[3:]
        files = REPOSITORIES.get((kind, name))
        if files is None:
            self._send(404, b"", body, {"X-Error-Code": "RepoNotFound"})
        elif revision not in ("main", COMMIT):
            self._send(404, b"", body, {"X-Error-Code": "RevisionNotFound"})
        elif what == "resolve":
            content = files["/".join(rest)]
            self._send(200, content, body, {"ETag": f'"{hashlib.sha1(content).hexdigest()}"', "X-Repo-Commit": COMMIT})
        elif what == "tree":
            listed = [
                {"type": "file", "path": file, "size": len(text), "oid": "0" * 40, **_large(file, text)}
                for file, text in files.items()
            ]
            self._send(200, json.dumps(listed).encode(), body)
        else:
            listed = [{"rfilename": file, "size": len(text), **_large(file, text)} for file, text in files.items()]
            self._send(200, json.dumps({"id": name, "sha": COMMIT, "siblings": listed}).encode(), body)

    def _send(self, status: int, content: bytes, body: bool, headers: Mapping[str, str] = {}) -> None:
        self.send_response(status)
        for key, value in {"Content-Length": str(len(content)), **headers}.items():
            self.send_header(key, value)
        self.end_headers()
        if body:
            self.wfile.write(content)

    def log_message(self, *_: object) -> None: ...


def _large(file: str, content: bytes) -> dict:
    """The checksum of a large file. That of the repository `broken` is wrong."""
    if not file.endswith((".safetensors", ".bin")):
        return {}
    checksum = hashlib.sha256(b"other" if content == b"weights" else content).hexdigest()
    return {"lfs": {"sha256": checksum, "oid": checksum, "size": len(content), "pointerSize": 100}}


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def download(place: Path, address: str, *words: str) -> subprocess.CompletedProcess[str]:
    """The program in a process of its own, since the client reads its variables when it is imported."""
    env = {key: value for key, value in ENVIRONMENT.items() if not key.endswith("_OFFLINE")}
    env |= {"HF_ENDPOINT": address, "HF_HOME": str(place / "home")}
    command = [*INTERPRETED, "+stage=prepare", "prepare=hub", *words]
    return subprocess.run(command, cwd=place, env=env, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.slow
def test_a_model_is_downloaded_recorded_and_used(tmp_path: Path, address: str) -> None:
    done = download(tmp_path, address, "prepare.name=maker/tiny", "prepare.output=models/tiny")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "use it with model.path=models/tiny" in done.stdout
    assert {path.name: path.read_bytes() for path in (tmp_path / "models" / "tiny").iterdir()} == REPOSITORIES[
        "models", "maker/tiny"
    ]
    record = json.loads((tmp_path / "models" / "tiny.hub.json").read_text())
    assert (record["name"], record["revision"], record["commit"]) == ("maker/tiny", "main", COMMIT)
    assert record["sha256"] == {
        name: hashlib.sha256(text).hexdigest() for name, text in REPOSITORIES["models", "maker/tiny"].items()
    }
    assert sorted(path.name for path in (tmp_path / "models").iterdir()) == ["tiny", "tiny.hub.json"]
    planned = run_program(tmp_path, "+stage=grpo", "model.path=models/tiny", "run.dry=true")
    assert planned.returncode == 0, planned.stderr
    again = download(tmp_path, address, "prepare.name=maker/tiny", "prepare.output=models/tiny")
    assert again.returncode == 2 and "prepare.output: exists" in again.stderr


@pytest.mark.slow
def test_chosen_files_of_a_data_set(tmp_path: Path, address: str) -> None:
    words = ["prepare.name=maker/rows", "prepare.kind=dataset", "prepare.files=['*.jsonl']", "prepare.output=rows"]
    done = download(tmp_path, address, *words)
    assert done.returncode == 0 and "use it with data.path=rows" in done.stdout, done.stderr
    assert [path.name for path in (tmp_path / "rows").rglob("*")] == ["train.jsonl"]
    assert (tmp_path / "rows" / "train.jsonl").read_bytes() == ROWS


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["prepare.name=maker/nothing"], "prepare.name: the hub has no such model"),
        (["prepare.name=maker/tiny", "prepare.revision=v9"], "prepare.revision: maker/tiny has no such revision"),
        (["prepare.name=maker/tiny", "prepare.files=[x]"], "prepare.files: no file matches"),
        (["prepare.name=maker/broken"], "model.safetensors differs from the hub's checksum"),
    ],
)
def test_refusals_leave_nothing_under_the_final_name(
    tmp_path: Path, address: str, words: list[str], problem: str
) -> None:
    done = download(tmp_path, address, *words, "prepare.output=models/out")
    assert done.returncode == 2 and problem in done.stderr, done.stdout + done.stderr
    assert not [path for path in tmp_path.glob("models/*") if not path.name.startswith(".")]


@pytest.mark.slow
def test_a_hub_that_gives_no_answer_is_one_error(tmp_path: Path) -> None:
    done = download(tmp_path, "http://127.0.0.1:9", "prepare.name=maker/tiny", "prepare.output=models/out")
    assert done.returncode == 2 and "Traceback" not in done.stdout + done.stderr
    assert "prepare.name: the hub at http://127.0.0.1:9 gave no answer" in done.stderr
    assert not (tmp_path / "models").exists()


def test_an_offline_machine_is_told_so(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="HF_HUB_OFFLINE forbids downloads"):
        made(tmp_path / "run", "hub", "prepare.name=maker/tiny", f"prepare.output={tmp_path}/out")
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


@pytest.mark.parametrize(("word", "what"), [("", "not given"), ("prepare.name=no-owner", "not a name of the hub")])
def test_a_name_has_an_owner(word: str, what: str) -> None:
    with pytest.raises(InputError, match=f"prepare.name: {what}"):
        compose(["+stage=prepare", "prepare=hub", *filter(None, [word])])


def test_data_of_the_hub_have_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (need,) = missing_artifacts(compose(["+stage=grpo", "data=code", "data.path=maker/rows", "verifier=pytest"]).config)
    command = "python -m rlvr_exp +stage=prepare prepare=hub prepare.name=maker/rows prepare.kind=dataset"
    assert f"{command} prepare.output=downloads/rows, then data.path=downloads/rows" in need.problem.remedy
