"""Fixed actions: rules that know nothing of the wanted edit, only its language."""

import json
from collections.abc import Callable, Iterator
from typing import Any

from rlvr_exp.domains.edits.action import DONE
from rlvr_exp.domains.edits.problem import AstGrepProblem
from rlvr_exp.domains.edits.reading import language_of
from rlvr_exp.tasks.formats.pytest_suite import PytestProblem
from rlvr_exp.verifiers.universal import fixed_answers as programs

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


def fixed_answers(edit: AstGrepProblem, kind: str) -> Iterator[tuple[str, str]]:
    """(name, text) of each fixed answer to an edit. With tests, the programs of Python are edited texts, too."""
    for name, build in ANSWERS:
        yield name, build(edit.language)
    if edit.tests:
        for name, program in programs(PytestProblem(edit.tests), kind):
            yield f"program_{name}", program if edit.answer == "text" else replacing_text(edit.language, program)
