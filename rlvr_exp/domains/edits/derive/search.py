"""The fewest and smallest rules that make an edit, each tried on the text as the rules before it leave it.

A rule is taken where all that it replaces is as the text after has it. At each step that rule is taken which costs
least for each hunk that it covers; where more than three are needed so, or none makes what is left, the search begins
with dearer rules, which favours larger ones.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Self

from rlvr_exp.domains.edits import inline
from rlvr_exp.domains.edits.action import Action, parse_action
from rlvr_exp.domains.edits.derive.rules import Candidate, candidates, targets_of
from rlvr_exp.domains.edits.derive.trees import (
    Rule,
    Span,
    Step,
    Text,
    Unparsed,
    find_all,
    is_match,
    parse,
    span,
)
from rlvr_exp.domains.edits.ingest.normalize import TOO_LONG, Dropped
from rlvr_exp.domains.edits.program import RuleFault
from rlvr_exp.domains.edits.reading import ActionFault

MOST_RULES = 3
MOST_HUNKS = 60
RULE_COSTS = (60, 300, 2000)
"""What a rule costs besides its characters, in the order of trying."""
MOST_CHARACTERS = 100_000
"""Of a text before or after."""
MOST_TRIES, CHARACTERS_TRIED = 600, 6_000_000
"""Rules tried for a step: so many, and fewer on a long text."""
UNPARSED, MANY_CHANGES = "ast-grep has no tree of it", f"more than {MOST_HUNKS} changes"
MANY_RULES, LARGE = "more than three rules", "a rule too large"
AMBIGUOUS = "no rule that changes nothing else"


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
        except (ActionFault, RuleFault):
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


@dataclass(frozen=True)
class Search:
    characters: int
    """Most of what a rule matches and of its rewrite."""
    share: float
    """Most of the text before that the rules' matchers may repeat."""
    program: Program

    def rules(self, before: str, after: str, language: str) -> list[Rule]:
        """The rules, to be applied one after the other. Raises Dropped."""
        if (longest := max(len(before), len(after))) > MOST_CHARACTERS:
            raise Dropped(TOO_LONG, f"{longest} characters")
        try:
            step = Step.of(before, Text.of(after, parse(after, language)), language)
            if len(step.hunks) > MOST_HUNKS:
                raise Dropped(MANY_CHANGES, str(len(step.hunks)))
            return self._cheapest(step)
        except (Unparsed, RecursionError) as fault:
            raise Dropped(UNPARSED, str(fault)) from fault

    def _cheapest(self, step: Step) -> list[Rule]:
        """Raises Dropped with the last reason: dearer rules come furthest."""
        for cost in RULE_COSTS[:-1]:
            try:
                return self._rules(step, cost)
            except Dropped:
                continue
        return self._rules(step, RULE_COSTS[-1])

    def _rules(self, step: Step, rule_cost: int) -> list[Rule]:
        rules: list[Rule] = []
        left = self.share * len("".join(step.before.text.split()))
        changes = len(step.hunks)
        while step.hunks:
            if len(rules) == MOST_RULES:
                raise Dropped(MANY_RULES, f"{changes} changes")
            candidate, text = self._best(step, left, rule_cost)
            rules.append(candidate.rule)
            left -= candidate.literal
            step = Step.of(text, step.after, step.language)
        return rules

    def _best(self, step: Step, left: float, rule_cost: int) -> tuple[Candidate, str]:
        """A rule and the text that it leaves. Raises Dropped where no rule covers any hunk."""
        best, least, too_large = None, float("inf"), False
        for candidate in _tried(step):
            cost = rule_cost + candidate.cost
            if candidate.size > self.characters or candidate.literal > left:
                too_large = True
                continue
            # The bound before the matching, and then the cost itself before the rewriting: both take long.
            trial = Trial.of(step, candidate) if cost / len(step.hunks) < least else None
            if trial and cost / len(trial.covered) < least and (text := trial.text(self.program)) is not None:
                best, least = (candidate, text), cost / len(trial.covered)
        if best is None:
            raise Dropped(LARGE if too_large else AMBIGUOUS)
        return best


def _tried(step: Step) -> Iterator[Candidate]:
    most = max(40, min(MOST_TRIES, CHARACTERS_TRIED // max(len(step.before.text), 1)))
    targets = targets_of(step.before.root, step.places)
    return islice((candidate for target in targets for candidate in candidates(step, target)), most)
