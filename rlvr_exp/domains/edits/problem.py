"""Texts to edit, by an ast-grep action or by writing the edited text itself."""

import json
from dataclasses import dataclass, replace

from rlvr_exp.domains.edits.action import parse_action
from rlvr_exp.domains.edits.reading import ActionFault
from rlvr_exp.tasks.base import Candidate
from rlvr_exp.tasks.formats.base import Format
from rlvr_exp.tasks.formats.fields import Fault, Fields, Limits, limits_of, optional_text, text_of, wrong

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
    """`after` is known to pass the tests: a result equal to it passes without a run of them, and what it leaves as it was has to stay,
    but for the verifier's option."""
    teacher: str = ""
    """An action to measure the candidate's likeness to; it decides nothing. Empty: none."""
    start: str = ""
    """The text before the first step, where `before` is what earlier steps have made of it; empty: `before`."""


class AstGrep(Format):
    name = "ast_grep"
    problem = AstGrepProblem
    keys = ("language", "before")
    candidate_key = answer = "action"
    languages = ("json", "yaml", "yml")
    fixed_answers = "rlvr_exp.domains.edits.universal:fixed_answers"

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
