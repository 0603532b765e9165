"""The fewest and smallest rules that make an edit: candidates, and a search that tries each on the text.

A target is a node around some hunks, or a run of siblings. A template is its pattern and the rewrite: variables stand for the
parts that the edit copies unchanged, `$A` for a node and `$$$A` for several in a row (statements of a body, arguments), and equal
nodes have one variable. Names of functions, attributes and keywords stay as they are, since they say what a rule is about.
Candidates go from the most general to the literal one, alone and in a context.

The search tries each candidate on the text as the rules before it leave it. It takes a rule only if all that it replaces agrees
with the text after, and at each step the rule with the least cost for each hunk that it covers. If more than three rules were
needed, or none makes the rest, the search begins again with dearer rules, which favours larger ones.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import islice, pairwise
from string import ascii_uppercase
from typing import Self

from ast_grep_py import SgNode

from rlvr_exp.domains.edits import engines
from rlvr_exp.domains.edits.action import Action, parse_action
from rlvr_exp.domains.edits.engines import RuleFault
from rlvr_exp.domains.edits.normalize import TOO_LONG, Dropped
from rlvr_exp.domains.edits.schema import ActionFault
from rlvr_exp.domains.edits.trees import (
    Copied,
    Key,
    Rule,
    Span,
    Step,
    TreeText,
    Unparsed,
    encloses,
    find_all,
    indentation,
    is_match,
    is_part,
    is_row,
    is_sequence,
    key_of,
    outdented,
    parse,
    plain,
    span,
)

LONGEST = 8_000
"""Characters of the longest target."""


@dataclass(frozen=True)
class Target:
    """Nodes from `first` to `last`, which are the same or siblings, and all ancestors but the root, the nearest first."""

    first: SgNode
    last: SgNode
    ancestors: tuple[SgNode, ...]

    @property
    def span(self) -> Span:
        return span(self.first)[0], span(self.last)[1]

    @property
    def is_run(self) -> bool:
        return span(self.first) != span(self.last)


def targets_of(root: SgNode, hunks: Sequence[Sequence[Span]]) -> list[Target]:
    """Of every hunk, by its places: each named node below the root that holds or touches it, and the shortest run of siblings."""
    found: dict[tuple[Span, str], Target] = {}
    for places in hunks:
        for place in places:
            for target in _around(root, place):
                start, end = target.span
                if end - start <= LONGEST:
                    found.setdefault((target.span, target.first.kind()), target)
    return sorted(found.values(), key=lambda target: target.span[1] - target.span[0])


def _around(root: SgNode, place: Span) -> Iterator[Target]:
    ahead: list[tuple[SgNode, tuple[SgNode, ...]]] = [(root, ())]
    while ahead:
        node, above = ahead.pop()
        children = [child for child in node.children() if child.is_named()]
        holding = [child for child in children if encloses(reach := span(child), place) and reach[0] < reach[1]]
        for child in holding:
            yield Target(child, child, above)
            ahead.append((child, (child, *above)))
        if not holding and (node is root or is_sequence(node)) and (run := _run(children, place)):
            yield Target(*run, above)


def _run(children: Sequence[SgNode], place: Span) -> tuple[SgNode, SgNode] | None:
    """The first and the last of the fewest siblings that hold a place together; None if they do not hold all of it."""
    first = [child for child in children if span(child)[0] <= place[0]]
    last = [child for child in children if span(child)[1] >= place[1]]
    return (first[-1], last[0]) if first and last and span(first[-1])[0] < span(last[0])[0] else None


_CONSTANT = re.compile(
    r"comment|(?:^|_)string|(?:^|_)char|number|integer|float|"
    r"^(?:int|bool|boolean|null|nil|none|true|false|undefined)(?:_literal)?$|^dotted_name$"
)
"""Kinds of nodes that stay as they are: they say what a rule is about, too."""
NAMED_BY = ("function", "name", "attribute", "property", "field", "method", "key", "operator", "macro", "module_name")
"""Fields of nodes that are names; these are never variables."""


class Generality(IntEnum):
    """What variables may stand for; each includes the following."""

    EVERYTHING = 3
    COMPOSED = 2
    """Nodes that have children."""
    SEQUENCES = 1
    """Several nodes in a row."""
    NOTHING = 0


@dataclass
class Template:
    """Fills in variables, first for the nodes before, then for those after.

    Args:
        unusable: names that the texts use themselves.
    """

    generality: Generality
    copied: Copied
    unusable: str
    _variables: dict[Key, str] = field(default_factory=dict)

    def pattern(self, source: TreeText, node: SgNode) -> str:
        places = sorted(self._copied(source.text, node))
        return _filled(source.text, span(node), [(place, self._named(key)) for place, key in places])

    def rewrite(self, source: TreeText, place: Span) -> str:
        return _filled(source.text, place, list(_known(source, place, self._variables)))

    @property
    def names(self) -> list[str]:
        """The variables of the pattern."""
        return list(self._variables.values())

    def _named(self, key: Key) -> str:
        if key not in self._variables:
            marks = "" if key[0] else "$$"
            taken = {name.lstrip("$") for name in self._variables.values()}
            free = (name for name in ascii_uppercase if name not in taken and f"${name}" not in self.unusable)
            name = next(free, "")
            if not name:
                return ""
            self._variables[key] = f"{marks}${name}"
        return self._variables[key]

    def _copied(self, text: str, node: SgNode) -> Iterator[tuple[Span, Key]]:
        """Places below a node that become variables, without overlap."""
        ahead = [node]
        while ahead:
            here = ahead.pop()
            names = {span(found) for name in NAMED_BY if (found := here.field(name))}
            children = [child for child in here.children() if child.is_named()]
            runs, marks = self._runs(text, here, children)
            places = [(span(run[0])[0], span(run[-1])[1]) for run in runs]
            yield from ((place, ("", plain(text, place))) for place in places)
            for child in children:
                key, place = key_of(child, text), span(child)
                if any(encloses(run, place) for run in places):
                    continue
                if self._stands_for(child, key) and place not in names and place not in marks:
                    yield place, key
                elif not _CONSTANT.search(child.kind()):
                    ahead.append(child)

    def _runs(self, text: str, node: SgNode, children: Sequence[SgNode]) -> tuple[list[list[SgNode]], set[Span]]:
        """Rows of children that become one variable, and the places of children that must not become one: two variables
        for several nodes would have no end between them."""
        if not is_sequence(node) or self.generality < Generality.SEQUENCES:
            return [], set()
        runs: list[list[SgNode]] = [[]]
        for child in children:
            key = key_of(child, text)
            follows = runs[-1] and (key_of(runs[-1][-1], text), key) in self.copied.pairs
            if key not in self.copied.nodes:
                runs.append([])
            elif follows or not runs[-1]:
                runs[-1].append(child)
            else:
                runs.append([child])
        marks = {span(other.pop(0)) for one, other in pairwise(runs) if one and other and max(len(one), len(other)) > 1}
        return [run for run in runs if len(run) > 1 or (run and len(run) == len(children))], marks

    def _stands_for(self, node: SgNode, key: Key) -> bool:
        least = Generality.EVERYTHING if node.is_leaf() else Generality.COMPOSED
        may = not (is_row(node) or _CONSTANT.search(node.kind()))
        return may and self.generality >= least and key in self.copied.nodes


def outline(text: str, node: SgNode) -> str:
    """The node with `$$$` for the content of its bodies, arguments and lists: a pattern that no rewrite takes anything from."""
    places, ahead = [], [node]
    while ahead:
        here = ahead.pop()
        children = [child for child in here.children() if child.is_named()]
        if is_sequence(here) and children:
            places.append(((span(children[0])[0], span(children[-1])[1]), "$$$"))
        else:
            ahead += children
    return _filled(text, span(node), places)


def _known(source: TreeText, place: Span, variables: Mapping[Key, str]) -> Iterator[tuple[Span, str]]:
    """Places of a stretch of the text after whose content a variable stands for, without overlap."""
    ahead = [source.root]
    while ahead:
        here = ahead.pop()
        reaches = [(child, span(child)) for child in here.children()]
        children = [child for child, reach in reaches if reach[0] < place[1] and place[0] < reach[1]]
        while children:
            run, name = _known_run(source.text, here, children, place, variables)
            if name:
                yield (span(run[0])[0], span(run[-1])[1]), name
            else:
                ahead += run
            children = children[len(run) :]


def _known_run(
    text: str, parent: SgNode, children: Sequence[SgNode], place: Span, variables: Mapping[Key, str]
) -> tuple[Sequence[SgNode], str]:
    """The longest row of nodes, from the first on, that is a variable, with its name; else the first, and no name."""
    first = children[0]
    if not first.is_named() or not encloses(place, span(first)):
        return children[:1], ""
    if is_sequence(parent):
        for count in range(len(children), 0, -1):
            reach = span(first)[0], span(children[count - 1])[1]
            name = variables.get(("", plain(text, reach))) if reach[1] <= place[1] else None
            if name:
                return children[:count], name
    return children[:1], variables.get(key_of(first, text), "")


def _filled(text: str, place: Span, variables: Sequence[tuple[Span, str]]) -> str:
    """The stretch with variables in their places, at the margin of its line."""
    start, end = place
    cuts = sorted((found for found in variables if found[1]), key=lambda found: found[0])
    ends = [(start, start), *(at for at, _ in cuts), (end, end)]
    parts = [text[one[1] : other[0]] for one, other in pairwise(ends)]
    names = [*(name for _, name in cuts), ""]
    written = "".join(part + name for part, name in zip(parts, names, strict=True))
    return outdented(written, indentation(text, start))


LONGEST_REGEX = 120
"""Characters of a node that is matched by its text, in case a pattern does not parse."""
CONTEXTS = 2
"""Enclosing definitions that a rule may name."""
WORDLESS = 40
"""What a pattern of marks and variables alone costs besides its characters."""
_VARIABLE = re.compile(r"\$\$\$[A-Z]?|\$[A-Z]\b")


@dataclass(frozen=True)
class Candidate:
    """A rule that is not tried yet. `written`: the parts of the text before that its matchers repeat; `fix`: its rewrite."""

    matcher: Rule
    fix: str
    written: str
    expansion: Rule | None = None
    """Of a run: the rule for the last sibling that is replaced with a match."""

    @property
    def rule(self) -> Rule:
        if self.expansion:
            return {"rule": self.matcher, "fix": {"template": self.fix, "expandEnd": self.expansion}}
        if set(self.matcher) == {"pattern"}:
            return {"pattern": self.matcher["pattern"], "rewrite": self.fix}
        return {"rule": self.matcher, "fix": self.fix}

    @property
    def size(self) -> int:
        """Characters of the matched text and of the rewrite."""
        return len(self.written) + len(self.fix)

    @property
    def literal(self) -> int:
        """Characters of the matchers that are no variables and no blanks."""
        return len("".join(_VARIABLE.sub("", self.written).split()))

    @property
    def cost(self) -> int:
        """Characters as JSON, a variable for nothing: a general rule is taken before a literal one, unless it has no word."""
        wordless = 0 if re.search(r"\w", _VARIABLE.sub("", self.written)) else WORDLESS
        return wordless + len(_VARIABLE.sub("", json.dumps(self.rule, ensure_ascii=False)))


def candidates(step: Step, target: Target) -> Iterator[Candidate]:
    """The rules for a target; none if it holds only a part of a hunk, or if its text after is no part of the tree."""
    held = step.held(target.span)
    place = step.place_after(target.span, held) if held else (0, 0)
    if not held or not is_part(step.after.root, place):
        return
    copied = step.after.within(place)
    seen = set()
    for generality in sorted(Generality, reverse=True):
        template = Template(generality, copied, step.before.text + step.after.text)
        pattern = template.pattern(step.before, target.first)
        fix = template.rewrite(step.after, place)
        # A variable without a part in the rewrite would match more than the copied text.
        if (pattern, fix) not in seen and all(name in fix for name in template.names):
            seen.add((pattern, fix))
            yield from _placed(step, {"pattern": pattern}, fix, pattern, target)
    written = target.first.text()
    if len(written) <= LONGEST_REGEX:
        fix = Template(Generality.NOTHING, Copied(), "").rewrite(step.after, place)
        yield from _placed(step, by_text(target.first), fix, written, target)


def by_text(node: SgNode) -> Rule:
    return {"kind": node.kind(), "regex": f"^{escaped(node.text())}$"}


def escaped(text: str) -> str:
    """The text as a regular expression of Rust."""
    return re.sub(r"[\\.+*?()|\[\]{}^$#&\-~]", r"\\\g<0>", text)


def _placed(step: Step, matcher: Rule, fix: str, written: str, target: Target) -> Iterator[Candidate]:
    if target.is_run:
        for expansion, text in _expansions(step, target):
            yield Candidate(matcher, fix, written + text, expansion)
            yield Candidate({**matcher, "precedes": expansion}, fix, written + text, expansion)
        return
    for context in _contexts(target):
        yield Candidate({**matcher, **context}, fix, written)


def _expansions(step: Step, target: Target) -> Iterator[tuple[Rule, str]]:
    """Rules for the last of a run, each with the text that it repeats: an outline, a pattern, or the text itself."""
    following = target.first.next()
    is_next = following is not None and span(following) == span(target.last)
    stop = {} if is_next else {"stopBy": "end"}
    found = [text for text in (outline(step.before.text, target.last), target.last.text()) if text != "$$$"]
    patterns = [text for text in dict.fromkeys(found) if is_match(target.last, {"pattern": text})]
    yield from (({"pattern": text, **stop}, text) for text in patterns)
    if not patterns:
        yield {**by_text(target.last), **stop}, target.last.text()


def _contexts(target: Target) -> Iterator[Rule]:
    """Nothing; the parent's kind; an enclosing definition by its name; both."""
    yield {}
    above = target.ancestors
    parent = {"kind": above[0].kind()} if above else {}
    if parent:
        yield {"inside": parent}
    named = [(node, name) for node in above if (name := node.field("name"))]
    for node, name in named[:CONTEXTS]:
        text = {"field": "name", "regex": f"^{escaped(name.text())}$"}
        definition = {"kind": node.kind(), "has": text, "stopBy": "end"}
        yield {"inside": definition}
        if node is not above[0]:
            yield {"inside": {**parent, "inside": definition}}


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
    """Of a run: the ends of its only match and of the run."""
    covered: frozenset[int]
    """Hunks that the matches hold; at least one."""

    @classmethod
    def of(cls, step: Step, candidate: Candidate) -> Self | None:
        """None if ast-grep refuses the rule, if a match holds only a part of a hunk, or if no match holds any."""
        places, end = _matches(step, candidate)
        held = [step.held(place) for place in places]
        covered = frozenset().union(*(found for found in held if found))
        return cls(step, candidate, end, covered) if covered and None not in held else None

    def text(self, program: Program) -> str | None:
        """The text with the covered hunks; None if the rule makes another text."""
        try:
            found = self._edited(program)
        except (ActionFault, RuleFault):
            return None
        return found if found == self.step.edited(self.covered) else None

    def _edited(self, program: Program) -> str:
        candidate, text, language = self.candidate, self.step.before.text, self.step.language
        parts = _action({"rule": candidate.matcher, "fix": candidate.fix}, language).rules[0].parts()
        edited = engines.apply_in_process(text, language, parts, MOST_BYTES)
        if edited is None:
            return program(text, _action(candidate.rule, language))
        if candidate.expansion is None:
            return edited[0]
        written = edited[0][: len(edited[0]) - (len(text) - self.end[0])]
        return written + text[self.end[1] :]


def _matches(step: Step, candidate: Candidate) -> tuple[list[Span], Span]:
    """The places that a rule replaces, and of a run the ends of its match and of the run. Of a run only a single match is tried."""
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
    """Most characters of a rule's matchers and rewrite."""
    share: float
    """Most of the text before that the rules' matchers may repeat."""
    program: Program

    def rules(self, before: str, after: str, language: str) -> list[Rule]:
        """The rules, to be applied one after the other. Raises Dropped."""
        if (longest := max(len(before), len(after))) > MOST_CHARACTERS:
            raise Dropped(TOO_LONG, f"{longest} characters")
        try:
            step = Step.of(before, TreeText.of(after, parse(after, language)), language)
            if len(step.hunks) > MOST_HUNKS:
                raise Dropped(MANY_CHANGES, str(len(step.hunks)))
            for cost in RULE_COSTS[:-1]:
                try:
                    return self._rules(step, cost)
                except Dropped:
                    continue
            return self._rules(step, RULE_COSTS[-1])  # Dearer rules come furthest, so that the last reason counts.
        except (Unparsed, RecursionError) as fault:
            raise Dropped(UNPARSED, str(fault)) from fault

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
        """A rule and the text that it leaves. Raises Dropped if no rule covers any hunk."""
        best, least, too_large = None, float("inf"), False
        most = max(40, min(MOST_TRIES, CHARACTERS_TRIED // max(len(step.before.text), 1)))
        targets = targets_of(step.before.root, step.places)
        for candidate in islice((one for target in targets for one in candidates(step, target)), most):
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
