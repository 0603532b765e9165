"""The fewest and smallest rules that make an edit, each tried in this process on the text as the rules before leave it.

A rule is taken where all that it replaces is as the text after has it. At each step that rule is taken which costs
least for each hunk that it makes; where more than three are needed so, a rule is made dearer, which favours larger ones.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

from rlvr_exp.corpora.edit_actions.nodes import Rule, Span, Unparsed, find_all, is_match, parse, span
from rlvr_exp.corpora.edit_actions.rules import Candidate, candidates
from rlvr_exp.corpora.edit_actions.step import Step
from rlvr_exp.corpora.edit_actions.targets import targets_of
from rlvr_exp.corpora.edit_actions.templates import Text
from rlvr_exp.corpora.edit_sets.draft import Dropped
from rlvr_exp.corpora.edit_sets.normalize import TOO_LONG
from rlvr_exp.sandbox.harnesses.ast_grep import inline
from rlvr_exp.tasks.edits.action import Action, parse_action
from rlvr_exp.tasks.edits.faults import ActionFault

MOST_RULES = 3
MOST_HUNKS = 60
RULE_COSTS = (60, 300, 2000)
"""What a rule costs besides its characters, in the order of trying."""
MOST_BYTES = 1 << 19
MOST_CHARACTERS = 100_000
"""Of a text before or after."""
MOST_TRIES, CHARACTERS_TRIED = 600, 6_000_000
"""Rules tried for a step: so many, and fewer on a long text."""
UNPARSED, MANY_CHANGES = "ast-grep has no tree of it", f"more than {MOST_HUNKS} changes"
MANY_RULES, LARGE = "more than three rules", "a rule too large"
AMBIGUOUS = "no rule that changes nothing else"


Program = Callable[[str, Action], str]
"""ast-grep itself, for what is not applied in this process: a text and an action to the edited text. Raises ActionFault."""


@dataclass(frozen=True)
class Limits:
    """How large rules may be."""

    characters: int
    """Of what a rule matches and of its rewrite."""
    share: float
    """Of the text before, that the rules' matchers may repeat."""


@dataclass(frozen=True)
class Effect:
    """A rule that applies some hunks of a step and changes nothing else."""

    candidate: Candidate
    text: str
    covered: frozenset[int]


def rules_for(before: str, after: str, language: str, limits: Limits, program: Program) -> list[Rule]:
    """The rules, to be applied one after the other. Raises Dropped."""
    if (longest := max(len(before), len(after))) > MOST_CHARACTERS:
        raise Dropped(TOO_LONG, f"{longest} characters")
    try:
        wanted = Text.of(after, parse(after, language))
        step = Step.of(before, wanted, language)
        if len(step.hunks) > MOST_HUNKS:
            raise Dropped(MANY_CHANGES, str(len(step.hunks)))
        return _cheapest(step, limits, program)
    except (Unparsed, RecursionError) as fault:
        raise Dropped(UNPARSED, str(fault)) from fault


def _cheapest(step: Step, limits: Limits, program: Program) -> list[Rule]:
    """Raises Dropped with the last reason: dearer rules are larger ones, which come furthest."""
    for cost in RULE_COSTS[:-1]:
        try:
            return _rules(step, limits, cost, program)
        except Dropped:
            continue
    return _rules(step, limits, RULE_COSTS[-1], program)


def _rules(step: Step, limits: Limits, rule_cost: int, program: Program) -> list[Rule]:
    """Raises Dropped where more than three are needed, or where no rule makes what is left."""
    rules: list[Rule] = []
    left = limits.share * len("".join(step.before.text.split()))
    changes = len(step.hunks)
    while step.hunks:
        if len(rules) == MOST_RULES:
            raise Dropped(MANY_RULES, f"{changes} changes")
        effect = _best(step, limits, left, rule_cost, program)
        rules.append(effect.candidate.rule)
        left -= effect.candidate.literal
        step = Step.of(effect.text, step.after, step.language)
    return rules


def _best(step: Step, limits: Limits, left: float, rule_cost: int, program: Program) -> Effect:
    """Raises Dropped where no rule makes any hunk."""
    best, least, too_large = None, float("inf"), False
    for candidate in _tried(step):
        cost = rule_cost + candidate.cost
        if candidate.size > limits.characters or candidate.literal > left:
            too_large = True
        elif cost / len(step.hunks) < least:
            effect = effect_of(step, candidate, program)
            if effect and cost / len(effect.covered) < least:
                best, least = effect, cost / len(effect.covered)
    if best is None:
        raise Dropped(LARGE if too_large else AMBIGUOUS)
    return best


def _tried(step: Step) -> Iterator[Candidate]:
    most = max(40, min(MOST_TRIES, CHARACTERS_TRIED // len(step.before.text)))
    targets = targets_of(step.before.text, step.before.root, step.hunks)
    return islice((candidate for target in targets for candidate in candidates(step, target)), most)


def effect_of(step: Step, candidate: Candidate, program: Program) -> Effect | None:
    """None where ast-grep refuses the rule, or where it applies no hunk or anything else."""
    matches = _matches(step, candidate)
    if not matches:
        return None
    held = [step.held(place) for place, _ in matches]
    covered = frozenset().union(*(found for found in held if found))
    if None in held or not covered:
        return None
    text = _text_edited(step, candidate, matches, program)
    return Effect(candidate, text, covered) if text is not None and text == step.edited(covered) else None


def _matches(step: Step, candidate: Candidate) -> list[tuple[Span, Span]]:
    """What each match replaces, and the match itself. Of a run only a single match is tried."""
    found = find_all(step.before.root, candidate.matcher)
    if candidate.expansion is None:
        return [(span(node), span(node)) for node in found]
    if len(found) != 1:
        return []
    rule = {key: part for key, part in candidate.expansion.items() if key != "stopBy"}
    following = found[0].next_all() if "stopBy" in candidate.expansion else filter(None, [found[0].next()])
    last = next((other for other in following if is_match(other, rule)), None)
    return [((span(found[0])[0], span(last)[1]), span(found[0]))] if last else []


def _text_edited(step: Step, candidate: Candidate, matches: list[tuple[Span, Span]], program: Program) -> str | None:
    text = step.before.text
    try:
        parts = _action({"rule": candidate.matcher, "fix": candidate.fix}, step.language).rules[0].parts()
        edited = inline.apply(text, step.language, parts, MOST_BYTES)
        if edited is None:
            return program(text, _action(candidate.rule, step.language))
    except (ActionFault, inline.RuleFault):
        return None
    if candidate.expansion is None:
        return edited[0]
    [((_, end), (_, own_end))] = matches
    written = edited[0][: len(edited[0]) - (len(text) - own_end)]
    return written + text[end:]


def _action(rule: Rule, language: str) -> Action:
    return parse_action(json.dumps(rule, ensure_ascii=False), language)
