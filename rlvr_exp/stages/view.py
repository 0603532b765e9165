"""Show all runs and samples below a folder on a local page until Ctrl-C."""

import secrets
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

from rlvr_exp.core.errors import DONE, InputError, InputProblem
from rlvr_exp.launch.console import Progress
from rlvr_exp.view.index import Index
from rlvr_exp.view.server import HOST, Watch, listen, serve


def main(config: Any, as_json: bool) -> int:
    options = config.view
    try:
        server = listen(options.port)
    except OSError as fault:
        what, remedy = f"cannot be used: {fault.strerror}", "another port, or view.port=0 for a free one"
        raise InputError(InputProblem("view.port", what, str(options.port), remedy=remedy)) from fault
    with server, closing(Progress(0, "view", sys.stdout.isatty())) as progress:
        token, port = secrets.token_urlsafe(24), server.getsockname()[1]
        for text in (f"http://{HOST}:{port}/?token={token}", "Open the address in a browser. Ctrl-C ends the page."):
            progress.event({"kind": "note", "text": text})

        def report(done: int, total: int) -> None:
            progress.event({"kind": "phase", "name": "index", "done": done, "total": total, "unit": "files"})

        serve(Watch(Index(Path(options.path)), report), server, token)
    return DONE
