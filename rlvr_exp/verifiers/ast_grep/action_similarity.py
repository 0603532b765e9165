"""How near an action is to a teacher's: the scores of supervised reinforcement learning (Deng et al. 2025, arXiv 2510.25992).

Both in [0, 1], both 1 for equal actions, whatever form they were written in. They are not symmetric: the student comes first.
"""

from collections.abc import Iterator
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Any

import yaml

from rlvr_exp.tasks.edits.action import DONE, Action, parse_action

MOST_CHARACTERS = 2000
"""Of each text that is compared character by character: the time grows with their product."""
Path = tuple[str | int, ...]


def similarities(student: Action, teacher: str, language: str) -> dict[str, float]:
    """`field_similarity` and `string_similarity` of an action to a teacher's, which is one, as text."""
    fields, text = _of_teacher(teacher, language)
    return {
        "field_similarity": field_similarity(dict(_fields(student)), fields),
        "string_similarity": string_similarity(rule_yaml(student), text),
    }


def field_similarity(student: dict[Path, Any], teacher: dict[Path, Any]) -> float:
    """The share of fields, of all that either has, in which the two have the same value. A field is a value without parts of its
    own at its place: step, rule of the step, and keys from there, such as the `pattern` of the first rule."""
    every = student.keys() | teacher.keys()
    if not every:
        return 1.0
    same = sum(place in student and place in teacher and student[place] == teacher[place] for place in every)
    return same / len(every)


def string_similarity(student: str, teacher: str) -> float:
    """2 M / T of difflib: matching characters of both texts over all characters. Without its heuristic for long texts, which
    beyond 200 characters takes frequent characters for junk."""
    first, second = student[:MOST_CHARACTERS], teacher[:MOST_CHARACTERS]
    return SequenceMatcher(None, first, second, autojunk=False).ratio()


def rule_yaml(action: Action) -> str:
    """The rules of an action as a stream of YAML documents, in normal form; `done` where there are none."""
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
