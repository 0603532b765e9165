"""Texts to edit, by an ast-grep action or by writing the edited text itself."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from rlvr_exp.domains.edits.action import DONE, parse_action
from rlvr_exp.domains.edits.schema import ActionFault, language_of
from rlvr_exp.tasks.base import Candidate
from rlvr_exp.tasks.formats.base import Format
from rlvr_exp.tasks.formats.fields import Fault, Fields, Limits, limits_of, optional_text, text_of, wrong
from rlvr_exp.tasks.formats.pytest_suite import PytestProblem

_ASKS = {
    "action": (
        "Write an ast-grep action for {} that edits a text.",
        'Answer with one JSON object in one code block, such as {"pattern": "print($X)", "rewrite": "log($X)"}.',
    ),
    "text": ("Edit a text in {}.", "Answer with the full edited text in one code block."),
}


@dataclass(frozen=True)
class AstGrepProblem:
    """A text to edit. The candidate is an ast-grep action, as JSON or YAML text, or the edited text.

    `after` decides, compared as text or as a syntax tree by the verifier's option; with `tests` (a pytest file, Python
    only) they decide in its place.
    """

    language: str
    before: str
    after: str
    tests: str = ""
    limits: Limits = Limits()
    answer: str = "action"
    """What the candidate is: action or text."""
    proved: bool = False
    """`after` is known to pass the tests: a result equal to it passes without a run of them, and the functions and classes that it
    leaves unchanged have to stay, unless the verifier's option says otherwise."""
    teacher: str = ""
    """An action to measure the candidate's likeness to; it decides nothing. Empty: none."""
    start: str = ""
    """The text before the first step, if `before` is the result of earlier steps; empty: `before`."""


class AstGrep(Format):
    name = "ast_grep"
    problem = AstGrepProblem
    keys = ("language", "before")
    candidate_key = answer = "action"
    languages = ("json", "yaml", "yml")
    fixed_answers = "rlvr_exp.domains.edits.problem:fixed_answers"

    def read_problem(self, fields: Fields) -> AstGrepProblem:
        tests = optional_text(fields, "tests") or ""
        after = text_of(fields, "after") if fields.get("after") is not None or not tests else ""
        answer = "text" if _holds_text(fields) else "action"
        given = (text_of(fields, "language"), text_of(fields, "before"), after, tests, limits_of(fields), answer)
        return AstGrepProblem(*given)

    def read_candidate(self, fields: Fields) -> Candidate:
        if _holds_text(fields):
            given = optional_text(fields, "text")
            return Candidate(given, "" if given is not None else "text is null: no candidate in the answer")
        action = fields.get("action")
        if type(action) in (dict, list):
            return Candidate(json.dumps(action, ensure_ascii=False))
        if "action" not in fields or type(action) not in (str, type(None)):
            raise Fault(wrong("action", fields, "an object: the ast-grep action, or its text"))
        return super().read_candidate(fields)

    def prompt(self, problem: AstGrepProblem) -> str:
        tested = ("The tests that it has to pass then", problem.tests)
        wanted = tested if problem.tests else ("The text after it", problem.after)
        head, form = _ASKS[problem.answer]
        return (
            f"{head.format(problem.language)}\n\nThe text before it:\n\n"
            f"```\n{problem.before.strip(chr(10))}\n```\n\n{wanted[0]}:\n\n```\n{wanted[1].strip(chr(10))}\n```\n\n{form}\n"
        )

    def as_program(self, problem: AstGrepProblem) -> tuple[AstGrepProblem, str] | None:
        return (replace(problem, answer="text"), problem.after) if problem.tests and problem.after else None

    def fault(self, problem: AstGrepProblem, text: str) -> str:
        try:
            if problem.answer == "action":
                parse_action(text, problem.language)
        except ActionFault as fault:
            return str(fault)
        return ""

    def layout(self, problem: AstGrepProblem, text: str) -> str | None:
        """Indented JSON; an action that is written as YAML or as a command stays as it is, and so does a text."""
        if problem.answer == "text":
            return None
        try:
            written = json.dumps(json.loads(text), indent=2, ensure_ascii=False) + "\n"
        except ValueError:
            return None
        return written if parse_action(written, problem.language) == parse_action(text, problem.language) else None


def _holds_text(fields: Fields) -> bool:
    """Whether the row's candidate is an edited text; of a row with an action, `text` is a key of its own data."""
    return "text" in fields and "action" not in fields


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
    """The action that replaces a text as a whole. `fix` may name a variable that `more` defines."""
    rule = {"kind": _ROOTS[language_of(language)], **more}
    return json.dumps({"language": language, "rule": rule, "fix": fix})


def fixed_answers(edit: AstGrepProblem, kind: str) -> Iterator[tuple[str, str]]:
    """(name, text) of each fixed answer to an edit: actions that know nothing of the wanted edit, only its language. With tests,
    the programs of Python are edited texts, too."""
    from rlvr_exp.verifiers.universal import (
        fixed_answers as programs,  # It imports the formats of problems, this one too.
    )

    language, root = edit.language, {"kind": _ROOTS[language_of(edit.language)]}

    def action(**parts: Any) -> str:
        return json.dumps({"language": language, **parts})

    yield "no_text", ""
    yield "no_rule", "[]"
    yield "empty_object", "{}"
    yield "null", "null"
    yield "done", DONE
    yield "changes_nothing", replacing_text(language, "$X", pattern="$X")
    yield "matches_nothing", action(pattern="nobody_writes_this_name", rewrite="x")
    yield "without_a_fix", action(rule=root)
    yield "deletes_everything", replacing_text(language, "")
    yield "leaves_what_no_parser_reads", replacing_text(language, "<?php ((( }}} $ ' \" <<< '")
    yield "opens_a_comment", replacing_text(language, "/*")
    yield "reads_a_file", action(cli="ast-grep run -p '$X' -r '$X' /etc/passwd")
    if edit.tests:
        for name, program in programs(PytestProblem(edit.tests), kind):
            yield f"program_{name}", program if edit.answer == "text" else replacing_text(language, program)
