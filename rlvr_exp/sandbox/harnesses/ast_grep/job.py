"""The trusted side of the `ast_grep` harness: how a job is packed, and where the ast-grep program is.

Imported by the parent, which needs no ast_grep_py, and by the worker. Standard library only.
"""

import os
import shutil
import sys
import sysconfig

from rlvr_exp.sandbox import wire

_USUAL_PLACES = ("/usr/local/bin", "/usr/bin", os.path.expanduser("~/.local/bin"), os.path.expanduser("~/.cargo/bin"))


def find_program() -> str | None:
    """The ast-grep program: first next to this interpreter, where the package of the same installation is. The same in
    the parent and in a worker, which has no PATH."""
    places = (os.path.dirname(sys.executable), sysconfig.get_path("scripts"), *_USUAL_PLACES)
    found = next(filter(None, (shutil.which("ast-grep", path=place) for place in places)), None)
    return os.path.realpath(found) if found else None


def pack(
    text: str,
    steps: list[tuple[str, str, list[str]]],
    max_passes: int = 1,
    tree: str = "",
    program: str = "",
    max_kb: int = 512,
    engine: str = "auto",
) -> bytes:
    """The payload of one job.

    Args:
        text: the text to edit.
        steps: in order, each with its language, file ending and the JSON of each rule's acting parts.
        tree: the language in which to digest the result's syntax tree; empty: no digest.
        program: path of the ast-grep program.
        max_kb: largest UTF-8 size of a result.
        engine: `auto`, or the engine to force, for tests that compare them.
    """
    named = {"max_passes": max_passes, "tree": tree, "program": program, "max_kb": max_kb, "engine": engine}
    return wire.encode({"text": text, "steps": steps, **named})
