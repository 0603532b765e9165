"""A whole program around a draft, and the row of its edit: what stays stands beside what changes."""

import ast
import builtins
import json
import re
from dataclasses import dataclass
from typing import Any

import pytest

from rlvr_exp.corpora.edits import mixture
from rlvr_exp.corpora.edits.draw import VARIABLES, Draw
from rlvr_exp.corpora.edits.family import Draft
from rlvr_exp.corpora.edits.functions import body
from rlvr_exp.sandbox.harnesses.ast_grep import inline
from rlvr_exp.sandbox.harnesses.ast_grep.inline import RuleFault
from rlvr_exp.tasks.edits.action import Action, parse_action
from rlvr_exp.tasks.edits.reading import ActionFault

MOST_BYTES = 1 << 16
_NAME = re.compile(r"\b[a-z]\w*\b")


@dataclass(frozen=True)
class Edit:
    """A program before and after, and what makes the one of the other."""

    draft: Draft
    before: str
    after: str

    @property
    def action(self) -> str:
        """The gold action, as JSON: the only rule, or the list of them."""
        rules = [dict(rule) for rule in self.draft.rules]
        return json.dumps(rules[0] if len(rules) == 1 else rules, ensure_ascii=False)

    def tests(self) -> str:
        """A file of tests; empty where behaviour stays."""
        if not self.draft.tests:
            return ""
        lines = self.draft.tests.split("\n")
        imports = [line for line in lines if line.startswith("import ")]
        rest = "\n".join(f"    {line}" for line in lines if line not in imports)
        own = [f"from solution import {name}" for name in _shadowing(self.after)]
        return "\n".join([*imports, "from solution import *", *own, "", "", "def test_edit():", rest, ""])


def programs(d: Draw, draft: Draft) -> Edit:
    """The draft among further functions, in any order."""
    others = [_neighbour(d, draft) for _ in range(d.pick(mixture.NEIGHBOURS))]
    place = d.number(0, len(others))
    texts = [[*others[:place], part, *others[place:]] for part in (draft.before, draft.after)]
    head = [draft.head] if draft.head else []
    before, after = ("\n\n".join([*head, *text]) + "\n" for text in texts)
    return Edit(draft, before, after)


def applied(text: str, action: str) -> str | None:
    """What ast-grep makes of a text by an action; None where the action is none, or not one of plain rules."""
    try:
        parsed: Action = parse_action(action, "python")
        for step in parsed.steps:
            found = inline.apply(text, "python", json.loads(step[0].config), MOST_BYTES) if len(step) == 1 else None
            if found is None:
                return None
            text = found[0]
    except (ActionFault, RuleFault):
        return None
    return text


def holds(program: str, tests: str) -> bool:
    """Whether the lines hold of a program. Both are a family's own, so that they run here and not in the sandbox."""
    names: dict[str, Any] = {}
    try:
        exec(compile(program, "program", "exec"), names)
        exec(compile(tests, "tests", "exec"), names)
    except (Exception, pytest.fail.Exception):  # Whatever a program does that is not as the lines say.
        return False
    return True


def wrong_answers(edit: Edit) -> list[dict[str, str]]:
    """Answers near the gold that are not it: nothing edited, an edit half done, turned round, or with another name."""
    found = [{"text": edit.before}, {"text": _changed(edit.after)}]
    rules = [dict(rule) for rule in edit.draft.rules]
    tries: list[Any] = [rules[:1]] if len(rules) > 1 else []
    fix = "rewrite" if "rewrite" in rules[-1] else "fix"
    tries.append([*rules[:-1], {**rules[-1], fix: _changed(rules[-1][fix])}])
    if "pattern" in rules[0]:
        tries.append([{"pattern": rules[0]["rewrite"], "rewrite": rules[0]["pattern"]}])
    found += [{"action": json.dumps(one[0] if len(one) == 1 else one, ensure_ascii=False)} for one in tries]
    return [one for one in found if not _is_right(edit, one)]


def _is_right(edit: Edit, answer: dict[str, str]) -> bool:
    """Whether an answer makes the program after, or one that its tests take for it, such as `00` for `0`."""
    text = answer["text"] if "text" in answer else applied(edit.before, answer["action"])
    return text is not None and (text == edit.after or bool(edit.draft.tests and holds(text, edit.draft.tests)))


def _shadowing(text: str) -> list[str]:
    """Functions with the name of one of Python's own, which `*` does not bring into a file of tests."""
    defined = {part.name for part in ast.parse(text).body if isinstance(part, ast.FunctionDef)}
    return sorted(defined & vars(builtins).keys())


def _neighbour(d: Draw, draft: Draft) -> str:
    """A function that stays. It may use the names that change elsewhere."""
    known = sorted({name for name in _NAME.findall(draft.before) if name in VARIABLES})
    a, b = d.shuffled(known)[:2] if len(known) > 1 and d.chance(mixture.BORROWED_SHARE) else d.variables(2)
    return f"def {d.function()}({a}, {b}):\n{body(d, a, b)}"


def _changed(text: str) -> str:
    """The text with its last name or number made another one."""
    found = list(re.finditer(r"(?<![$\w])[A-Za-z_]\w*|(?<![$\w])\d+", text))
    if not found:
        return text + "_"
    last = found[-1]
    return text[: last.end()] + ("0" if last[0].isdigit() else "_") + text[last.end() :]
