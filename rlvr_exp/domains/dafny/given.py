"""Declarations of a given program that remain a risk: Dafny accepts unsound proofs about them, and no guard can forbid them,
because they are given. A candidate can use what they allow (`rlvr_exp/docs/dafny.md`, soundness).

Classes, codatatypes and types that may be empty are the risk. Function-typed fields, constants with initialisers and functions with
subset results are counted if the program has one of these.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from rlvr_exp.domains.dafny.problem import DafnyExample
from rlvr_exp.domains.dafny.syntax import Declaration, Unreadable, every, parse
from rlvr_exp.domains.dafny.tokens import plain

ARROWS = frozenset(("->", "-->", "~>"))


def given_risks(example: DafnyExample) -> list[str]:
    """The kinds of such declarations in the given program of an example; none if it cannot be parsed."""
    try:
        declarations = list(every(parse(plain(example.body if example.whole else example.program(None)))))
    except Unreadable:
        return []
    found = set(_risks(declarations))
    return sorted(found) if found & {"class", "codatatype", "type that may be empty"} else []


def _risks(declarations: Sequence[Declaration]) -> Iterator[str]:
    subsets = {"nat", *(one.name for one in declarations if one.kind == "type" and "|" in one.head)}
    for one in declarations:
        if one.kind in ("class", "trait", "iterator"):
            yield "class"
            if one.head[one.head.index(one.name) + 1 :][:1] == ("<",):
                yield "generic class"
        if "codatatype" in one.head:
            yield "codatatype"
        if one.kind == "type" and ("witness", "*") in pairwise(one.head):
            yield "type that may be empty"
        if one.kind in ("field", "datatype") and ARROWS & set(one.head):
            yield "field of a function type"
        if one.kind == "const" and ":=" in one.head:
            yield "constant with an initialiser"
        if one.kind == "function" and subsets & set(result_of(one.head)):
            yield "function with a subset result"


def result_of(head: Sequence[str]) -> Sequence[str]:
    """The tokens behind a function's parameters."""
    depth = 0
    for index, token in enumerate(head):
        depth += (token == "(") - (token == ")")
        if token == ")" and not depth:
            return head[index + 1 :]
    return ()
