"""How near an edited text is to the wanted one. Of all this the verifier lets `untouched` alone decide, where tests judge."""

import ast
from dataclasses import replace
from typing import Any

from rapidfuzz.distance import Indel, Postfix, Prefix

from rlvr_exp.tasks.bindings import bound_names
from rlvr_exp.tasks.edits.action import Action
from rlvr_exp.tasks.edits.languages import language_of
from rlvr_exp.tasks.formats.ast_grep import AstGrepProblem
from rlvr_exp.verifiers.ast_grep.action_similarity import similarities
from rlvr_exp.verifiers.ast_grep.python_trees import parsed, syntax_key
from rlvr_exp.verifiers.base import Verdict

UNREAD, READ, TAKEN, APPLIED = range(4)
"""How far an answer comes: no action, an action, one that ast-grep takes and comes to an end with, one that matches (or an edited
text)."""
MOST_MORE = 20_000
MOST_PAIRS, MOST_APART = 10**9, 30_000
"""Bounds of what measuring one answer costs, which is measured outside the sandbox: parsing grows with a text's length, likeness with
the product of two."""
_STEPS = ("parses", "valid", "applies")


def measured(
    verdict: Verdict, problem: AstGrepProblem, reached: int, text: str = "", action: Action | None = None
) -> Verdict:
    """The verdict with its measures: how far an action came, of how many rules it is, how near a teacher's, and how near the text
    is that an answer made. A text that was not made is as far as can be; where the wanted one is not known it is not measured."""
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


_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
UNLIKE = {"field_similarity": 0.0, "string_similarity": 0.0}
"""Where there is no action."""
FAILED = {"exact": 0.0, "similarity": 0.0}
"""Where there is no edited text."""


def of_text(before: str, after: str, text: str, language: str) -> dict[str, float]:
    """`exact`: every character is equal. `similarity`: 1 less the share of characters to insert and delete (RapidFuzz's ratio).
    Of Python also `same_syntax`, equal syntax trees, and `untouched`: the share of the functions and classes of the top level that
    the edit leaves as they are which the text has unchanged; 1 where there are none. A text that is `MOST_MORE` characters longer
    than the other two together counts as no Python."""
    found = {"exact": float(text == after), "similarity": _similarity(text, after)}
    wanted = parsed(after) if language_of(language) == "python" else None
    if wanted is None:
        return found
    got = parsed(text) if len(text) <= len(before) + len(after) + MOST_MORE else None
    same = got is not None and syntax_key(got) == syntax_key(wanted)
    return {**found, "same_syntax": float(same), "untouched": _untouched(parsed(before), wanted, got)}


def _similarity(text: str, after: str) -> float:
    """What they begin and end with alike is equal. Of the rest of texts so long that the product of both counts, what follows the
    first characters is different."""
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
