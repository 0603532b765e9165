"""Programs for Dafny 3 or 4 translated to Dafny 2.3, as far as that is mechanical.

    function F, predicate P     `function method`, `predicate method` where code calls them, directly or through others
    ghost function, predicate   without `ghost`, which 2.3 means without a word
    for i := a to b { S }       { var i := a; while i < b invariant a <= i <= b { S i := i + 1; } }, and so downto

A row holds a program, with its version without hints where the set has it. A changed program has the family
`SET, back-ported to 2.3`, and so has its own row in every table by family. Programs that use `function method` are
older and stay. Whether a ported program verifies is for Dafny to decide: usable_examples takes the rows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rlvr_exp.config.schema import Config
from rlvr_exp.corpora.row_files import write_rows
from rlvr_exp.records.context import RunContext
from rlvr_exp.tasks.dafny import erase
from rlvr_exp.tasks.dafny.expressions import Walker, is_name, partners
from rlvr_exp.tasks.dafny.load import survey
from rlvr_exp.tasks.dafny.program import Program
from rlvr_exp.tasks.dafny.split import Split, qualified, split
from rlvr_exp.tasks.dafny.syntax import Unreadable
from rlvr_exp.tasks.dafny.tokens import places, plain, tokens

PORTED = "back-ported to 2.3"
_WORDS = ("function", "predicate")
_OTHER_KINDS = frozenset(("inductive", "least", "greatest", "twostate", "ghost"))


@dataclass(frozen=True)
class _Edit:
    """New text for the range between two offsets."""

    start: int
    stop: int
    text: str


def ported(text: str) -> str:
    """The program for Dafny 2.3; the same text where nothing is to be changed. Raises Unreadable."""
    whole = split(text)
    walk = Walker(found := tokens(plain(text)), partners(found))
    spans = places(text)
    edits = sorted([*_declarations(walk, whole, spans), *_loops(walk, spans, text)], key=lambda edit: edit.start)
    parts: list[str] = []
    at = 0
    for edit in edits:
        parts += (text[at : edit.start], edit.text)
        at = edit.stop
    return "".join(parts) + text[at:]


def port(program: Program) -> Program:
    """A program ported with its version without hints; the same where it cannot be read or needs no change."""
    try:
        text = ported(program.text)
        stripped = ported(program.stripped) if program.stripped else ""
    except Unreadable:
        return program
    if text == program.text:
        return program
    return replace(program, text=text, stripped=stripped, family=f"{program.family}, {PORTED}")


def _declarations(walk: Walker, whole: Split, spans: Sequence[tuple[int, int]]) -> Iterator[_Edit]:
    if any(walk.at(index + 1) == "method" for index in range(walk.end) if walk.at(index) in _WORDS):
        return
    compiled = _compiled(whole)
    for index in range(walk.end):
        if walk.at(index) not in _WORDS:
            continue
        if index and walk.at(index - 1) == "ghost":
            yield _Edit(spans[index - 1][0], spans[index][0], "")
        elif _name(walk, index + 1) in compiled and (not index or walk.at(index - 1) not in _OTHER_KINDS):
            yield _Edit(spans[index][1], spans[index][1], " method")


def _name(walk: Walker, index: int) -> str:
    while walk.is_attribute(index):
        index = walk.closes[index] + 1
    return walk.at(index)


def _compiled(whole: Split) -> set[str]:
    """Names of functions that compiled code mentions, directly or through other functions."""
    bodies = {one.name: one.body or () for _, one in qualified(whole.declarations) if one.kind == "function"}
    codes = [erase.method_body(tokens(plain(one.body)), whole.proofs) for one in whole.methods if not one.ghost]
    reached = {token for code in codes for token in code} & set(bodies)
    fresh = set(reached)
    while fresh:
        fresh = {token for name in fresh for token in bodies[name] if token in bodies} - reached
        reached |= fresh
    return reached


@dataclass(frozen=True)
class _Loop:
    """Indices of a `for`'s tokens: its word, `:=`, `to` or `downto`, after the last bound, the body's brace."""

    start: int
    assign: int
    way: int
    stop: int
    brace: int


def _loops(walk: Walker, spans: Sequence[tuple[int, int]], text: str) -> Iterator[_Edit]:
    """Every `for` that counts between two bounds as a `while` with its own variable."""
    for loop in filter(None, (_loop(walk, index) for index in range(walk.end) if walk.at(index) == "for")):
        name, up = walk.at(loop.start + 1), walk.at(loop.way) == "to"
        bounds = ((loop.assign + 1, loop.way), (loop.way + 1, loop.stop))
        first, last = (_term(walk, text, spans, begin, end) for begin, end in bounds)
        low, high = (first, last) if up else (last, first)
        opening, close = spans[loop.start][0], walk.closes[loop.brace]
        line = "\n" + _indent(text, opening)
        declared = text[spans[loop.start + 1][0] : spans[loop.assign - 1][1]]
        test = f"{name} < {last}" if up else f"{last} < {name}"
        head = f"{{ var {declared} := {first};{line}while {test}{line}  invariant {low} <= {name} <= {high}"
        yield _Edit(opening, spans[loop.stop - 1][1], head)
        inner = _indent(text, spans[close][0])
        if not up:
            yield _Edit(spans[loop.brace][1], spans[loop.brace][1], f"\n{inner}  {name} := {name} - 1;")
        yield _Edit(*spans[close], f"  {name} := {name} + 1;\n{inner}}} }}" if up else "} }")


def _loop(walk: Walker, index: int) -> _Loop | None:
    name, assign = walk.at(index + 1), index + 2
    if not name or not is_name(name) or name == "_":
        return None
    if walk.at(assign) == ":":
        assign = next((at for at in range(assign, walk.end) if walk.at(at) in (":=", "{", ";")), walk.end)
    way = walk.past_expression(assign + 1)
    stop = walk.past_expression(way + 1)
    brace = _past_clauses(walk, stop)
    counts = walk.at(assign) == ":=" and walk.at(way) in ("to", "downto") and walk.at(way + 1) != "*"
    return _Loop(index, assign, way, stop, brace) if counts and walk.at(brace) == "{" else None


def _term(walk: Walker, text: str, spans: Sequence[tuple[int, int]], begin: int, end: int) -> str:
    """A bound in the form that a comparison allows."""
    shown = text[spans[begin][0] : spans[end - 1][1]]
    return f"({shown})" if {"if", "match", "var", "as"} & set(walk.tokens[begin:end]) else shown


def _indent(text: str, at: int) -> str:
    """The indentation of the line at an offset."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip())]


def _past_clauses(walk: Walker, index: int) -> int:
    while walk.at(index) in ("invariant", "decreases", "modifies"):
        index = walk.past_expression(index + 1)
        index += walk.at(index) == ";"
    return index


def make(config: Config, context: RunContext) -> tuple[str, dict[str, int]]:
    """Write the programs, a row each."""
    programs = [port(program) for program in survey(config.prepare.path).programs]
    changed = sum(one.family.endswith(PORTED) for one in programs)
    output = Path(config.prepare.output or context.directory / "programs.jsonl")
    write_rows(output, map(_row, programs))
    return f"programs: {len(programs)}, changed: {changed}", {"programs": len(programs), "changed": changed}


def _row(one: Program) -> dict[str, str]:
    return {"id": one.id, "program": one.text, "hints_removed": one.stripped, "family": one.family}
