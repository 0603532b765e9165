"""Fixed actions: rules that know nothing of the wanted edit, only its language."""

import json
from collections.abc import Callable
from typing import Any

from rlvr_exp.tasks.edits.action import DONE
from rlvr_exp.tasks.edits.languages import language_of

_ROOTS = {
    "bash": "program",
    "c": "translation_unit",
    "cpp": "translation_unit",
    "csharp": "compilation_unit",
    "css": "stylesheet",
    "dart": "source_file",
    "elixir": "source",
    "go": "source_file",
    "haskell": "haskell",
    "hcl": "config_file",
    "html": "document",
    "java": "program",
    "javascript": "program",
    "json": "document",
    "kotlin": "source_file",
    "lua": "chunk",
    "markdown": "document",
    "nix": "source_code",
    "php": "program",
    "python": "module",
    "ruby": "program",
    "rust": "source_file",
    "scala": "compilation_unit",
    "solidity": "source_file",
    "swift": "source_file",
    "typescript": "program",
    "tsx": "program",
    "yaml": "stream",
    "zig": "source_file",
}
"""Kind of the node that is the whole text, by language. ast-grep refuses a rule that names no kind of node."""


def replacing_text(language: str, fix: str, **more: Any) -> str:
    """The action that replaces a text as a whole. `fix` names a variable where `more` defines one."""
    return _action(rule={"kind": _ROOTS[language_of(language)], **more}, fix=fix)(language)


def _action(**parts: Any) -> Callable[[str], str]:
    return lambda language: json.dumps({"language": language, **parts})


def _replaced_by(fix: str, **more: Any) -> Callable[[str], str]:
    return lambda language: replacing_text(language, fix, **more)


ANSWERS: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("no_text", lambda _: ""),
    ("no_rule", lambda _: "[]"),
    ("empty_object", lambda _: "{}"),
    ("null", lambda _: "null"),
    ("done", lambda _: DONE),
    ("changes_nothing", _replaced_by("$X", pattern="$X")),
    ("matches_nothing", _action(pattern="nobody_writes_this_name", rewrite="x")),
    (
        "without_a_fix",
        lambda language: json.dumps({"language": language, "rule": {"kind": _ROOTS[language_of(language)]}}),
    ),
    ("deletes_everything", _replaced_by("")),
    ("leaves_what_no_parser_reads", _replaced_by("<?php ((( }}} $ ' \" <<< '")),
    ("opens_a_comment", _replaced_by("/*")),
    ("reads_a_file", _action(cli="ast-grep run -p '$X' -r '$X' /etc/passwd")),
)
