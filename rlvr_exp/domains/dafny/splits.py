"""Reproducible splits of Dafny examples, stratified by family, construct and length; similar examples stay together.

The examples of one program stay together, since each is in the others' context, and so do near-duplicates. The hash of a group's
content decides its part (rlvr_exp/tasks/splits.py), so no name and no order does.

Near-duplicates are nearly equal, apart from names, comments, blanks and annotations. A method is represented by the set of its
shingles: runs of tokens of header, specification and code, in which the program's own names are numbered within the run. Two
are near-duplicates if the sets' Jaccard similarity reaches a bound. Exact, by prefix filtering (Bayardo, Ma, Srikant,
"Scaling up all pairs similarity search", 2007): no hashing decides.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from math import ceil

from rlvr_exp.core.hashing import content_hash
from rlvr_exp.domains.dafny.problem import DafnyExample
from rlvr_exp.domains.dafny.tokens import CLAUSES, DECLARES, MODIFIERS, STATEMENTS, is_name, plain, tokens
from rlvr_exp.tasks.splits import Item, split, tied

WIDTH, BOUND = 6, 0.7
"""Tokens of a shingle, and the least similarity of near-duplicates."""
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


FRACTIONS = {"test": 0.1, "dev": 0.1}
LENGTHS = (32, 64, 128, 256, 512)
"""Borders between bands, in tokens of the annotated method: fixed, so that adding examples moves no other."""
CONSTRUCTS = ("lemma", "loop", "recursion", "array", "sequence", "set or map", "branch", "straight")
"""Constructs by precedence: the first that an example has is its stratum."""
_SEQUENCES, _SETS = {"seq", "string"}, {"set", "iset", "multiset", "map", "imap"}


def split_examples(
    examples: Iterable[DafnyExample],
    fractions: Mapping[str, float] | None = None,
    seed: int = 0,
    strata: Callable[[DafnyExample], str] | None = None,
) -> dict[str, list[DafnyExample]]:
    """Every example under its part; `train` has the rest. Each part in the given order.

    Args:
        fractions: share of each part by name; a tenth each for test and dev if not given.
        strata: an example's stratum besides its length, in place of family and construct.

    Raises:
        ValueError: a fraction is negative, or their sum is above 1.
    """
    examples, wanted = list(examples), dict(FRACTIONS if fractions is None else fractions)
    stratum = strata or (lambda example: f"{example.family}, {construct(example)}")
    groups = alike(examples)
    keys = {example.id: content_hash([example.content, len(example.before)]) for example in examples}
    items = [Item(keys[one.id], groups[one.id], stratum(one), band(one)) for one in examples]
    parts = split(items, list(wanted.values()), seed)
    names = [*wanted, "train"]
    placed: dict[str, list[DafnyExample]] = {name: [] for name in ("train", *wanted)}
    for example in examples:
        placed[names[parts[keys[example.id]]]].append(example)
    return placed


@lru_cache(maxsize=4)
def items_of(examples: tuple[DafnyExample, ...]) -> list[Item]:
    """Examples by their ids, to be placed in folds: by family and construct, and by length. Once a process for all folds."""
    groups = alike(examples)
    return [Item(one.id, groups[one.id], f"{one.family}, {construct(one)}", band(one)) for one in examples]


def alike(examples: Sequence[DafnyExample]) -> dict[str, str]:
    """A group for each id: examples of one program, near-duplicates, and examples with a group in common share it, directly or
    through others."""
    sets = {example.id: shingles(example) for example in examples}
    own = {name: content_hash(sorted(members)) for name, members in sets.items()}
    contents = {example.id: [own[example.id], content_hash(example.content)] for example in examples}
    for one, other in near_duplicates(sets):
        contents[one].append(own[other])
    named = frozenset(name for example in examples for name in example.groups)
    for example in examples:
        contents[example.id] += [_LAST + name for group in example.groups for name in _continued(group, named)]
    return tied(contents)


_LAST = "~"
"""Sorts after all hashes: a name of a group does not change the name that `tied` gives."""


def _continued(group: str, named: frozenset[str]) -> Iterator[str]:
    """The group, and those of the named groups that its name continues."""
    ends = (at for at, letter in enumerate(group) if letter == "_")
    yield from (group[:end] for end in ends if group[:end] in named)
    yield group


def band(example: DafnyExample) -> int:
    """The band of its length: 0 for the shortest."""
    size = len(tokens(plain(example.header + example.spec + (example.annotated_body or example.body))))
    return sum(size >= border for border in LENGTHS)


def construct(example: DafnyExample) -> str:
    """The first of CONSTRUCTS in an example."""
    return constructs(example)[0]


def constructs(example: DafnyExample) -> list[str]:
    """All constructs of an example, at least one, in the order of CONSTRUCTS."""
    head = tokens(plain(example.header))
    mentioned = {*head, *tokens(plain(example.spec))}
    body = tokens(plain(example.annotated_body or example.body))
    words = mentioned.union(body)
    depth, name = 0, ""  # The target's own name, after its keyword and its attributes.
    for token in head:
        depth += (token == "{") - (token == "}")
        if token in ("(", "<", "[") and not depth:
            break
        if is_name(token) and not depth:
            name = token
    has = {
        "lemma": bool({"lemma", "colemma"} & set(head[:4])),
        "loop": bool({"while", "for"} & set(body)),
        "recursion": (name, "(") in pairwise(body),
        "array": any(word.startswith("array") for word in words),
        "sequence": bool(_SEQUENCES & words),
        "set or map": bool(_SETS & words),
        "branch": bool({"if", "match"} & set(body)),
    }
    return [name for name in CONSTRUCTS if has.get(name)] or ["straight"]
