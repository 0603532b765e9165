"""The rules that could make a target's hunks, from the most general to the literal one, alone and in a context."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from ast_grep_py import SgNode

from rlvr_exp.corpora.edit_actions.nodes import Rule, is_match, is_part, span
from rlvr_exp.corpora.edit_actions.step import Step
from rlvr_exp.corpora.edit_actions.targets import Target
from rlvr_exp.corpora.edit_actions.templates import Generality, Template, outline
from rlvr_exp.corpora.edit_actions.texts import Copied

LONGEST_REGEX = 120
"""Characters of a node that is matched by its text where a pattern does not parse."""
CONTEXTS = 2
"""Enclosing definitions that a rule may name."""
WORDLESS = 40
"""What a pattern of marks and variables alone costs besides its characters."""
_VARIABLE = re.compile(r"\$\$\$[A-Z]?|\$[A-Z]\b")


@dataclass(frozen=True)
class Candidate:
    """A rule that is not tried yet. `written`: what of the text before its matchers repeat; `fix`: its rewrite."""

    matcher: Rule
    fix: str
    written: str
    expansion: Rule | None = None
    """Of a run: up to which later sibling a match is replaced."""

    @property
    def rule(self) -> Rule:
        if self.expansion:
            return {"rule": self.matcher, "fix": {"template": self.fix, "expandEnd": self.expansion}}
        if set(self.matcher) == {"pattern"}:
            return {"pattern": self.matcher["pattern"], "rewrite": self.fix}
        return {"rule": self.matcher, "fix": self.fix}

    @property
    def size(self) -> int:
        """Characters of what is matched and of what is written in its place."""
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
    """The rules for a target; none where it holds only a part of a hunk, or where what it becomes is no part of the tree."""
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
        # A variable without a part in the rewrite would match more than what is copied.
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
    """Rules for the last of a run, each with what it repeats of the text: an outline, a pattern, or the text itself."""
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
