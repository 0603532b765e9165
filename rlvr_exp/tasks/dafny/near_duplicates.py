"""Near-duplicate programs: nearly equal, apart from names, comments, blanks and annotations.

A method is represented by the set of its shingles: runs of tokens of header, specification and code, in which the
program's own names are numbered within the run. Two are near-duplicates where the sets' Jaccard similarity reaches a
bound. Exact, by prefix filtering (Bayardo, Ma, Srikant, "Scaling up all pairs similarity search", 2007): no hashing
decides.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from math import ceil

from rlvr_exp.tasks.dafny.example import DafnyExample
from rlvr_exp.tasks.dafny.expressions import CLAUSES, DECLARES, MODIFIERS, STATEMENTS, is_name
from rlvr_exp.tasks.dafny.tokens import plain, tokens

WIDTH, BOUND = 6, 0.7
"""Tokens of a shingle, and the similarity from which on two methods are near-duplicates."""
EPSILON = 1e-9
Shingles = frozenset[tuple[str, ...]]
_TYPES = ("bool", "char", "int", "nat", "real", "string", "object", "array", "array2", "seq", "set", "iset", "multiset")
_WORDS = ("map", "imap", "exists", "true", "false", "null", "this", "old", "fresh", "allocated", "unchanged", "as")
_MORE = ("in", "is", "then", "else", "case", "var", "assert", "assume", "reveal", "returns", "yields", "to", "downto")
_KEPT = CLAUSES | DECLARES | MODIFIERS | STATEMENTS | {*_TYPES, *_WORDS, *_MORE, "by", "Length"}
"""Names that are Dafny's own."""


def shingles(example: DafnyExample) -> Shingles:
    """The shingles of one example, without its context."""
    found = tokens(plain(example.header + example.spec + example.body))
    return frozenset(_numbered(found[at : at + WIDTH]) for at in range(max(1, len(found) - WIDTH + 1)))


def renamed(example: DafnyExample) -> tuple[str, ...]:
    """The tokens of one example, without its context and its annotations, its own names numbered."""
    return _numbered(tokens(plain(example.header + example.spec + example.body)))


def near_duplicates(sets: Mapping[str, Shingles], bound: float = BOUND) -> Iterator[tuple[str, str]]:
    """Every pair of keys whose sets' similarity is at least `bound`, each once."""
    counts = Counter(one for members in sets.values() for one in members)
    rank = {one: at for at, one in enumerate(sorted(counts, key=lambda one: (counts[one], one)))}
    holders: defaultdict[int, list[str]] = defaultdict(list)
    for key in sorted(sets, key=lambda key: (len(sets[key]), key)):
        members = sorted(rank[one] for one in sets[key])
        prefix = members[: len(members) - ceil(bound * len(members) - EPSILON) + 1]
        others = {other for one in prefix for other in holders[one]}
        yield from ((other, key) for other in sorted(others) if similarity(sets[other], sets[key]) >= bound)
        for one in prefix:
            holders[one].append(key)


def similarity(one: Shingles, other: Shingles) -> float:
    """Jaccard similarity: the size of the intersection over the size of the union."""
    both = len(one & other)
    return both / (len(one) + len(other) - both)


def _numbered(run: Sequence[str]) -> tuple[str, ...]:
    names: dict[str, str] = {}
    own = (token for token in run if is_name(token) and token not in _KEPT)
    for token in own:
        names.setdefault(token, f"${len(names)}")
    return tuple(names.get(token, token) for token in run)
