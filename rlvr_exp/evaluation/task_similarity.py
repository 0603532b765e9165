"""How alike two sets of tasks are, by their golds and by what their prompts show. No model has a part in it.

A set has a profile: shares of features that add up to 1. Two sets are as alike as their profiles overlap: the sum of the
smaller shares over that of the larger ones (the weighted Jaccard similarity of Ruzicka 1958), 1 of equal profiles, 0 of
profiles without a feature in common.
"""

import ast
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

from rlvr_exp.tasks.base import Domain, Task
from rlvr_exp.tasks.python_syntax import tree

Profile = Mapping[Hashable, float]
LONGEST = 3
"""Nodes of the longest path of a syntax tree that is counted."""
NO_PROGRAM = (SyntaxError, ValueError, RecursionError, MemoryError)
"""What a gold raises that is no Python."""


def similarity(first: Profile, second: Profile) -> float:
    """In [0, 1], and symmetric; 0 where a side has no feature."""
    features = {*first, *second}
    larger = sum(max(first.get(one, 0.0), second.get(one, 0.0)) for one in features)
    return sum(min(first.get(one, 0.0), second.get(one, 0.0)) for one in features) / larger if larger else 0.0


def programs(tasks: Iterable[Task]) -> Profile:
    """Of the golds: paths of one to three nodes from above to below in the syntax tree, by the kinds of the nodes; of a gold
    that is no Python its runs of one to three words."""
    return shares(Counter(path for task in tasks if task.gold for path in _paths(task.gold)))


def inputs(domain: Domain, tasks: Sequence[Task]) -> Profile:
    """The features of the domain, or the words of the prompts."""
    return domain.input_features(tasks) or shares(
        Counter(word for task in tasks for word in domain.task_prompt(task).split())
    )


def shares(counts: Counter[Hashable]) -> Profile:
    """Counts as shares that add up to 1."""
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
