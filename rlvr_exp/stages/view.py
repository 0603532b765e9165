"""Show all runs and samples below a folder on a local page until Ctrl-C."""

import secrets
from pathlib import Path
from typing import Any

from rlvr_exp.core.errors import DONE, InputError, InputProblem
from rlvr_exp.records.context import RunContext
from rlvr_exp.view.index import Index
from rlvr_exp.view.server import HOST, Watch, listen, serve


def main(config: Any, context: RunContext, _: bool) -> int:
    options = config.view
    try:
        server = listen(options.port)
    except OSError as fault:
        what, remedy = f"cannot be used: {fault.strerror}", "another port, or view.port=0 for a free one"
        raise InputError(InputProblem("view.port", what, str(options.port), remedy=remedy)) from fault

    def report(done: int, total: int) -> None:
        context.progress(kind="phase", name="index", done=done, total=total, unit="files")

    with server:
        token, port = secrets.token_urlsafe(24), server.getsockname()[1]
        context.progress(kind="note", text=f"http://{HOST}:{port}/?token={token}")
        context.progress(kind="note", text="Open the address in a browser. Ctrl-C ends the page.")
        serve(Watch(Index(Path(options.path)), report), server, token)
    return DONE
