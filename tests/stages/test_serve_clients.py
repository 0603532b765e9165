"""The clients of openenv, TRL and verifiers on a server of +stage=serve: their verdicts are ours, malformed requests change nothing,
no reference answer leaves the server, and sessions leave no descriptor, thread or process behind.

The tests need the packages openenv and verifiers (0.3: verifiers 0.4 and openenv 0.10 need different releases of mcp).
"""

import asyncio
import itertools
import json
import os
import random
import socket
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from serving import post, served

from rlvr_exp.config.compose import compose
from rlvr_exp.config.load import build
from rlvr_exp.stages.shared.data_and_verifier import build_verifier
from rlvr_exp.tasks.base import Task
from rlvr_exp.verifiers.base import Request, Verdict

openenv = pytest.importorskip("openenv", reason="needs the package openenv: pip install 'rlvr_exp[openenv]'")
pytestmark = [pytest.mark.slow, pytest.mark.heavy]

EPISODES = 200
KEY = "a-key-of-clients"
SESSIONS = 16
WRONG = "def solve(grid):\n    return grid[:1]"
BROKEN = "def solve(grid:\n    return"
RAISES = "def solve(grid):\n    raise ValueError(grid)"


@dataclass(frozen=True)
class Judged:
    """A completion of the task at an index of the split, and the verdict that this process gives."""

    index: int
    task: Task
    completion: str
    verdict: Verdict

    @property
    def told(self) -> tuple[str, str | None, float]:
        """What a client has to receive: outcome, bucket and reward."""
        return self.verdict.outcome, self.verdict.bucket, float(self.verdict.outcome == "passed")


@pytest.fixture(scope="module")
def judged() -> Sequence[Judged]:
    """Right, wrong, unparsable and raising completions, verified here."""
    config = compose(["+stage=verify"]).config
    domain = build(compose(["+stage=evaluate"]).config.data)
    tasks = domain.splits()["train"][:EPISODES]
    right = [domain.gold_completion(task) or "" for task in tasks]
    texts = [(right[at], right[at - 1], WRONG, right[at], BROKEN, RAISES)[at % 6] for at in range(EPISODES)]
    with build_verifier(config) as verifier:
        asked = [Request(task.problem, domain.parse(text, task)) for task, text in zip(tasks, texts, strict=True)]
        verdicts = verifier.verify(asked)
    found = [Judged(at, *one) for at, one in enumerate(zip(tasks, texts, verdicts, strict=True))]
    assert {one.verdict.reason for one in found} >= {"passed", "wrong_answer", "parse", "runtime_error"}
    return found


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, int]]:
    with served(tmp_path_factory.mktemp("served") / "run", f"serve.sessions={SESSIONS}") as found:
        yield found


def told(result: Any) -> tuple[str, str | None, float]:
    assert result.done
    return result.observation["outcome"], result.observation["bucket"], result.reward


def test_the_package_s_own_client_gets_our_verdicts(server: tuple[str, int], judged: Sequence[Judged]) -> None:
    with openenv.GenericEnvClient(base_url=server[0]).sync() as client:
        for one in judged:
            first = client.reset(index=one.index) if one.index % 2 else client.reset(seed=one.index)
            assert first.observation["task"] == one.task.id and not first.done and first.reward is None
            assert told(client.step({"completion": one.completion})) == one.told
            assert client.state() | {"episode_id": ""} == {
                "episode_id": "", "step_count": 1, "task": one.task.id, "index": one.index, "done": True,
            }  # fmt: skip


def test_steps_over_http_name_their_task(server: tuple[str, int], judged: Sequence[Judged]) -> None:
    for one in judged[:12]:
        body = {"action": {"completion": one.completion}, "index": one.index}
        status, answer = post(f"{server[0]}/step", json.dumps(body).encode(), content_type="application/json")
        found = json.loads(answer)
        assert status == 200 and found["done"]
        assert (found["observation"]["outcome"], found["observation"]["bucket"], found["reward"]) == one.told


def test_the_package_s_validation_passes(server: tuple[str, int]) -> None:
    from openenv.cli._validation import validate_running_environment

    report = validate_running_environment(server[0])
    assert report["passed"], [one for one in report["criteria"] if not one["passed"]]


def test_the_environment_factory_of_trl_gets_our_verdicts(
    server: tuple[str, int], judged: Sequence[Judged], tmp_path: Path
) -> None:
    """GRPOTrainer plays the episodes with its tool loop; a script replaces the sampling of its model."""
    torch = pytest.importorskip("torch")
    import trl
    from datasets import Dataset
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    words = Tokenizer(models.BPE({letter: place for place, letter in enumerate(letters)}, []))
    words.pre_tokenizer, words.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    marks = ["<|im_start|>", "<|im_end|>", "<|endoftext|>"]
    words.add_special_tokens(marks)
    words.add_tokens(
        [AddedToken(mark, normalized=False) for mark in ("<tool_call>", "</tool_call>", "<think>", "</think>")]
    )
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, eos_token=marks[1], pad_token=marks[2])
    template = Path(trl.__file__).parent / "chat_templates" / "qwen3.jinja"
    tokenizer.chat_template = template.read_text()
    shape = dict(hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=1, head_dim=16)
    config = Qwen3Config(vocab_size=len(tokenizer), num_key_value_heads=1, max_position_embeddings=1 << 14, **shape)
    by_prompt = {}
    found: dict[int, list[tuple[str, str | None, float]]] = {one.index: [] for one in judged}

    class Arc:
        """As TRL's guide to OpenEnv writes an environment."""

        def __init__(self) -> None:
            self._client = openenv.GenericEnvClient(base_url=server[0]).sync()
            self._client.connect()

        def reset(self, index: int, **_: Any) -> str:
            self._index, self._result = index, self._client.reset(index=index)
            by_prompt[self._result.observation["prompt"].strip()] = judged[index].completion
            return self._result.observation["prompt"]

        def answer(self, completion: str) -> str:
            """Answer the task.

            Args:
                completion: The program.
            """
            self._result = self._client.step({"completion": completion})
            return self._result.observation["outcome"]

        def get_reward(self) -> float:
            found[self._index].append(told(self._result))
            return self._result.reward

    class Scripted(trl.GRPOTrainer):
        def _generate_single_turn(self, prompt_ids: Any, *_: Any, **__: Any) -> Any:
            ids = [tokenizer.encode(self._say(tokenizer.decode(prompt))) for prompt in prompt_ids]
            return ids, None

        def _say(self, text: str) -> str:
            user = text.rsplit("<|im_start|>user\n", 1)[1].partition("<|im_end|>")[0].strip()
            if user not in by_prompt:  # The answer of the tool.
                return "done<|im_end|>"
            call = json.dumps({"name": "answer", "arguments": {"completion": by_prompt[user]}})
            return f"<tool_call>\n{call}\n</tool_call><|im_end|>"

    arguments = trl.GRPOConfig(
        output_dir=str(tmp_path), per_device_train_batch_size=8, num_generations=2, max_steps=EPISODES // 4,
        max_completion_length=4096, use_cpu=True, report_to="none", save_strategy="no", shuffle_dataset=False,
    )  # fmt: skip
    data = Dataset.from_list([{"prompt": [{"role": "user", "content": ""}], "index": one.index} for one in judged])
    torch.manual_seed(0)
    trainer = Scripted(Qwen3ForCausalLM(config), args=arguments, train_dataset=data, processing_class=tokenizer,
                       environment_factory=Arc)  # fmt: skip
    trainer.train()
    assert {index: set(own) for index, own in found.items()} == {one.index: {one.told} for one in judged}
    assert sum(map(len, found.values())) == 2 * EPISODES
    for pool in trainer._environment_pool.values():
        for one in pool:
            one._client.close()


def test_the_taskset_of_verifiers_gets_our_verdicts(server: tuple[str, int], judged: Sequence[Judged]) -> None:
    """Their environment plays the episodes of their tasks; a script replaces the player."""
    module = pytest.importorskip("verifiers.v1.tasksets.openenv", reason="needs verifiers with its extra openenv")
    by_task = {one.task.id: one.completion for one in judged}
    rewards: dict[str, float] = {}

    class Player:
        """What their engine gives an environment, with fixed answers."""

        terminated = False

        def interaction(self, task: Any) -> "Player":
            self._name = task.data.name
            self.trace = self
            return self

        async def __aenter__(self) -> "Player":
            return self

        async def __aexit__(self, *_: object) -> None:
            return None

        async def turn(self, message: str) -> "Player":
            self.last_reply = by_task[json.loads(message)["observation"]["task"]]
            return self

        def record_reward(self, name: str, value: float) -> None:
            assert name == "openenv_reward"
            rewards[self._name] = value

    resets = [{"index": one.index} for one in judged]
    taskset = module.OpenEnvConfig(id="openenv", base_url=server[0], resets=resets)
    environment = module.OpenEnvEnv(module.OpenEnvEnvConfig(taskset=taskset))

    async def play() -> None:
        for task in environment.taskset.load():
            agents = type("Agents", (), {"player": Player()})()
            await environment.run(task, agents)

    asyncio.run(play())
    assert rewards == {f"{server[0]}#{one.index}": one.told[2] for one in judged}


def resources(process: int) -> dict[str, int]:
    """Numbers of descriptors, threads and children of a process."""
    tasks = [*Path(f"/proc/{process}/task").iterdir()]
    children = sum(len((task / "children").read_text().split()) for task in tasks)
    return {"descriptors": len(os.listdir(f"/proc/{process}/fd")), "threads": len(tasks), "children": children}


def settled(process: int) -> dict[str, int]:
    """The resources, once they have not changed for two seconds."""
    found, since = resources(process), time.monotonic()
    while time.monotonic() - since < 2:
        time.sleep(0.2)
        if (now := resources(process)) != found:
            found, since = now, time.monotonic()
    return found


def test_ten_thousand_episodes_leave_nothing_behind(server: tuple[str, int], judged: Sequence[Judged]) -> None:
    """Sessions of several episodes, abandoned ones, and steps over HTTP, from as many threads as there are sessions."""
    from websockets.sync.client import connect

    address, each, count = server[0].replace("http", "ws") + "/ws", 10, 10_000
    wrong: list[object] = []

    def session(number: int) -> int:
        rng = random.Random(number)
        with connect(address, compression=None) as link:

            def asked(kind: str, **data: object) -> dict[str, Any]:
                link.send(json.dumps({"type": kind, "data": data}))
                return json.loads(link.recv(60))["data"]

            for _ in range(each):
                one = rng.choice(judged)
                asked("reset", index=one.index)
                found = asked("step", completion=one.completion)
                seen = found["observation"]
                if (seen["outcome"], seen["bucket"], found["reward"]) != one.told:
                    wrong.append((one, found))
            if rng.random() < 0.3:  # It leaves in the middle of an episode, without a word.
                asked("reset", index=0)
                link.send(json.dumps({"type": "step", "data": {"completion": WRONG}}))
                link.socket.shutdown(socket.SHUT_RDWR)
        return each

    with ThreadPoolExecutor(SESSIONS - 2) as threads:
        list(threads.map(session, range(SESSIONS * 4)))  # Pools of threads and workers reach their size.
        before = settled(server[1])
        played = sum(threads.map(session, range(count // each)))
    assert played == count and wrong == []
    after = settled(server[1])
    assert after["children"] == before["children"] and after["descriptors"] <= before["descriptors"]
    assert after["threads"] <= before["threads"], (before, after)


def malformed(rng: random.Random) -> Iterator[tuple[str, str, bytes, dict[str, str]]]:
    """Kind (a path, or `ws`), method, body and headers of requests that cannot be answered."""
    good, key = b'{"action": {"completion": "x"}, "index": 0}', {"authorization": f"Bearer {KEY}"}
    values = [None, True, -1, 1.5, 10**30, "0", "", [], {}, [0], {"index": 0}, "\x00", "x" * 300]
    for value in values:
        for name in ("index", "seed", "split", "episode_id"):
            yield "/reset", "POST", json.dumps({"index": 10**6, name: value if value is not None else -1}).encode(), key
        yield "/step", "POST", json.dumps({"action": value}).encode(), key
        yield (
            "/step",
            "POST",
            json.dumps({"action": {"completion": value if type(value) is not str else 0}, "index": 0}).encode(),
            key,
        )
        yield "ws", "", json.dumps({"type": value}).encode(), key
        yield "ws", "", json.dumps({"type": "step", "data": value}).encode(), key
        yield (
            "ws",
            "",
            json.dumps({"type": "reset", "data": {"index": value if value is not None else -1, "seed": -1}}).encode(),
            key,
        )
    for path in ("/verify", "/step", "/reset"):
        for body in (b"{", b"\xff\xfe", b"[" * 100_000, b"nan", b'{"a": NaN}'[:9], b"x" * (3 << 20)):
            yield path, "POST", body if path != "/verify" else b" " * (len(body) > 1 << 20 and 3 << 20), key
        for headers in (
            {},
            {"authorization": "Bearer "},
            {"authorization": f"Basic {KEY}"},
            {"authorization": f"Bearer {KEY}x"},
        ):
            yield path, "POST", good, headers
        yield path, "POST", good, {**key, "origin": "http://elsewhere.example"}
        yield path, "PUT", good, key
    for path in (
        "/../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/..%2fetc%2fpasswd",
        "/static/../secret",
        "/arc/nope",
        "//",
    ):
        yield path, "GET", b"", key
    for body in (
        b"",
        b"{",
        b"[]",
        b"null",
        b'"reset"',
        b"\xff\x00",
        b"[" * 100_000,
        b'{"type": "reset", "data": {"split": "test"}}',
    ):
        yield "ws", "", body, key
    yield "ws", "", b"x" * (2 << 20), key
    for headers in ({}, {"authorization": "Bearer no"}, {**key, "origin": "http://elsewhere.example"}):
        yield "ws", "", b'{"type": "state"}', headers
    for name in ("", "1", "../..", "a" * 5000):
        yield f"ws?session_id={name or '%00'}", "", b'{"type": "state"}', key
    while True:
        noise = bytes(rng.randrange(256) for _ in range(rng.randrange(1, 60)))
        yield rng.choice(["ws", "/step", "/reset"]), "POST", noise, key


def refused(url: str, kind: str, method: str, body: bytes, headers: dict[str, str]) -> bool:
    """Whether the server refuses a request: a status of 4xx with a JSON error, an error message, or a closed session."""
    from urllib.error import HTTPError
    from urllib.request import Request as HttpRequest
    from urllib.request import urlopen

    from websockets.exceptions import ConnectionClosed, InvalidStatus
    from websockets.sync.client import connect

    if kind.startswith("/"):
        asked = HttpRequest(url + kind, body or None, {"content-type": "application/json", **headers}, method=method)
        try:
            urlopen(asked, timeout=60).close()
        except HTTPError as fault:
            return 400 <= fault.code < 500 and [*json.loads(fault.read())] == ["error"]
        except (ConnectionError, OSError):  # A body that is too large: the server answers before it has read all of it.
            return len(body) > 1 << 20
        return False
    try:
        with connect(f"{url.replace('http', 'ws')}/{kind}", additional_headers=headers, compression=None) as link:
            try:
                link.send(body.decode() if body.isascii() else body)
                return json.loads(link.recv(30))["type"] == "error"
            except ConnectionClosed:
                return True
    except InvalidStatus as fault:
        return fault.response.status_code == 403


def test_malformed_requests_change_nothing(tmp_path: Path, judged: Sequence[Judged]) -> None:
    words = ("serve.api_key_env=CLIENT_KEY", "serve.max_body_mb=1", "serve.sessions=4")
    headers = {"Authorization": f"Bearer {KEY}"}
    with served(tmp_path / "run", *words, CLIENT_KEY=KEY) as (url, process):
        with openenv.GenericEnvClient(base_url=url, headers=headers).sync() as client:
            client.reset(index=judged[0].index)
            state, before = client.state(), settled(process)
            requests = malformed(random.Random(0))
            sent = [next(requests) for _ in range(240)]
            assert [one for one in sent if not refused(url, *one)] == []
            assert client.state() == state and settled(process)["children"] == before["children"]
            assert told(client.step({"completion": judged[0].completion})) == judged[0].told
        with ThreadPoolExecutor(4) as threads:  # All sessions are free again.

            def play(one: Judged) -> bool:
                with openenv.GenericEnvClient(base_url=url, headers=headers).sync() as own:
                    own.reset(index=one.index)
                    return told(own.step({"completion": one.completion})) == one.told

            assert all(threads.map(play, judged[:4]))


def test_idle_sessions_end_and_further_ones_are_refused(tmp_path: Path) -> None:
    from websockets.exceptions import ConnectionClosed
    from websockets.sync.client import connect

    with served(tmp_path / "run", "serve.sessions=1", "serve.timeout_s=2") as (url, _):
        address = url.replace("http", "ws") + "/ws"
        with connect(address) as first, connect(address) as second:
            first.send('{"type": "reset", "data": {"index": 0}}')
            assert json.loads(first.recv(30))["type"] == "observation"
            assert json.loads(second.recv(30))["data"]["code"] == "CAPACITY_REACHED"
            with pytest.raises(ConnectionClosed):
                first.recv(30)
        with connect(address) as third:
            third.send('{"type": "reset", "data": {"index": 0}}')
            assert json.loads(third.recv(30))["type"] == "observation"


# The reference answer stays on the server.

SECRETS = ("77665544", "REFERENCE_COMMENT", "99887766", "55443322")
"""Parts of the reference answer, of an expected output, of a hidden input, and of a wrong solution."""
PROBLEM = {
    "id": "double",
    "text": "Write a function double(x) that doubles a number.",
    "entry_point": "double",
    "solution": "def double(x):\n    # REFERENCE_COMMENT\n    return 77665544 * 0 + x + x",
    "tests": [
        {"args": [2], "expected": 4},
        {"args": [49943883], "expected": 99887766},
        {"args": [55443322], "expected": 110886644},
    ],
    "shown": [{"args": [2], "expected": 4}],
    "split": "train",
}
DOUBLED = {"args": [66554433], "expected": 133108866}
HIDDEN = (*SECRETS, "49943883", "110886644", "66554433", "133108866")
ATTACKS = (
    "def double(x):\n    return x + x",
    "def double(x):\n    return 4 if x == 2 else 0",
    "def double(x):\n    if x == 2:\n        return 4\n    raise ValueError(f'the input is {x}')",
    "def double(x):\n    return x",
    "def double(x):\n    if x == 2:\n        return 4\n    print(x)\n    while True: pass",
    "seen = []\ndef double(x):\n    seen.append(x)\n    if len(seen) > 1:\n        raise RuntimeError(seen)\n    return 4",
    "import sys\ndef double(x):\n    raise ValueError({k: v for k, v in sys._getframe(1).f_locals.items()})",
    "import gc\ndef double(x):\n    raise ValueError([o for o in gc.get_objects() if type(o) is list and 4990 * 10008 + 3963 in o])",
    "seen = []\ndef double(x):\n    seen.append(x)\n    if x == 2:\n        raise RuntimeError(seen)\n    return x + x",
    "def double(x:",
    "",
)  # fmt: skip


@contextmanager
def recorded(port: int) -> Iterator[tuple[str, bytearray]]:
    """The address of a relay to a port of this machine, and all bytes that it has passed to clients."""
    seen = bytearray()
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def pump(source: socket.socket, target: socket.socket, keep: bool) -> None:
            with suppress(OSError):
                while data := source.recv(1 << 16):
                    if keep:
                        seen.extend(data)
                    target.sendall(data)
            with suppress(OSError):
                target.shutdown(socket.SHUT_WR)

        def accept() -> None:
            with suppress(OSError):
                while True:
                    near, _ = listening.accept()
                    far = socket.create_connection(("127.0.0.1", port))
                    threading.Thread(target=pump, args=(near, far, False), daemon=True).start()
                    threading.Thread(target=pump, args=(far, near, True), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}", seen
        listening.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize("environment", ["single_turn", "retry"])
def test_no_byte_shows_the_reference_answer_or_a_hidden_case(tmp_path: Path, environment: str) -> None:
    """The shown case is the first of one problem and the last of the other."""
    last = {**PROBLEM, "id": "last", "text": "Double the number x.", "tests": [DOUBLED, *reversed(PROBLEM["tests"])]}
    (tmp_path / "problems.jsonl").write_text(json.dumps(PROBLEM) + "\n" + json.dumps(last) + "\n")
    words = ("data=problems", f"data.path={tmp_path}/problems.jsonl", f"environment={environment}", "sandbox.wall_s=5")
    with served(tmp_path / "run", *words) as (url, _), recorded(int(url.rsplit(":", 1)[1])) as (relay, seen):
        outcomes = []
        with openenv.GenericEnvClient(base_url=relay).sync() as client:
            for text, index in itertools.product(ATTACKS, (0, 1)):
                result = client.reset(index=index)
                assert "double" in result.observation["prompt"]
                while not result.done:
                    result = client.step({"completion": text})
                outcomes.append(result.observation["outcome"])
                client.state()
        assert outcomes[:2] == ["passed"] * 2 and set(outcomes[2:]) <= {"failed", "rejected"}
        for text in ATTACKS:
            body = json.dumps({"action": {"completion": text}, "index": 0}).encode()
            assert post(f"{relay}/step", body, content_type="application/json")[0] == 200
        for path in ("/schema", "/metadata", "/state", "/openapi.json", "/problems/splits", "/docs"):
            post(relay + path, None)
        for path, given in {
            "/problems/task": {"split": "train", "index": 0},
            "/problems/num_tasks": {"split": "train"},
        }.items():
            assert post(relay + path, json.dumps(given).encode(), content_type="application/json")[0] == 200
        assert (
            post(relay + "/problems/task", b'{"split": "test", "index": 0}', content_type="application/json")[0] == 400
        )
    assert len(seen) > 10_000 and b'"outcome":"passed"' in seen.replace(b" ", b"")
    places = [(word, seen.find(word.encode())) for word in HIDDEN]
    assert [(word, bytes(seen[at - 300 : at + 50])) for word, at in places if at >= 0] == []


def test_retries_are_played_in_turns(tmp_path: Path) -> None:
    (tmp_path / "problems.jsonl").write_text(json.dumps(PROBLEM) + "\n")
    words = ("data=problems", f"data.path={tmp_path}/problems.jsonl", "environment=retry", "environment.attempts=3")
    with served(tmp_path / "run", *words) as (url, _), openenv.GenericEnvClient(base_url=url).sync() as client:
        first = client.reset(index=0)
        second = client.step({"completion": ATTACKS[3]})
        assert (second.done, second.reward, second.observation["outcome"]) == (False, 0.0, "failed")
        assert (
            second.observation["prompt"] != first.observation["prompt"] and ATTACKS[3] in second.observation["prompt"]
        )
        assert "expected 4" in second.observation["log"] and "expected 4" in second.observation["prompt"]
        third = client.step({"completion": ATTACKS[0]})
        assert (third.done, third.reward, third.observation["prompt"]) == (True, 1.0, "")


@pytest.mark.skipif(
    not Path(sys.executable).with_name("ast-grep").exists(), reason="needs ast-grep: pip install 'rlvr_exp[ast-grep]'"
)
def test_edits_are_played_in_steps(tmp_path: Path) -> None:
    words = ("data=edits", "environment=edits")
    domain = build(compose(["+stage=evaluate", *words]).config.data)
    task = domain.splits()["train"][0]
    with served(tmp_path / "run", *words) as (url, _), openenv.GenericEnvClient(base_url=url).sync() as client:
        first = client.reset(index=0)
        second = client.step({"completion": domain.gold_completion(task)})
        assert (first.observation["prompt"], second.observation["outcome"]) == (domain.task_prompt(task), "passed")
        assert not second.done and second.observation["prompt"] not in ("", first.observation["prompt"])
        last = client.step({"completion": "done"})
        assert (last.done, last.reward) == (True, 1.0)
