"""`prepare=dafny_rows` and `prepare=dafny_backport`: published sets of Dafny programs as rows, and in Dafny 2.3.

Rows for `+stage=verify verifier=dafny`, by `prepare.variant`:

    ground_truth     each ground truth against itself
    hints_removed    each program without its hints, likewise
    pairs            ground truth as the answer to hints_removed
    wrong            CloverBench: wrong variants as answers to the right programs
    tests            MBPP-DFY: programs with their tests as answers

The folder is that of the data set: it holds DafnyBench/dataset, CloverBench or MBPP-DFY-153. Only pairs leave out
programs without a version without hints. A row of `tests` passes if the program's specification proves what its tests
assert: then so does every body that is proved against it. Tests that `expect`, or only print, are left out: they would
have to be run, and nothing is run here.

CloverBench's wrong variants are programs that verify and specify too little, each beside the right program:

    C1  the text alone is changed; the program is the right program
    C2  the specification is weaker     C3  specification and text     C6  code and specification

Each verifies against its own specification; as an answer to the right program only C1 may pass. Rows of `wrong` also
have `weakened`: whether the variant's specification differs from the right program's.

The back-port translates programs for Dafny 3 or 4 to Dafny 2.3, as far as that is mechanical.

    function F, predicate P     `function method`, `predicate method` if code calls them, directly or through others
    ghost function, predicate   without `ghost`, which 2.3 implies
    for i := a to b { S }       { var i := a; while i < b invariant a <= i <= b { S i := i + 1; } }, and so downto

A row holds a program, with its version without hints if the set has it. A changed program has the family
`SET, back-ported to 2.3`, and so has its own row in every table by family. Programs that use `function method` are
older and stay. Whether a ported program verifies is for Dafny to decide: `prepare=dafny_usable` takes the rows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rlvr_exp.config.schema import Config
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.core.files import write_json_lines
from rlvr_exp.domains.dafny import annotations
from rlvr_exp.domains.dafny.load import DafnyProgram, read_text, survey
from rlvr_exp.domains.dafny.syntax import Clause, Split, Tokens, Unreadable, parse, qualified, split
from rlvr_exp.domains.dafny.tokens import Walker, is_name, partners, places, plain, tokens
from rlvr_exp.records.context import RunContext

_FILES = {"C1": "{}_strong.dfy", "C2": "{}_C1.dfy", "C3": "{}_C1.dfy", "C6": "{}.dfy"}
"""CloverBench's file of a variant, by its class."""


def make_rows(config: Config, context: RunContext) -> tuple[str, dict[str, int]]:
    """Write the rows."""
    options = config.prepare
    output = Path(options.output or context.directory / "rows.jsonl")
    count = write_json_lines(output, rows(Path(options.path), options.variant))
    return f"{count} rows: {output}", {"rows": count}


def rows(folder: Path, variant: str) -> Iterator[dict[str, str | bool]]:
    """Rows {"id", "program", "candidate"}, in the order of their names.

    Raises:
        InputError: the folder has no data set, or a file of it is missing.
    """
    if variant == "wrong":
        for one in variants(folder):
            name = f"{one.kind}/{one.name}"
            yield {"id": name, "program": one.given, "candidate": one.text, "weakened": one.weakened}
        return
    if variant == "tests":
        for path in _files(folder, "MBPP-DFY-*/test/*.dfy", "MBPP-DFY"):
            text, source = read_text(path), path.parent.parent / "src" / path.name
            if not source.exists():
                continue
            words, program = tokens(plain(text)), read_text(source)
            # Tests have to assert something beyond the program's own asserts, and to expect nothing.
            if "expect" not in words and words.count("assert") > tokens(plain(program)).count("assert"):
                yield {"id": f"{path.parent.parent.name}/{path.stem}", "program": program, "candidate": text}
        return
    dataset = folder / "DafnyBench" / "dataset"
    name = "hints_removed" if variant == "hints_removed" else "ground_truth"
    for path in _files(dataset / name, "*.dfy", "DafnyBench"):
        given = dataset / "hints_removed" / f"{path.stem}_no_hints.dfy" if variant == "pairs" else path
        if given.exists():
            yield {"id": path.stem, "program": read_text(given), "candidate": read_text(path)}


def _files(folder: Path, pattern: str, name: str) -> list[Path]:
    found = sorted(folder.glob(pattern))
    if not found:
        raise InputError(InputProblem(str(folder), f"no {pattern} files", remedy=f"give the folder of {name}"))
    return found


@dataclass(frozen=True)
class Variant:
    """One wrong program."""

    name: str
    kind: str
    """C1, C2, C3 or C6."""
    given: str
    """The right program."""
    text: str

    @property
    def weakened(self) -> bool:
        """Whether its specification differs from the right program's. Raises Unreadable."""
        return _specification(self.given) != _specification(self.text)


def _specification(text: str) -> list[tuple[str, Tokens, tuple[Clause, ...], Tokens | None]]:
    """Every declaration without its code: head and clauses, and of functions the body too."""
    every = qualified(parse(plain(text)))
    return [(name, one.head, one.clauses, one.body if one.kind == "function" else None) for name, one in every]


def variants(path: Path | str) -> list[Variant]:
    """All variants of CloverBench, by class and name.

    Raises:
        InputError: no CloverBench with its adversarial_incorrect folder there, or a file of it is missing.
    """
    places = (Path(path), Path(path) / "CloverBench")
    root = next((one for one in places if (one / "adversarial_incorrect").is_dir()), None)
    if root is None:
        raise InputError(InputProblem(str(path), "no adversarial_incorrect folder", remedy="give CloverBench's folder"))
    found = []
    for kind, pattern in _FILES.items():
        for folder in sorted((root / "adversarial_incorrect" / kind).glob("*/")):
            name = folder.name
            files = root / "textbook_algo" / name / f"{name}_strong.dfy", folder / pattern.format(name)
            for file in files:
                if not file.is_file():
                    raise InputError(InputProblem(str(file), "missing", remedy="fetch the data set again"))
            found.append(Variant(name, kind, *map(read_text, files)))
    return found


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
    """The program for Dafny 2.3; the same text if nothing is to be changed. Raises Unreadable."""
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


def port(program: DafnyProgram) -> DafnyProgram:
    """A program ported with its version without hints; the same if it cannot be read or needs no change."""
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
        name = index + 1
        while walk.is_attribute(name):
            name = walk.closes[name] + 1
        if index and walk.at(index - 1) == "ghost":
            yield _Edit(spans[index - 1][0], spans[index][0], "")
        elif walk.at(name) in compiled and (not index or walk.at(index - 1) not in _OTHER_KINDS):
            yield _Edit(spans[index][1], spans[index][1], " method")


def _compiled(whole: Split) -> set[str]:
    """Names of functions that compiled code mentions, directly or through other functions."""
    bodies = {one.name: one.body or () for _, one in qualified(whole.declarations) if one.kind == "function"}
    codes = [annotations.method_body(tokens(plain(one.body)), whole.proofs) for one in whole.methods if not one.ghost]
    reached = {token for code in codes for token in code} & set(bodies)
    fresh = set(reached)
    while fresh:
        fresh = {token for name in fresh for token in bodies[name] if token in bodies} - reached
        reached |= fresh
    return reached


def _loops(walk: Walker, spans: Sequence[tuple[int, int]], text: str) -> Iterator[_Edit]:
    """Every `for` that counts between two bounds as a `while` with its own variable."""
    for start in (index for index in range(walk.end) if walk.at(index) == "for"):
        name, assign = walk.at(start + 1), start + 2
        if not name or not is_name(name) or name == "_":
            continue
        if walk.at(assign) == ":":
            assign = next((at for at in range(assign, walk.end) if walk.at(at) in (":=", "{", ";")), walk.end)
        way = walk.past_expression(assign + 1)
        brace = stop = walk.past_expression(way + 1)
        while walk.at(brace) in ("invariant", "decreases", "modifies"):
            brace = walk.past_expression(brace + 1)
            brace += walk.at(brace) == ";"
        counts = walk.at(assign) == ":=" and walk.at(way) in ("to", "downto") and walk.at(way + 1) != "*"
        if not counts or walk.at(brace) != "{":
            continue
        up, bounds = walk.at(way) == "to", ((assign + 1, way), (way + 1, stop))
        first, last = (_term(walk, text, spans, begin, end) for begin, end in bounds)
        low, high = (first, last) if up else (last, first)
        opening, close = spans[start][0], walk.closes[brace]
        line = "\n" + _indent(text, opening)
        declared = text[spans[start + 1][0] : spans[assign - 1][1]]
        test = f"{name} < {last}" if up else f"{last} < {name}"
        head = f"{{ var {declared} := {first};{line}while {test}{line}  invariant {low} <= {name} <= {high}"
        yield _Edit(opening, spans[stop - 1][1], head)
        inner = _indent(text, spans[close][0])
        if not up:
            yield _Edit(spans[brace][1], spans[brace][1], f"\n{inner}  {name} := {name} - 1;")
        yield _Edit(*spans[close], f"  {name} := {name} + 1;\n{inner}}} }}" if up else "} }")


def _term(walk: Walker, text: str, spans: Sequence[tuple[int, int]], begin: int, end: int) -> str:
    """A bound in the form that a comparison allows."""
    shown = text[spans[begin][0] : spans[end - 1][1]]
    return f"({shown})" if {"if", "match", "var", "as"} & set(walk.tokens[begin:end]) else shown


def _indent(text: str, at: int) -> str:
    """The indentation of the line at an offset."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip())]


def make_backport(config: Config, context: RunContext) -> tuple[str, dict[str, int]]:
    """Write the programs, a row each."""
    programs = [port(program) for program in survey(config.prepare.path).programs]
    changed = sum(one.family.endswith(PORTED) for one in programs)
    output = Path(config.prepare.output or context.directory / "programs.jsonl")
    write_json_lines(
        output,
        ({"id": one.id, "program": one.text, "hints_removed": one.stripped, "family": one.family} for one in programs),
    )
    return f"programs: {len(programs)}, changed: {changed}", {"programs": len(programs), "changed": changed}
