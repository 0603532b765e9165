"""The application of +stage=serve and its guard: key, origin, sizes and timeouts of requests.

The routes of episodes are those of the package openenv. All refusals are JSON objects with the key `error`.
"""

import asyncio
import base64
import binascii
import secrets
import socket
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any
from urllib.parse import SplitResult, urlsplit

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rlvr_exp.config.stage_options import LOOPBACK, Serve
from rlvr_exp.serve.judge import Busy, Refused, VerifyEndpoint

RETRY_S = 1
"""Seconds after which a client may repeat a request that found a full queue."""
OPEN = "/health"
"""The path that needs no key."""
STOP_S = 5
"""Most seconds that open sessions delay the end of the server."""


class Guard:
    """Refuses requests without the key, from web pages, or with a body that is too large or too slow. Closes idle
    sessions.

    Args:
        key: empty: no key is needed.
    """

    def __init__(self, app: ASGIApp, options: Serve, key: str):
        self._app, self._options, self._key = app, options, key

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await self._app(scope, receive, send)
        if fault := self._fault(HTTPConnection(scope)):
            if scope["type"] == "websocket":
                return await send({"type": "websocket.close", "code": 1008, "reason": fault[1]})
            return await _error(*fault)(scope, receive, send)
        if scope["type"] == "websocket":
            return await self._app(scope, self._ending(receive), send)
        body = await self._body(receive)
        if isinstance(body, Response):
            return await body(scope, receive, send)
        messages = iter([{"type": "http.request", "body": body, "more_body": False}])

        async def replayed() -> Message:
            return next(messages, None) or await receive()

        await self._app(scope, replayed, send)

    def _fault(self, request: HTTPConnection) -> tuple[int, str] | None:
        """Status and text of a refusal; None for a request that may pass."""
        host, origin = request.headers.get("host", ""), request.headers.get("origin")
        if self._options.host in LOOPBACK and _parts(f"//{host}").hostname not in LOOPBACK:
            return 403, "another host name"
        if origin is not None and _parts(origin).netloc != host:
            return 403, "a request of a page from another site"
        if self._key and request.url.path != OPEN and not secrets.compare_digest(_given(request), self._key.encode()):
            return 401, "no valid key: send it as 'Authorization: Bearer KEY', or as the password of the address"
        return None

    async def _body(self, receive: Receive) -> bytes | Response:
        """The body, or the refusal of a body."""
        body, most = bytearray(), self._options.max_body_mb << 20
        try:
            async with asyncio.timeout(self._options.timeout_s):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return _error(400, "the client has left")
                    body += message.get("body", b"")
                    if len(body) > most:
                        return _error(413, f"the body is larger than serve.max_body_mb={self._options.max_body_mb}")
                    if not message.get("more_body", False):
                        return bytes(body)
        except TimeoutError:
            return _error(408, f"the body has not arrived within serve.timeout_s={self._options.timeout_s:g}")

    def _ending(self, receive: Receive) -> Receive:
        """`receive` of a session that ends if no message arrives in time."""

        async def received() -> Message:
            try:
                async with asyncio.timeout(self._options.timeout_s):
                    return await receive()
            except TimeoutError:
                return {"type": "websocket.disconnect", "code": 1001, "reason": "idle"}

        return received


def _parts(address: str) -> SplitResult:
    try:
        return urlsplit(address)
    except ValueError:  # Such as an open bracket.
        return urlsplit("")


def _given(request: HTTPConnection) -> bytes:
    """The key of a request; empty if it has none."""
    kind, _, value = request.headers.get("authorization", "").partition(" ")
    if kind.lower() != "basic":
        return value.encode() if kind.lower() == "bearer" else b""
    try:
        return base64.b64decode(value, validate=True).partition(b":")[2]
    except binascii.Error:
        return b""


def _error(status: int, text: str) -> Response:
    return JSONResponse({"error": text}, status, {"retry-after": str(RETRY_S)} if status == 503 else None)


def _refused(_: Request, fault: Exception) -> Response:
    return _error(fault.status if isinstance(fault, Refused) else 503, str(fault))


def _of_http(_: Request, fault: Exception) -> Response:
    assert isinstance(fault, HTTPException)
    detail: Any = fault.detail  # Of an action, the package passes the errors of pydantic.
    return _error(fault.status_code, detail if isinstance(detail, str) else _words(detail))


def _of_validation(_: Request, fault: Exception) -> Response:
    return _error(422, _words(fault.errors() if hasattr(fault, "errors") else []))


def _words(errors: Any) -> str:
    """Errors of pydantic in words, without the input, which need not be JSON."""
    return "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in errors)[:2000]


def application(verify: VerifyEndpoint, served: Any, options: Serve, key: str) -> ASGIApp:
    """The guarded application.

    Args:
        served: the tasks (rlvr_exp.serve.episodes.Served). None: the judge alone.
    """
    app: Starlette
    if served is None:
        app = Starlette(routes=[Route(OPEN, lambda _: JSONResponse({"status": "healthy"}))])
    else:
        app = _episodes(served, options)
    app.add_route("/verify", verify.__call__, methods=["POST"])
    for kind, handler in {Refused: _refused, Busy: _refused, HTTPException: _of_http}.items():
        app.add_exception_handler(kind, handler)
    return Guard(app, options, key)


def _episodes(served: Any, options: Serve) -> Starlette:
    from fastapi.exceptions import RequestValidationError  # Not at the top: the judge alone needs neither package.
    from openenv.core.env_server import ConcurrencyConfig
    from openenv.core.env_server.http_server import create_fastapi_app

    from rlvr_exp.serve.episodes import CompletionAction, TaskEnvironment, TaskObservation, TaskState

    app = create_fastapi_app(
        partial(TaskEnvironment, served),
        CompletionAction,
        TaskObservation,
        concurrency_config=ConcurrencyConfig(max_concurrent_envs=options.sessions, session_timeout=options.timeout_s),
        env_name=served.domain.name,
        state_cls=TaskState,
        mode="simulation",
    )
    app.add_exception_handler(RequestValidationError, _of_validation)
    return app


def listen(host: str, port: int) -> socket.socket:
    """A listening socket. Raises OSError if the address cannot be used."""
    [family, kind, protocol, _, address], *_ = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    server = socket.socket(family, kind, protocol)
    try:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind(address)
        server.listen(1024)
    except OSError:
        server.close()
        raise
    return server


def serve(app: ASGIApp, server: socket.socket, options: Serve, beat: Callable[[], Awaitable[None]]) -> None:
    """Serve until SIGINT or SIGTERM.

    Args:
        beat: called every second.
    """
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        lifespan="on",
        server_header=False,
        ws_max_size=options.max_body_mb << 20,
        timeout_graceful_shutdown=STOP_S,
        callback_notify=beat,
        timeout_notify=1,
    )
    uvicorn.Server(config).run(sockets=[server])
