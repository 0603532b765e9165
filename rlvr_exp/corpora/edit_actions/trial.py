"""What a rule does to the text of a step. Most rules are applied in this process, the others by the ast-grep program."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from rlvr_exp.corpora.edit_actions.nodes import Rule, Span, find_all, is_match, span
from rlvr_exp.corpora.edit_actions.rules import Candidate
from rlvr_exp.corpora.edit_actions.step import Step
from rlvr_exp.sandbox.harnesses.ast_grep import inline
from rlvr_exp.tasks.edits.action import Action, parse_action
from rlvr_exp.tasks.edits.reading import ActionFault

MOST_BYTES = 1 << 19
Program = Callable[[str, Action], str]
"""The ast-grep program: a text and an action to the edited text. Raises ActionFault."""


@dataclass(frozen=True)
class Trial:
    step: Step
    candidate: Candidate
    end: Span
    """Of a run: where the only match and where the run ends."""
    covered: frozenset[int]
    """Hunks that the matches hold; at least one."""

    @classmethod
    def of(cls, step: Step, candidate: Candidate) -> Self | None:
        """None where ast-grep refuses the rule, or where a match holds only a part of a hunk, or none holds any."""
        places, end = _matches(step, candidate)
        held = [step.held(place) for place in places]
        covered = frozenset().union(*(found for found in held if found))
        return cls(step, candidate, end, covered) if covered and None not in held else None

    def text(self, program: Program) -> str | None:
        """The text with the covered hunks; None where the rule makes another text."""
        try:
            found = self._edited(program)
        except (ActionFault, inline.RuleFault):
            return None
        return found if found == self.step.edited(self.covered) else None

    def _edited(self, program: Program) -> str:
        candidate, text, language = self.candidate, self.step.before.text, self.step.language
        parts = _action({"rule": candidate.matcher, "fix": candidate.fix}, language).rules[0].parts()
        edited = inline.apply(text, language, parts, MOST_BYTES)
        if edited is None:
            return program(text, _action(candidate.rule, language))
        if candidate.expansion is None:
            return edited[0]
        written = edited[0][: len(edited[0]) - (len(text) - self.end[0])]
        return written + text[self.end[1] :]


def _matches(step: Step, candidate: Candidate) -> tuple[list[Span], Span]:
    """The places that a rule replaces. Of a run only a single match is tried; where it and the run end is the second."""
    found = find_all(step.before.root, candidate.matcher)
    if candidate.expansion is None:
        return [span(node) for node in found], (0, 0)
    if len(found) != 1:
        return [], (0, 0)
    rule = {key: part for key, part in candidate.expansion.items() if key != "stopBy"}
    following = found[0].next_all() if "stopBy" in candidate.expansion else filter(None, [found[0].next()])
    start, end = span(found[0])
    last = next((span(other)[1] for other in following if is_match(other, rule)), end)
    return ([(start, last)], (end, last)) if last > end else ([], (0, 0))


def _action(rule: Rule, language: str) -> Action:
    return parse_action(json.dumps(rule, ensure_ascii=False), language)
