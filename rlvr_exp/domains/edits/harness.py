"""The harness of `ast_grep`: applies an action's rules to a text inside a candidate's own process. Judges nothing.

The wanted text never enters this process, nor do tests: its output is the edited text, as data, and on request the
digest of its syntax tree. Steps are applied in order, each on the result of the previous step. A step's
rules are matched together against one text, like `ast-grep scan --update-all`: all matches are replaced in one
pass, outermost first, a match inside or across an earlier match left out. With more than one pass the list is repeated
until nothing changes; a repeated text ends that as an endless rewriting.

`ast-grep run` does not read suppression comments. Its steps see another word in their place.

A step of one rule runs in-process by ast_grep_py if both engines mean the same, all else by the ast-grep
program. Records, encoded with `wire`: ["text", text, matches, digest], ["fault", kind, message]; kinds are `resolve`, `loop`,
`output`, `memory`, `crash`, `engine` (the machine's, not the rule's).

The worker imports this file: standard library, ast_grep_py, `engines`, `layout` and `rlvr_exp.sandbox` only.
"""

import hashlib
import json
from collections.abc import Callable
from string import ascii_lowercase
from typing import Any

from rlvr_exp.domains.edits import engines
from rlvr_exp.domains.edits.engines import SUPPRESSES, RuleFault
from rlvr_exp.domains.edits.layout import digest
from rlvr_exp.sandbox import wire
from rlvr_exp.sandbox.isolation import files

_PROGRAM = engines.find_program()
if _PROGRAM is not None:
    # A worker imports its harness before it seals its root, which otherwise shows no program but a shell.
    files.show(_PROGRAM)

Send = Callable[[bytes], None]


def run(payload: bytes, send: Send) -> None:
    """Called once in a fresh fork, which ends right after."""
    job = wire.decode_native(payload)
    try:
        text, matches = _apply_all(job)
        record = ["text", text, matches, digest(text, job["tree"]) if job["tree"] else ""]
    except RuleFault as fault:
        record = ["fault", fault.kind, str(fault)[:600]]
    except (MemoryError, RecursionError) as fault:
        record = ["fault", "memory", type(fault).__name__]
    send(wire.encode(record))


def _apply_all(job: dict[str, Any]) -> tuple[str, int]:
    text, matches, seen = job["text"], 0, set()
    for _ in range(job["max_passes"]):
        before = text
        for language, ending, configs, suppressible in job["steps"]:
            word = SUPPRESSES if suppressible else _unread(text + "".join(configs))
            text, *configs = (each.replace(SUPPRESSES, word) for each in (text, *configs))
            text, count = _apply(text, language, ending, configs, job)
            text = text.replace(word, SUPPRESSES)
            matches += count
            if len(text.encode()) > job["max_kb"] << 10:
                raise RuleFault("output", f"the edited text is larger than {job['max_kb']} KiB")
        if text == before:
            return text, matches
        seen.add(hashlib.blake2b(before.encode()).digest())
        if hashlib.blake2b(text.encode()).digest() in seen:
            raise RuleFault("loop", "the rules undo one another: a text came back that was there before")
    if job["max_passes"] > 1:
        raise RuleFault("loop", f"the text still changes after {job['max_passes']} passes")
    return text, matches


def _unread(text: str) -> str:
    """A word as long as the one that suppresses matches, which the text does not have."""
    words = (SUPPRESSES[:-1] + letter for letter in ascii_lowercase)
    return next((word for word in words if word not in text), SUPPRESSES)


def _apply(text: str, language: str, ending: str, configs: list[str], job: dict[str, Any]) -> tuple[str, int]:
    rules, engine = [json.loads(config) for config in configs], job["engine"]
    if engine != "program" and len(rules) == 1:
        edited = engines.apply_in_process(text, language, rules[0], job["max_kb"] << 10)
        if edited is not None:
            return edited
    if engine == "inline":
        raise RuleFault("engine", "this step is not one for the in-process engine")
    return engines.apply_by_program(text, language, ending, rules, job["program"])
