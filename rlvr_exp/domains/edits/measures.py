"""Measures of an answer: how near its edited text is to the wanted one, and how near its action is to a teacher's.

Of the measures, only `untouched` decides a verdict, if tests judge. Texts come from hostile rules: comparing them is linear in
their lengths, and syntax trees of Python that an answer wrote are read and compared without recursion, in the trusted process.

The likeness of actions has the scores of supervised reinforcement learning (Deng et al. 2025, arXiv 2510.25992). Both are in
[0, 1], and both are 1 for equal actions, whatever form they were written in. They are not symmetric: the student comes first.
"""

import ast
from collections.abc import Iterator
from dataclasses import replace
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import zip_longest
from typing import Any

import yaml
from rapidfuzz.distance import Indel, Postfix, Prefix

from rlvr_exp.domains.edits.action import DONE, Action, parse_action
from rlvr_exp.domains.edits.problem import AstGrepProblem
from rlvr_exp.domains.edits.schema import language_of
from rlvr_exp.tasks.python_syntax import bound_names, tree
from rlvr_exp.verifiers.base import Verdict

UNREAD, READ, TAKEN, APPLIED = range(4)
"""How far an answer comes: no action, an action, one that ast-grep takes and comes to an end with, one that matches (or an edited
text)."""
MOST_MORE = 20_000
MOST_PAIRS, MOST_APART = 10**9, 30_000
"""Bounds of the cost of measuring one answer outside the sandbox: parsing grows with a text's length, likeness with the product of
two."""
_STEPS = ("parses", "valid", "applies")
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
UNLIKE = {"field_similarity": 0.0, "string_similarity": 0.0}
"""Without an action."""
FAILED = {"exact": 0.0, "similarity": 0.0}
"""Without an edited text."""
_SHOWN = 120
MOST_CHARACTERS = 2000
"""Characters of each action that are compared one by one: the time grows with their product."""
Path = tuple[str | int, ...]


def measured(
    verdict: Verdict, problem: AstGrepProblem, reached: int, text: str = "", action: Action | None = None
) -> Verdict:
    """The verdict with its measures: the steps that an action passed, the number of its rules, its likeness to a teacher's, and the
    likeness of its text to the wanted one. An answer without a text has the least; without a wanted text there is no measure."""
    if verdict.outcome == "no_verdict":
        return verdict
    steps = {name: float(reached > place) for place, name in enumerate(_STEPS)} if problem.answer == "action" else {}
    if action is not None:
        steps["rules"] = float(len(action.rules))
    if problem.teacher:
        steps |= similarities(action, problem.teacher, problem.language) if action is not None else UNLIKE
    if not problem.after and problem.tests:
        return replace(verdict, measures=steps)
    start = problem.start or problem.before
    near = of_text(start, problem.after, text, problem.language) if reached == APPLIED else FAILED
    return replace(verdict, measures={**steps, **near})


def of_text(before: str, after: str, text: str, language: str) -> dict[str, float]:
    """`exact`: every character is equal. `similarity`: 1 less the share of characters to insert and delete (RapidFuzz's ratio).
    Of Python also `same_syntax`, equal syntax trees, and `untouched`: of the functions and classes of the top level that
    the edit leaves as they are, the share that is unchanged in the text; 1 if there are none. A text that is `MOST_MORE` characters longer
    than the other two together counts as no Python."""
    found = {"exact": float(text == after), "similarity": _similarity(text, after)}
    wanted = parsed(after) if language_of(language) == "python" else None
    if wanted is None:
        return found
    got = parsed(text) if len(text) <= len(before) + len(after) + MOST_MORE else None
    same = got is not None and syntax_key(got) == syntax_key(wanted)
    return {**found, "same_syntax": float(same), "untouched": _untouched(parsed(before), wanted, got)}


def _similarity(text: str, after: str) -> float:
    """A common beginning and end counts as equal. If the product of the other two parts is too large, only their first characters
    are compared, and the rest counts as different."""
    start = Prefix.similarity(text, after)
    end = Postfix.similarity(text[start:], after[start:])
    one, other = (part[start : len(part) - end] for part in (text, after))
    most = MOST_APART if len(one) * len(other) > MOST_PAIRS else max(len(one), len(other))
    beyond = len(one[most:]) + len(other[most:])
    return 1 - (Indel.distance(one[:most], other[:most]) + beyond) / max(1, len(text) + len(after))


def _untouched(before: ast.Module | None, after: ast.Module, got: ast.Module | None) -> float:
    stays = _definitions(before) & _definitions(after)
    return len(stays & _definitions(got)) / len(stays) if stays else 1.0


def _definitions(module: ast.Module | None) -> set[tuple[Any, ...]]:
    """Functions and classes of the top level, as trees without places; of a name the last, and none that a later statement binds
    to something else."""
    found: dict[str, tuple[Any, ...]] = {}
    for node in module.body if module else ():
        if isinstance(node, _DEFINITIONS):
            found[node.name] = syntax_key(node)
        else:
            for name in bound_names([node]):
                found.pop(name, None)
    return set(found.values())


def parsed(text: str) -> ast.Module | None:
    """None for a text that is no Python."""
    try:
        return tree(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def syntax_key(node: ast.AST) -> tuple[Any, ...]:
    """A syntax tree without places, in one row: equal for equal trees. No recursion and no value written out, since trees of a
    thousand levels and numbers of a million digits are Python, too."""
    parts: list[Any] = []
    ahead: list[Any] = [node]
    while ahead:
        item = ahead.pop()
        if isinstance(item, ast.AST):
            parts.append(type(item))
            ahead += [getattr(item, name, None) for name in reversed(item._fields)]
        elif isinstance(item, list):
            parts += ("several", len(item))
            ahead += reversed(item)
        else:
            parts += (type(item), item)
    return tuple(parts)


def equal_but_blanks(got: str, wanted: str, language: str) -> bool:
    """Whether they are equal but for blanks at the ends of lines, empty lines, and line endings. Indentation counts, and if the
    wanted text is Python, so do blanks and lines inside its strings."""
    if _lines(got) != _lines(wanted):
        return False
    tree = parsed(wanted) if got != wanted and language_of(language) == "python" else None
    if tree is None:
        return True
    other = parsed(got)
    return other is not None and syntax_key(other) == syntax_key(tree)


def first_difference(got: str, wanted: str) -> str:
    """The first different line, as a short diff."""
    if got.rstrip("\n") == wanted.rstrip("\n"):
        counts = (len(text) - len(text.rstrip("\n")) for text in (wanted, got))
        return "line ends at the end of the text: wanted {}, got {}".format(*counts)
    ours, theirs = got.split("\n"), wanted.split("\n")
    for number, (one, other) in enumerate(zip_longest(ours, theirs), 1):
        if one != other:
            shown = [f"{mark} {_cut(line)}" for mark, line in (("-", other), ("+", one)) if line is not None]
            return "\n".join([f"line {number} (- wanted, + got):", *shown])
    return ""


def _lines(text: str) -> list[str]:
    lines = (line.rstrip() for line in text.replace("\r\n", "\n").split("\n"))
    return [line for line in lines if line]


def _cut(line: str) -> str:
    line = line.replace("\r", "\\r")
    return line if len(line) <= _SHOWN else f"{line[:80]} ... {line[-30:]}"


def similarities(student: Action, teacher: str, language: str) -> dict[str, float]:
    """`field_similarity` and `string_similarity` of an action to a teacher's, given as text."""
    fields, text = _of_teacher(teacher, language)
    return {
        "field_similarity": field_similarity(dict(_fields(student)), fields),
        "string_similarity": string_similarity(rule_yaml(student), text),
    }


def field_similarity(student: dict[Path, Any], teacher: dict[Path, Any]) -> float:
    """The share of equal fields among all fields of the two. A field is a value without parts of its
    own at its place: step, rule of the step, and keys from there, such as the `pattern` of the first rule."""
    every = student.keys() | teacher.keys()
    if not every:
        return 1.0
    same = sum(place in student and place in teacher and student[place] == teacher[place] for place in every)
    return same / len(every)


def string_similarity(student: str, teacher: str) -> float:
    """2 M / T of difflib: matching characters of both texts over all characters. Its heuristic for long texts is off: it
    takes frequent characters for junk beyond 200 characters."""
    first, second = student[:MOST_CHARACTERS], teacher[:MOST_CHARACTERS]
    return SequenceMatcher(None, first, second, autojunk=False).ratio()


def rule_yaml(action: Action) -> str:
    """The rules of an action as a stream of YAML documents, in normal form; `done` if there are none."""
    if not action.rules:
        return DONE
    return "---\n".join(yaml.safe_dump(rule.parts(), allow_unicode=True) for rule in action.rules)


@lru_cache(maxsize=4096)
def _of_teacher(text: str, language: str) -> tuple[dict[Path, Any], str]:
    action = parse_action(text, language)
    return dict(_fields(action)), rule_yaml(action)


def _fields(action: Action) -> Iterator[tuple[Path, Any]]:
    for number, step in enumerate(action.steps):
        for place, rule in enumerate(step):
            yield from _leaves((number, place), rule.parts())


def _leaves(place: Path, value: Any) -> Iterator[tuple[Path, Any]]:
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    if not value or not parts:
        yield place, value
    for key, part in parts:
        yield from _leaves((*place, key), part)
