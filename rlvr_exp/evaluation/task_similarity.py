"""Similarity of two sets of tasks, by their reference answers and by their prompts. No model is involved.

A set has a profile: shares of features that add up to 1. The similarity of two sets is the overlap of their profiles:
the sum of the smaller shares over the sum of the larger ones (the weighted Jaccard similarity of Ruzicka 1958). It is 1
for equal profiles and 0 for profiles without a common feature.
"""

import ast
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

from rlvr_exp.tasks.base import Domain, Task
from rlvr_exp.tasks.python_syntax import tree

Profile = Mapping[Hashable, float]
LONGEST = 3
"""Maximum number of nodes of a counted path in a syntax tree."""
NO_PROGRAM = (SyntaxError, ValueError, RecursionError, MemoryError)
"""Exceptions of a reference answer that is not Python."""


def similarity(first: Profile, second: Profile) -> float:
    """Return the similarity of two profiles in [0, 1]. It is symmetric, and 0 if a side has no feature."""
    features = {*first, *second}
    larger = sum(max(first.get(one, 0.0), second.get(one, 0.0)) for one in features)
    return sum(min(first.get(one, 0.0), second.get(one, 0.0)) for one in features) / larger if larger else 0.0


def programs(tasks: Iterable[Task]) -> Profile:
    """Return the profile of the reference answers. Features are downward paths of one to three nodes in the syntax
    tree, by the kinds of the nodes. For an answer that is not Python they are sequences of one to three words."""
    return shares(Counter(path for task in tasks if task.gold for path in _paths(task.gold)))


def inputs(domain: Domain, tasks: Sequence[Task]) -> Profile:
    """Return the profile of the domain's features, or of the words of the prompts."""
    return domain.input_features(tasks) or shares(
        Counter(word for task in tasks for word in domain.task_prompt(task).split())
    )


def shares(counts: Counter[Hashable]) -> Profile:
    """Return counts as shares that add up to 1."""
    total = counts.total()
    return {feature: count / total for feature, count in counts.items()}


def _paths(program: str) -> Iterator[Hashable]:
    try:
        above: list[tuple[ast.AST, tuple[str, ...]]] = [(tree(program), ())]
    except NO_PROGRAM:
        words = program.split()
        yield from (tuple(words[i : i + n]) for n in range(1, LONGEST + 1) for i in range(len(words) - n + 1))
        return
    while above:
        node, before = above.pop()
        path = (*before, type(node).__name__)[-LONGEST:]
        yield from (path[-length:] for length in range(1, len(path) + 1))
        above += [(child, path) for child in ast.iter_child_nodes(node)]
