"""One row: a drawn method in a style, and the key that distinguishes it from all others, apart from names."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rlvr_exp.core import seeds
from rlvr_exp.corpora.dafny import mixture
from rlvr_exp.corpora.dafny.draw import PLAIN_NAMES, Draw
from rlvr_exp.corpora.dafny.family import Method, ProgramFamily
from rlvr_exp.corpora.dafny.layout import BodyLine, body, lay
from rlvr_exp.corpora.dafny.recursion import SELF
from rlvr_exp.tasks.dafny.tokens import tokens

RESERVED = frozenset(
    [
        "method",
        "function",
        "predicate",
        "lemma",
        "returns",
        "requires",
        "ensures",
        "modifies",
        "reads",
        "decreases",
        "invariant",
        "forall",
        "exists",
        "old",
        "in",
        "if",
        "then",
        "else",
        "while",
        "int",
        "nat",
        "bool",
        "seq",
        "array",
        "true",
        "false",
        "new",
        "Length",
        "return",
        "assert",
        "var",
        "break",
        "multiset",
    ]
)
"""Words that mean the same in every method; every other name is the method's own."""


@dataclass(frozen=True)
class Built:
    """A finished method, not yet proved. `style`: the form of the body and the amount of its annotations."""

    family: str
    kind: str
    style: str
    before: str
    header: str
    spec: str
    lines: tuple[BodyLine, ...]

    @property
    def body(self) -> str:
        return body(self.lines, ("",))

    @property
    def annotated(self) -> str:
        return body(self.lines)

    @property
    def key(self) -> str:
        """The specification with every name replaced by its place: equal for methods that differ in names alone."""
        return canonical(f"{self.before}{self.header}{self.spec}")

    def program(self, annotated: str | None = None) -> str:
        return f"{self.before}{self.header}{self.spec}{self.annotated if annotated is None else annotated}\n"

    def row(self, name: str, mutants: Sequence[str]) -> dict[str, Any]:
        """The row in its stored form."""
        texts = {"before": self.before, "header": self.header, "spec": self.spec, "body": self.body}
        rest = {"annotated_body": self.annotated, "after": "\n", "mutants": list(mutants)}
        return {"id": name, "family": self.family, "kind": self.kind, "style": self.style} | texts | rest


def canonical(text: str) -> str:
    names: dict[str, str] = {}
    found = []
    for token in tokens(text):
        own = (token[0].isalpha() or token[0] == "_") and token not in RESERVED
        found.append(names.setdefault(token, f"v{len(names)}") if own else token)
    return " ".join(found)


def build(family: ProgramFamily, *key: seeds.Key) -> Built:
    """Draw a method of the family."""
    rng = seeds.stream("dafny", mixture.SEED, family.name, *key)
    draw = Draw(rng)
    method = family.draw(draw)
    taken = tokens(method.before)
    names = PLAIN_NAMES if draw.chance(mixture.PLAIN_NAME_SHARE) else family.names
    name = rng.choice([one for one in names if one not in taken])
    winded = bool(method.winded) and draw.chance(mixture.WINDED_SHARE)
    notation = rng.choice(list(method.winded if winded else method.plain))
    lines, elaborate = _annotated(lay(notation.replace(SELF, name)), draw)
    style = f"{'winded' if winded else 'plain'}/{'elaborate' if elaborate else 'lean'}"
    returns = f" returns ({method.returns})" if method.returns else ""
    header = f"method {name}({method.params}){returns}\n"
    return Built(family.name, family.kind, style, method.before, header, _spec(method, draw), lines)


def _annotated(lines: Sequence[BodyLine], draw: Draw) -> tuple[tuple[BodyLine, ...], bool]:
    """The lines with the annotations that this method carries, and whether some of them are surplus."""
    elaborate = draw.chance(mixture.ELABORATE_SHARE)
    kept = tuple(one for one in lines if one.mark != "~" or (elaborate and draw.chance(mixture.SPARE_SHARE)))
    return kept, any(one.mark == "~" for one in kept)


def _spec(method: Method, draw: Draw) -> str:
    ensures = list(method.ensures)
    if not method.ordered:
        draw.rng.shuffle(ensures)
    clauses = [f"requires {one}" for one in _joined(list(method.requires), draw)]
    clauses += [f"modifies {method.modifies}"] if method.modifies else []
    clauses += [f"ensures {one}" for one in _joined(ensures, draw)]
    return "".join(f"  {clause}\n" for clause in clauses)


def _joined(claims: list[str], draw: Draw) -> list[str]:
    """The claims, joined into a single claim where that cannot change their meaning."""
    simple = all(word not in one for one in claims for word in ("==>", "||", "forall", "exists", "if "))
    if len(claims) > 1 and simple and draw.chance(mixture.JOINED_SHARE):
        return [" && ".join(claims)]
    return claims
