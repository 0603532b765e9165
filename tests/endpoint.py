"""A small OpenAI-compatible server for tests, which honours what it is told to honour and fails as it is told to fail."""

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from rlvr_exp.core.seeds import derive

WORDS = "the river runs to sea and back again while boats go home under old bridges".split()
FAULTS = ("500", "429", "cut", "nonsense", "half", "no choices", "no end", "drop", "dribble", "fewer")
"""What a request may meet in place of an answer; `fewer` is an answer with one choice of several."""


def babble(prompt: str, seed: Any, count: int = 12) -> str:
    return " ".join(WORDS[derive(prompt, str(seed), place) % len(WORDS)] for place in range(count))


@dataclass
class Endpoint:
    """How a server answers; every option may be changed while it runs."""

    text: Callable[[str, Any], str] = babble
    """(prompt, seed) -> completion; the seed None is greedy."""
    models: Sequence[str] = ("small",)
    chat: bool = True
    n: bool = True
    surplus: int = 0
    """Choices that nobody asked for, in each answer."""
    seed: bool = True
    temperature: bool = True
    filters: Sequence[str] = ("top_p", "top_k", "min_p", "repetition_penalty")
    """The sampling fields that it honours."""
    strict: bool = False
    """It refuses sampling fields that the OpenAI API does not have."""
    logprobs: bool = True
    usage: bool = True
    stop: str = "removed"
    """removed, kept or ignored"""
    says_stop: bool = False
    """It says which text ended a completion, as vLLM does."""
    limit: str = "max_tokens"
    key: str = ""
    longest: int = 10**6
    """Characters of a prompt."""
    faults: list[str] = field(default_factory=list)
    """Of the next completions, in the order of their arrival; empty: none."""
    always: str = ""
    """A fault of every completion, but those of the probe."""
    delay: Callable[[dict[str, Any]], float] = lambda body: 0.0
    seen: list[tuple[str, dict[str, Any], float]] = field(default_factory=list)
    """Path, body and time of each request."""
    url: str = ""
    closing: threading.Event = field(default_factory=threading.Event)
    drawn: int = 0

    def completions(self) -> list[dict[str, Any]]:
        """The bodies of requests for completions, without those of the probe."""
        return [body for _, body, _ in self.seen if body and not is_probe(body)]


def is_probe(body: dict[str, Any]) -> bool:
    return "about a river" in prompt_of(body)


def prompt_of(body: dict[str, Any]) -> str:
    return body["messages"][-1]["content"] if "messages" in body else body["prompt"]


@contextmanager
def serving(endpoint: Endpoint) -> Iterator[Endpoint]:
    class Handler(_Handler):
        served = endpoint

    server = _Server(("127.0.0.1", 0), Handler)
    endpoint.url = f"http://127.0.0.1:{server.server_port}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield endpoint
    finally:
        endpoint.closing.set()
        server.shutdown()
        server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256  # With five, as the library has it, the sixth connection at once waits a second.


class _Handler(BaseHTTPRequestHandler):
    served: Endpoint
    protocol_version = "HTTP/1.1"

    def log_message(self, *given: Any) -> None:
        pass

    def do_GET(self) -> None:
        self.served.seen.append((self.path, {}, time.monotonic()))
        self._send(200, {"data": [{"id": name} for name in self.served.models]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        one = self.served
        one.seen.append((self.path, body, time.monotonic()))
        if one.key and self.headers["Authorization"] != f"Bearer {one.key}":
            given = self.headers["Authorization"]
            return self._send(401, {"error": {"message": f"no such key: {given}"}})
        if body["model"] not in one.models:
            return self._send(404, {"error": {"message": f"no model {body['model']}"}})
        if "messages" in body and not one.chat:
            return self._send(500, {"error": {"message": "no template"}})
        if one.strict and (unknown := {"top_k", "generation_config"} & set(body)):
            return self._send(400, {"error": {"message": f"Unrecognized request argument: {unknown}"}})
        if one.limit not in body:
            return self._send(400, {"error": {"message": f"use '{one.limit}'"}})
        if len(prompt_of(body)) > one.longest:
            return self._send(400, {"error": {"message": "this model's maximum context length is 9 tokens"}})
        time.sleep(one.delay(body))
        fault = ""
        if not is_probe(body):
            fault = one.faults.pop(0) if one.faults else one.always
        self._answer(body, fault)

    def _answer(self, body: dict[str, Any], fault: str) -> None:
        answer = self._completion(body, 1 if fault == "fewer" else body.get("n", 1))
        content = json.dumps(answer).encode()
        if fault == "hang":
            self.served.closing.wait(30)
            self.close_connection = True
        elif fault == "drop":
            self.close_connection = True
        elif fault in ("500", "404"):
            self._send(int(fault), {"error": {"message": "broken"}})
        elif fault.startswith("429"):
            self._send(429, {"error": {"message": "slow down"}}, {"Retry-After": fault.partition(" ")[2] or "0"})
        elif fault == "nonsense":
            self._write(200, b"<html>all is well</html>", {})
        elif fault == "half":
            self._write(200, content[: len(content) // 2], {})
        elif fault == "cut":
            self._write(200, content[: len(content) // 2], {"Content-Length": str(len(content))})
            self.close_connection = True
        elif fault == "dribble":
            self._dribble(content)
        elif fault == "no choices":
            self._send(200, answer | {"choices": []})
        elif fault == "no end":
            self._send(200, answer | {"choices": [{**answer["choices"][0], "finish_reason": None}]})
        else:
            self._send(200, answer)

    def _completion(self, body: dict[str, Any], count: int) -> dict[str, Any]:
        one, prompt = self.served, prompt_of(body)
        choices, tokens = [], 0
        for place in range((count if one.n else 1) + one.surplus):
            narrow = {"top_k": body.get("top_k") == 1, "top_p": body["top_p"] < 0.01, "min_p": body.get("min_p") == 1}
            greedy = body["temperature"] == 0 or not one.temperature or any(map(narrow.get, one.filters))
            one.drawn += 1
            seed = None if greedy else (body.get("seed", one.drawn), place) if one.seed else one.drawn
            words = one.text(prompt, seed).split(" ")
            if "repetition_penalty" in one.filters and body.get("repetition_penalty", 1) != 1:
                words = list(dict.fromkeys(words))
            limit = body[one.limit]
            text, end = " ".join(words[:limit]), "length" if len(words) > limit else "stop"
            stop = next((stop for stop in body.get("stop", ()) if stop in text), "")
            if stop and one.stop != "ignored":
                text = text[: text.index(stop) + (len(stop) if one.stop == "kept" else 0)]
                end = "stop"
            tokens += (used := len(text.split()))
            words_of = {"message": {"content": text}} if "messages" in body else {"text": text}
            choice: dict[str, Any] = {"index": place, "finish_reason": end, **words_of}
            if stop and one.says_stop:
                choice["stop_reason"] = stop
            if body.get("logprobs") and one.logprobs:
                each = [{"token": "t", "logprob": -0.5}] * used
                choice["logprobs"] = {"content": each} if "messages" in body else {"token_logprobs": [-0.5] * used}
            choices.append(choice)
        usage = {"prompt_tokens": len(prompt.split()), "completion_tokens": tokens}
        return {"id": "1", "choices": choices} | ({"usage": usage} if one.usage else {})

    def _send(self, status: int, value: Any, headers: dict[str, str] | None = None) -> None:
        self._write(status, json.dumps(value).encode(), headers or {})

    def _write(self, status: int, content: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def _dribble(self, content: bytes) -> None:
        """A byte now and then: each comes in time, all of them never."""
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.close_connection = True
        for place in range(len(content)):
            if self.served.closing.wait(0.05):
                return
            try:
                self.wfile.write(content[place : place + 1])
                self.wfile.flush()
            except OSError:
                return
