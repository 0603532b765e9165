"""Texts to edit by an ast-grep action."""

import json
from dataclasses import dataclass

from rlvr_exp.tasks.base import Candidate
from rlvr_exp.tasks.edits.action import parse_action
from rlvr_exp.tasks.edits.faults import ActionFault
from rlvr_exp.tasks.formats.base import Format
from rlvr_exp.tasks.formats.fields import Fault, Fields, optional_text, text_of, wrong
from rlvr_exp.tasks.formats.limits import Limits, limits_of


@dataclass(frozen=True)
class AstGrepProblem:
    """A text to edit by an ast-grep action. The candidate is the action, as JSON or YAML text.

    `after` decides, compared as text or as a syntax tree by the verifier's option; with `tests` (a pytest file, Python
    only) they decide in its place.
    """

    language: str
    before: str
    after: str
    tests: str = ""
    limits: Limits = Limits()


class AstGrep(Format):
    name = "ast_grep"
    problem = AstGrepProblem
    keys = ("language", "before")
    candidate_key = answer = "action"

    def read_problem(self, fields: Fields) -> AstGrepProblem:
        tests = optional_text(fields, "tests") or ""
        after = text_of(fields, "after") if fields.get("after") is not None or not tests else ""
        return AstGrepProblem(text_of(fields, "language"), text_of(fields, "before"), after, tests, limits_of(fields))

    def read_candidate(self, fields: Fields) -> Candidate:
        action = fields.get("action")
        if type(action) in (dict, list):
            return Candidate(json.dumps(action, ensure_ascii=False))
        if "action" not in fields or type(action) not in (str, type(None)):
            raise Fault(wrong("action", fields, "an object: the ast-grep action, or its text"))
        return super().read_candidate(fields)

    def prompt(self, problem: AstGrepProblem) -> str:
        tested = ("The tests that it has to pass then", problem.tests)
        wanted = tested if problem.tests else ("The text after it", problem.after)
        return (
            f"Write an ast-grep action for {problem.language} that edits a text.\n\nThe text before it:\n\n"
            f"```\n{problem.before.strip(chr(10))}\n```\n\n{wanted[0]}:\n\n```\n{wanted[1].strip(chr(10))}\n```\n\n"
            'Answer with one JSON object in one code block, such as {"pattern": "print($X)", "rewrite": "log($X)"}.\n'
        )

    def fault(self, problem: AstGrepProblem, text: str) -> str:
        try:
            parse_action(text, problem.language)
        except ActionFault as fault:
            return str(fault)
        return ""

    def layout(self, problem: AstGrepProblem, text: str) -> str | None:
        """Indented JSON; an action that is written as YAML or as a command stays as it is."""
        try:
            written = json.dumps(json.loads(text), indent=2, ensure_ascii=False) + "\n"
        except ValueError:
            return None
        return written if parse_action(written, problem.language) == parse_action(text, problem.language) else None
