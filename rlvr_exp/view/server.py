"""The local server of +stage=view: one page and its data, for the person who has the address.

It answers GET requests to its own host names that carry the token of the address or the cookie that the page sets. A
request from another site is refused. A client names runs by their numbers and samples by their places in the index;
no path of a client is opened.
"""

import csv
import io
import json
import secrets
import socket
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from rlvr_exp.report.page import STYLE
from rlvr_exp.view import queries
from rlvr_exp.view.facts import PAGES, inside
from rlvr_exp.view.index import Index, Report
from rlvr_exp.view.queries import Filter

HOST = "127.0.0.1"
HOSTS = (HOST, "localhost", "[::1]")
"""Names of this machine that a request may be sent to. The port is free: an SSH tunnel has its own."""
PAGE, SCRIPT, OWN_STYLE = (
    Path(__file__).with_name(f"view.{kind}").read_text("utf-8") for kind in ("html", "js", "css")
)
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
OF_REPORTS = "sandbox allow-scripts; default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
"""Policy of a report: its script runs in an origin of its own, without access to this server."""
EVERY_SECONDS = 3.0
"""Seconds between two looks at the files."""
REST = 5
"""Smallest rest between two looks, in multiples of the time of a look."""
STOP_SECONDS = 5.0
"""Most seconds that the end of the server waits for a refresh."""
COLUMNS = (
    "run", "step", "task", "family", "mode", "group", "sample", "outcome", "bucket", "rule", "passed", "total", "reward",
    "advantage", "tokens", "prompt", "completion", "log",
)  # fmt: skip
"""Columns of an export as CSV."""


class Watch:
    """Keeps an index up to date while the server runs.

    Args:
        report: called with the progress of each refresh.
    """

    def __init__(self, index: Index, report: Report):
        self.index, self._report = index, report
        self.generation = 0
        """Number of refreshes that changed the index."""
        self.progress: tuple[int, int] | None = (0, 0)
        """Files that have been read and files to read; None: all are read."""
        self.problem = ""
        """The failure of the last refresh."""
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "Watch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join(STOP_SECONDS)

    def _run(self) -> None:
        while True:
            begun = time.monotonic()
            try:
                self.generation += self.index.refresh(self._show)
                self.progress, self.problem = None, ""
            except _Stopped:
                return
            except (OSError, sqlite3.Error) as fault:  # Files that vanish while they are read, a full disk: try again.
                self.problem = f"the index cannot be brought up to date: {fault}"
            if self._stopped.wait(max(EVERY_SECONDS, REST * (time.monotonic() - begun))):
                return

    def _show(self, done: int, total: int) -> None:
        self.progress = (done, total)
        self.generation += 1
        self._report(done, total)
        if self._stopped.is_set():
            raise _Stopped


class _Stopped(Exception):
    """The server has ended during a refresh."""


class Guarded:
    """Refuses requests that are not from the person who has the address."""

    def __init__(self, app: ASGIApp, token: str, cookie: str):
        self._app, self._token, self._cookie = app, token, cookie

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        fault = self._fault(Request(scope))
        await (Response(fault[1], fault[0], headers=HEADERS) if fault else self._app)(scope, receive, send)

    def _fault(self, request: Request) -> tuple[int, str] | None:
        """Status and text of a refusal; None for a request that may pass."""
        host, origin = request.headers.get("host", ""), request.headers.get("origin")
        if _name(host) not in HOSTS:
            return 403, "another host name"
        if request.method != "GET":
            return 405, "only GET"
        page = request.url.path == "/"
        if (origin is not None and urlsplit(origin).netloc != host) or (
            not page and request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none")
        ):
            return 403, "a request from another site"
        given = request.query_params.get("token", "") if page else ""
        given = given or request.cookies.get(self._cookie, "")
        if not secrets.compare_digest(given.encode(), self._token.encode()):
            return 403, "no valid token: open the address that the command has printed"
        return None


def _name(host: str) -> str:
    """The host without its port."""
    name, separator, port = host.rpartition(":")
    return name if separator and port.isdigit() else host


class Questions:
    """The answers of the server, each from a connection of its own."""

    def __init__(self, watch: Watch):
        self._watch, self._index = watch, watch.index

    def runs(self, request: Request) -> Any:
        """All runs, if the index has changed since the generation that the client has."""
        now = self._watch.generation
        state = {"generation": now, "progress": self._watch.progress, "problem": self._watch.problem}
        state["root"] = str(self._index.root)
        if request.query_params.get("since") == str(now):
            return state
        with self._index.reading() as db:
            return {**state, "runs": queries.all_runs(db)}

    def metrics(self, request: Request) -> Any:
        """Columns of metrics by run, and the names of all metrics."""
        given = request.query_params
        low, high = int(given.get("low", 0)), int(given.get("high", queries.AFTER))
        with self._index.reading() as db:
            names = {run: queries.metric_names(db, run) for run in _runs(request)}
            wanted = given.getlist("name")
            return {
                "names": list(dict.fromkeys(name for own in names.values() for name in own)),
                "runs": {
                    run: queries.curves(db, run, [name for name in wanted if name in own], low, high)
                    for run, own in names.items()
                },
            }

    def samples(self, request: Request) -> Any:
        """A page of samples of a filter and their number; the values of the filters."""
        given, chosen = request.query_params, _filter(request)
        sort, down = given.get("sort", "place"), given.get("down") == "1"
        if sort not in queries.SORTED:
            raise ValueError(f"sort: got {sort!r}, allowed {', '.join(queries.SORTED)}")
        with self._index.reading() as db:
            return {
                "count": queries.count(db, chosen),
                "choices": queries.choices(db, chosen.runs),
                "rows": queries.samples(
                    db, chosen, sort, down, int(given.get("offset", 0)), int(given.get("most", 50))
                ),
            }

    def sample(self, request: Request) -> Any:
        """A sample with its texts."""
        place, row = (int(request.query_params[name]) for name in ("place", "row"))
        with self._index.reading() as db:
            found = queries.whole_sample(db, self._index.root, _runs(request)[0], place, row)
        if found is None:
            raise HTTPException(404, "no such sample, or its file has changed")
        return found

    def tasks(self, request: Request) -> Any:
        """The tasks of a run before and after, or all samples of one of them."""
        run, task = _runs(request)[0], request.query_params.get("task")
        with self._index.reading() as db:
            return queries.both_sides(db, self._index.root, run, task) if task else queries.tasks(db, run)

    def export(self, request: Request) -> Response:
        """The samples of a filter as a file."""
        form = request.query_params.get("form", "jsonl")
        written = {"jsonl": _json_lines, "csv": _csv_lines}[form]
        chosen = _filter(request)

        def rows() -> Iterator[str]:
            with self._index.reading() as db:
                yield from written(queries.full_samples(db, self._index.root, chosen))

        named = {"content-disposition": f'attachment; filename="samples.{form}"'}
        media = {"jsonl": "application/jsonl", "csv": "text/csv"}[form]
        return StreamingResponse(rows(), media_type=media, headers={**HEADERS, **named})

    def report(self, request: Request) -> Response:
        """A page that a run has written."""
        page = request.query_params.get("page", PAGES[0])
        with self._index.reading() as db:
            found = db.execute("SELECT path FROM runs WHERE id = ?", [_runs(request)[0]]).fetchone()
        path = inside(self._index.root, self._index.root / found[0] / page) if found and page in PAGES else None
        if path is None:
            raise HTTPException(404, "no such page")
        return FileResponse(path, headers={**HEADERS, "content-security-policy": OF_REPORTS})


def _runs(request: Request) -> tuple[int, ...]:
    return tuple(int(number) for number in request.query_params["run"].split(","))


def _filter(request: Request) -> Filter:
    given: dict[str, Any] = {"runs": _runs(request)}
    types: dict[str, Callable[[str], Any]] = {"low_step": int, "high_step": int, "low": float, "high": float}
    for spec in fields(Filter)[1:]:
        if value := request.query_params.get(spec.name):
            given[spec.name] = types.get(spec.name, str)(value)
    return Filter(**given)


def _json_lines(rows: Iterator[dict[str, Any]]) -> Iterator[str]:
    for row in rows:
        yield json.dumps(row) + "\n"


def _csv_lines(rows: Iterator[dict[str, Any]]) -> Iterator[str]:
    out = io.StringIO()
    table = csv.DictWriter(out, COLUMNS, extrasaction="ignore")
    table.writeheader()
    for row in rows:
        table.writerow(row)
        yield out.getvalue()
        out.seek(0)
        out.truncate()
    yield out.getvalue()


def app(watch: Watch, token: str, cookie: str = "rlvr_view") -> ASGIApp:
    """The application.

    Args:
        cookie: name of the cookie. Cookies of a host are shared by its ports, so each server needs its own name.
    """
    questions = Questions(watch)

    def page(request: Request) -> Response:
        response = Response(PAGE, media_type="text/html", headers=HEADERS)
        response.set_cookie(cookie, token, httponly=True, samesite="strict")
        return response

    def fixed(text: str, media: str) -> Callable[[Request], Response]:
        return lambda request: Response(text, media_type=media, headers=HEADERS)

    def answered(question: Callable[[Request], Any]) -> Callable[[Request], Response]:
        def answer(request: Request) -> Response:
            try:
                found = question(request)
            except (KeyError, ValueError, OverflowError) as fault:
                return JSONResponse({"error": f"bad request: {fault}"}, 400, headers=HEADERS)
            except HTTPException as fault:
                return JSONResponse({"error": fault.detail}, fault.status_code, headers=HEADERS)
            return found if isinstance(found, Response) else JSONResponse(found, headers=HEADERS)

        return answer

    names = ("runs", "metrics", "samples", "sample", "tasks", "export", "report")
    routes = [
        Route("/", page),
        Route("/view.css", fixed(STYLE + OWN_STYLE, "text/css")),
        Route("/view.js", fixed(SCRIPT, "text/javascript")),
        *(Route(f"/{name}", answered(getattr(questions, name))) for name in names),
    ]
    return Guarded(Starlette(routes=routes), token, cookie)


def listen(port: int) -> socket.socket:
    """A socket on this machine's own address. Raises OSError if the port is taken."""
    server = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind((HOST, port))
    server.listen()  # Requests wait until the application has started.
    return server


def serve(watch: Watch, server: socket.socket, token: str) -> None:
    """Serve until SIGINT or SIGTERM."""
    application = app(watch, token, f"rlvr_view_{server.getsockname()[1]}")
    config = uvicorn.Config(
        application,
        log_level="warning",
        access_log=False,
        lifespan="off",
        timeout_graceful_shutdown=1,
        server_header=False,
    )
    try:
        with watch:
            uvicorn.Server(config).run(sockets=[server])
    except KeyboardInterrupt:  # The server raises the signal again when it has ended.
        return
