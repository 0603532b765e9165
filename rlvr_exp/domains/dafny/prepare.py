"""`prepare=dafny_check`, `dafny_rows` and `dafny_backport`: published sets of Dafny programs before a run.

The check reads all of the data, cuts every program into its methods, reassembles each, builds the pairings of both roles,
splits, and counts with reasons. Nothing is proved: `prepare=dafny_usable` does that.

Rows for `+stage=verify verifier=dafny`, by `prepare.variant`:

    ground_truth     each ground truth against itself
    hints_removed    each program without its hints, likewise
    pairs            ground truth as the answer to hints_removed
    wrong            CloverBench: wrong variants as answers to the right programs
    tests            MBPP-DFY: programs with their tests as answers

The folder is the data set's, which holds DafnyBench/dataset, CloverBench or MBPP-DFY-153. Only pairs leave out
programs without a version without hints. A row of `tests` passes where the program's specification proves what its tests
assert: then so does every body that is proved against it. Tests that `expect`, or only print, are left out: they would
have to be run, and nothing is run here.

CloverBench's wrong variants are programs that verify and specify too little, each beside the right program:

    C1  the text alone is changed; the program is the right program
    C2  the specification is weaker     C3  specification and text     C6  code and specification

Each verifies against its own specification; as an answer to the right program only C1 may pass. Rows of `wrong` also
have `weakened`: whether the variant's specification differs from the right program's.

The back-port translates programs for Dafny 3 or 4 to Dafny 2.3, as far as that is mechanical.

    function F, predicate P     `function method`, `predicate method` where code calls them, directly or through others
    ghost function, predicate   without `ghost`, which 2.3 means without a word
    for i := a to b { S }       { var i := a; while i < b invariant a <= i <= b { S i := i + 1; } }, and so downto

A row holds a program, with its version without hints where the set has it. A changed program has the family
`SET, back-ported to 2.3`, and so has its own row in every table by family. Programs that use `function method` are
older and stay. Whether a ported program verifies is for Dafny to decide: `prepare=dafny_usable` takes the rows.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rlvr_exp.config.schema import Config
from rlvr_exp.core.errors import GuardStop, InputError, InputProblem
from rlvr_exp.core.files import write_json_lines
from rlvr_exp.domains.dafny import annotations as erase
from rlvr_exp.domains.dafny.example import DafnyExample
from rlvr_exp.domains.dafny.load import Program, Survey, read_text, survey
from rlvr_exp.domains.dafny.pairs import Pairings, build_pairings_for_annotator, build_pairings_for_writer
from rlvr_exp.domains.dafny.splits import alike, construct, split_examples
from rlvr_exp.domains.dafny.syntax import CALLABLES, Clause, Split, Tokens, Unreadable, parse, qualified, split
from rlvr_exp.domains.dafny.tokens import ERROR, Walker, is_name, partners, places, plain, tokens
from rlvr_exp.records.context import RunContext

_SHOWN = 20


def make_check(config: Config, context: RunContext) -> tuple[str, dict[str, int]]:
    """The counts. Raises InputError for faults of the data, GuardStop where a reassembled program is another."""
    path = config.prepare.path
    found = survey(path)
    lost = [*changed(found), *other_text(found)]
    text = f"path: {path}\n{_report(found, lost)}"
    if lost:
        raise GuardStop(text)
    return text, {"programs": len(found.programs), "examples": len(found.examples)}


def changed(found: Survey) -> list[str]:
    """Programs that differ from one of their methods reassembled from its parts."""
    lost = []
    for program in found.programs:
        try:
            methods = split(program.text).methods
        except Unreadable:
            continue
        whole = (method.before + method.header + method.spec + method.body + method.after for method in methods)
        if any(text != program.text for text in whole):
            lost.append(program.id)
    return lost


def other_text(found: Survey) -> list[str]:
    """Examples whose texts are not their program's."""
    texts = {program.text for program in found.programs}
    return [example.id for example in found.examples if texts and example.gold not in texts]


def _report(found: Survey, lost: Sequence[str]) -> str:
    examples = found.examples
    lexed = [program for program in found.programs if not any(one[0] == ERROR for one in tokens(plain(program.text)))]
    reasons = Counter(reason.partition(":")[0] for reason in found.left_out.values())
    lines = [
        f"set: {found.set}",
        f"programs: {len(found.programs)}, that lex: {len(lexed)}, without an example: {_counted(reasons)}",
        f"put together otherwise than given: {len(lost)}" + "".join(f"\n    {name}" for name in lost[:_SHOWN]),
        f"declared with a body: {_counted(_kinds(found))}",
        f"examples: {len(examples)}, by first construct: {_counted(Counter(map(construct, examples)))}",
    ]
    lines += [_summary(build(examples)) for build in (build_pairings_for_writer, build_pairings_for_annotator)]
    if examples:
        lines += _splits(examples)
    return "\n".join(lines)


def _kinds(found: Survey) -> Counter[str]:
    kinds: Counter[str] = Counter()
    for program in found.programs:
        try:
            declared = qualified(split(program.text).declarations)
        except Unreadable:
            continue
        kinds.update(one.kind for _, one in declared if one.kind in CALLABLES and one.body is not None)
    return kinds


def _summary(pairings: Pairings) -> str:
    same = sum(pairing.given == pairing.wanted for pairing in pairings)
    left = "".join(f"\n    {count} {reason}" for reason, count in pairings.reasons().items())
    nothing = f" ({same} with nothing to add)" if pairings.role == "annotator" else ""
    return f"{pairings.role} pairs: {len(pairings)}{nothing}, left out: {len(pairings.left_out)}{left}"


def _splits(examples: Sequence[DafnyExample]) -> Iterable[str]:
    groups = Counter(alike(examples).values())
    parts = split_examples(examples)
    yield f"groups that stay together: {len(groups)}, the largest of {max(groups.values())}"
    yield "splits: " + " ".join(f"{name}={len(members)}" for name, members in parts.items())


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.most_common()) or "none"


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
        InputError: no data set there.
    """
    if variant == "wrong":
        yield from _wrong(folder)
        return
    if variant == "tests":
        yield from _tests(folder)
        return
    dataset = folder / "DafnyBench" / "dataset"
    name = "hints_removed" if variant == "hints_removed" else "ground_truth"
    found = sorted((dataset / name).glob("*.dfy"))
    if not found:
        raise InputError(InputProblem(str(dataset / name), "no .dfy files", remedy="give the folder of DafnyBench"))
    for path in found:
        given = dataset / "hints_removed" / f"{path.stem}_no_hints.dfy" if variant == "pairs" else path
        if given.exists():
            yield {"id": path.stem, "program": read_text(given), "candidate": read_text(path)}


def _wrong(folder: Path) -> Iterator[dict[str, str | bool]]:
    for one in variants(folder):
        name = f"{one.kind}/{one.name}"
        yield {"id": name, "program": one.given, "candidate": one.text, "weakened": one.weakened}


def _tests(folder: Path) -> Iterator[dict[str, str | bool]]:
    found = sorted(folder.glob("MBPP-DFY-*/test/*.dfy"))
    if not found:
        raise InputError(InputProblem(str(folder), "no MBPP-DFY-*/test/*.dfy", remedy="give the folder of MBPP-DFY"))
    for path in found:
        text, given = read_text(path), path.parent.parent / "src" / path.name
        if given.exists() and _only_asserts(text, program := read_text(given)):
            yield {"id": f"{path.parent.parent.name}/{path.stem}", "program": program, "candidate": text}


def _only_asserts(tests: str, program: str) -> bool:
    """Whether tests assert anything beyond the program's own asserts, and expect nothing."""
    words, before = tokens(plain(tests)), tokens(plain(program))
    return "expect" not in words and words.count("assert") > before.count("assert")


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


def variants(path: Path | str) -> list[Variant]:
    """All variants of the set, by class and name.

    Raises:
        InputError: no CloverBench with its adversarial_incorrect folder there, or a file of it is missing.
    """
    places = (Path(path), Path(path) / "CloverBench")
    root = next((one for one in places if (one / "adversarial_incorrect").is_dir()), None)
    if root is None:
        raise InputError(InputProblem(str(path), "no adversarial_incorrect folder", remedy="give CloverBench's folder"))
    return list(_variants(root))


def _variants(root: Path) -> Iterator[Variant]:
    for kind, pattern in _FILES.items():
        for folder in sorted((root / "adversarial_incorrect" / kind).glob("*/")):
            name = folder.name
            given, text = root / "textbook_algo" / name / f"{name}_strong.dfy", folder / pattern.format(name)
            missing = next((file for file in (given, text) if not file.is_file()), None)
            if missing is not None:
                raise InputError(InputProblem(str(missing), "missing", remedy="fetch the data set again"))
            yield Variant(name, kind, read_text(given), read_text(text))


def _specification(text: str) -> list[tuple[str, Tokens, tuple[Clause, ...], Tokens | None]]:
    """Every declaration without its code: head and clauses, and of functions the body too."""
    every = qualified(parse(plain(text)))
    return [(name, one.head, one.clauses, one.body if one.kind == "function" else None) for name, one in every]


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


def make_backport(config: Config, context: RunContext) -> tuple[str, dict[str, int]]:
    """Write the programs, a row each."""
    programs = [port(program) for program in survey(config.prepare.path).programs]
    changed = sum(one.family.endswith(PORTED) for one in programs)
    output = Path(config.prepare.output or context.directory / "programs.jsonl")
    write_json_lines(output, map(_program_row, programs))
    return f"programs: {len(programs)}, changed: {changed}", {"programs": len(programs), "changed": changed}


def _program_row(one: Program) -> dict[str, str]:
    return {"id": one.id, "program": one.text, "hints_removed": one.stripped, "family": one.family}
