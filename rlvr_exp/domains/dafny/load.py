"""Dafny examples from files, in the layouts of published data sets. Decides no split, judges no program.

    dafnybench         ground_truth/NAME.dfy and hints_removed/NAME_no_hints.dfy, or test.json
    clover_bench       textbook_algo/NAME/NAME_strong.dfy; its wrong variants: rlvr_exp.domains.dafny.prepare
    mbpp_dfy           MBPP-DFY-153 and MBPP-DFY-50: src/task_id_N.dfy, and JSON objects of programs by id
    vericoding         jsonl/dafny_tasks.jsonl, and vericoded/ID_vericoded.dfy: the reference program
    rows               a .jsonl file with a program or a DafnyExample a row
    humaneval_dafny    NNN-name.dfy with marker comments
    programs           any .dfy files

A folder of several of these sets gives all of them. The ids of their examples then begin with the name of the set's folder.

Tests, templates and wrong variants next to the programs are not training data and are not read.

A row is a DafnyExample by its fields (`header`, `spec`, `body`, `annotated_body`, and optionally `id`, `before`,
`after`, `family`, `mutants`, `whole`, `groups`, `strength`), or a program: `program`, or `code`, or DafnyBench's `ground_truth` with `hints_removed`.
Other keys are ignored. Faults are reported with file, line and key, all faults of a file at once.

A program gives an example for each method. If the set has the same program without hints, a method's body is taken from there
if it is the same method: equal head and clauses, and the same code once both are erased. Hints outside that method stay.
Otherwise the body is erased here; a body that is all proof (a lemma, a ghost method) keeps only its braces.

With unit `program`, a program that the set also has without hints is one example. If the text without hints is torn, the
example's given program is the program with erased bodies (`torn.py`).
Tasks of vericoding are whole programs with either unit.

`survey` also lists the programs without an example, with reasons: an unreadable program is expected in these sets.
"""

import gzip
import json
import lzma
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.domains.dafny.annotations import method_body
from rlvr_exp.domains.dafny.problem import ROLES, STRENGTHS, DafnyExample
from rlvr_exp.domains.dafny.syntax import Method, Split, Unreadable, split
from rlvr_exp.domains.dafny.tokens import Unbalanced, plain, tokens
from rlvr_exp.domains.dafny.torn import erased_program, is_torn, without_annotations


@dataclass(frozen=True)
class DafnyProgram:
    """A program of a data set."""

    id: str
    text: str
    family: str
    source: str
    stripped: str = ""
    """The same program without its hints, if the set has it."""
    groups: tuple[str, ...] = ()
    """As in `DafnyExample`."""


def examples(program: DafnyProgram) -> list[DafnyExample]:
    """One example for each method with a body, in the order of the text. Raises Unreadable."""
    whole = split(program.text)
    methods = _named(whole)
    stripped: Mapping[str, Method] = {}
    if program.stripped:
        with suppress(Unreadable):  # Hints cut out of the middle of statements leave brackets open.
            stripped = _named(split(program.stripped))
    found = []
    for name, method in methods.items():
        other = stripped.get(name)
        if other is None or _head(other) != _head(method) or not _same_code(method, other.body, whole.proofs):
            body = without_annotations(method, whole.proofs)
        else:
            body = other.body
        texts = (method.header, method.spec, body, method.body, method.before, method.after)
        example = DafnyExample(f"{program.id}/{name}", *texts, program.family, program.source, groups=program.groups)
        found.append(example)
    return found


def whole_example(program: DafnyProgram) -> DafnyExample:
    """The program as an example whose answer is the whole program. Raises Unreadable."""
    whole = split(program.text)
    given = erased_program(program.text, whole) if is_torn(program.stripped, whole) else program.stripped
    texts = ("", "", given, program.text, "", "", program.family, program.source)
    return DafnyExample(program.id, *texts, whole="annotator", groups=program.groups)


def _named(whole: Split) -> dict[str, Method]:
    """Methods by name; a repeated name is numbered."""
    seen: Counter[str] = Counter()
    found = {}
    for method in whole.methods:
        seen[method.name] += 1
        found[method.name if seen[method.name] == 1 else f"{method.name}~{seen[method.name]}"] = method
    return found


def _head(method: Method) -> list[str]:
    return tokens(plain(method.header + method.spec))


def _same_code(method: Method, body: str, proofs: frozenset[str]) -> bool:
    """Whether `body` is the method's body without annotations; for all-proof bodies: whether its tokens are in it."""
    found, whole = tokens(plain(body)), tokens(plain(method.body))
    if method.ghost:
        rest = iter(whole)
        return all(token in rest for token in found)
    try:
        return method_body(found, proofs) == method_body(whole, proofs)
    except Unbalanced:
        return False


SUFFIXES = (".jsonl", ".jsonl.gz", ".jsonl.xz")
_TEXTS = ("header", "spec", "body", "annotated_body")
_PROGRAM_KEYS = ("program", "ground_truth", "code")
_SHOWN = 20
_CHOICES = {"whole": ROLES, "strength": STRENGTHS}
Fields = Mapping[str, Any]


def items(file: Path, source: str) -> Iterator[DafnyProgram | DafnyExample]:
    """The programs and examples in the rows of a file, in their order. Raises InputError."""
    found: list[DafnyProgram | DafnyExample] = []
    faults: list[InputProblem] = []
    for number, line in enumerate(_lines(file), 1):
        if not line.strip():
            continue
        place = f"{file}, line {number}"
        try:
            row = _json(line, place)
            if not isinstance(row, dict):
                raise InputError(InputProblem(place, "not a row", got=type(row).__name__, allowed="a JSON object"))
            found.append(_item(row, place, source, number))
        except InputError as fault:
            faults += fault.problems
    if len(faults) > _SHOWN:
        faults = [*faults[:_SHOWN], InputProblem(str(file), f"{len(faults) - _SHOWN} further faults")]
    if faults:
        raise InputError(*faults)
    yield from found


def row_of(example: DafnyExample) -> dict[str, Any]:
    """An example in the form that `items` parses, without its source."""
    texts = {key: getattr(example, key) for key in ("id", *_TEXTS, "before", "after", "family")}
    further = {key: getattr(example, key) for key in ("mutants", "whole", "groups", "strength")}
    return {**texts, **{key: value for key, value in further.items() if value}}


def bench_programs(text: str, file: Path, source: str) -> Iterator[DafnyProgram]:
    """Programs of DafnyBench's test.json, a list of test_file, ground_truth, hints_removed. Raises InputError."""
    value = _json(text, str(file))
    if not isinstance(value, list):
        raise InputError(InputProblem(str(file), "not a list of programs", got=type(value).__name__))
    for number, row in enumerate(value):
        where = f"{file}[{number}]"
        name = _text(row, "test_file", where).removesuffix(".dfy")
        texts = (_text(row, key, where) for key in ("ground_truth", "hints_removed"))
        yield _of_bench(name, source, *texts)


def _of_bench(name: str, source: str, truth: str, stripped: str) -> DafnyProgram:
    return DafnyProgram(name, truth, "", source, stripped, (f"dafnybench/{name}",))


def programs_by_id(text: str, file: Path, source: str) -> Iterator[DafnyProgram]:
    """The programs of an object of programs by id, without entries that have no `code`. Raises InputError."""
    value = _json(text, str(file))
    if not isinstance(value, dict):
        raise InputError(InputProblem(str(file), "not an object of programs by id", got=type(value).__name__))
    for name, row in value.items():
        if isinstance(row, dict) and "code" not in row:
            continue
        yield DafnyProgram(f"{file.stem}/{name}", _text(row, "code", f"{file}, {name}"), "", source)


def _item(row: Fields, where: str, source: str, number: int) -> DafnyProgram | DafnyExample:
    name = row.get("id", row.get("test_file", f"{Path(source).name.split('.jsonl')[0]}/{number}"))
    if type(name) not in (str, int) or name == "":
        raise InputError(InputProblem(f"{where}, id", "no name", got=repr(name)[:60], allowed="a string or an integer"))
    name = str(name).removesuffix(".dfy")
    family = _text(row, "family", where, "")
    if any(key in row for key in ("annotated_body", "header")):
        fields: dict[str, Any] = {key: _text(row, key, where) for key in _TEXTS}
        fields |= {key: _text(row, key, where, "") for key in ("before", "after")}
        fields |= {key: _one_of(row, key, where, allowed) for key, allowed in _CHOICES.items()}
        fields |= {key: _list_of_texts(row, key, where) for key in ("mutants", "groups")}
        return DafnyExample(name, **fields, family=family, source=source)
    key = next((key for key in _PROGRAM_KEYS if key in row), None)
    if key is None:
        allowed = f"{', '.join(_TEXTS)}; or one of {', '.join(_PROGRAM_KEYS)}"
        got = f"keys {sorted(row)}"
        raise InputError(InputProblem(where, "neither an example nor a program", got=got, allowed=allowed))
    return DafnyProgram(name, _text(row, key, where), family, source, _text(row, "hints_removed", where, ""))


def _one_of(row: Fields, key: str, where: str, allowed: Sequence[str]) -> Any:
    value = row.get(key)
    if value is not None and value not in allowed:
        problem = InputProblem(f"{where}, {key}", "no such value", repr(value)[:60], ", ".join(allowed))
        raise InputError(problem)
    return value


def _list_of_texts(row: Fields, key: str, where: str) -> tuple[str, ...]:
    value = row.get(key, [])
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        got = repr(value)[:60]
        raise InputError(InputProblem(f"{where}, {key}", "not texts", got=got, allowed="a list of texts"))
    return tuple(value)


def _text(row: Any, key: str, where: str, default: str | None = None) -> str:
    value = row.get(key, default) if isinstance(row, dict) else None
    if not isinstance(value, str):
        got = "nothing" if value is None else repr(value)[:60]
        raise InputError(InputProblem(f"{where}, {key}", "missing or not text", got=got))
    return value


def _json(content: bytes | str, where: str) -> Any:
    try:
        return json.loads(content if isinstance(content, str) else content.decode("utf-8-sig"))
    except (ValueError, RecursionError) as fault:
        raise InputError(InputProblem(where, "not JSON", got=str(fault)[:200])) from fault


def _lines(file: Path) -> list[bytes]:
    content = file.read_bytes()
    try:
        if file.suffix == ".xz":
            content = lzma.decompress(content)
        elif file.suffix == ".gz":
            content = gzip.decompress(content)
    except (lzma.LZMAError, OSError, EOFError, zlib.error) as fault:
        problem = InputProblem(str(file), "damaged archive", str(fault), remedy="fetch the file again")
        raise InputError(problem) from fault
    return content.split(b"\n")


VERICODING = "dafny_tasks.jsonl"
_PARTS = ("vc-preamble", "vc-helpers", "vc-spec", "vc-postamble")
_ABOUT = ("vc-description", "source", "source-id", "qa-near-duplicate-group")
TRUTH, STRIPPED, NO_HINTS = "ground_truth", "hints_removed", "_no_hints"
_MARKERS = ("// impl-start", "// pure-end", "// post-conditions-start")
Found = Iterator[DafnyProgram | DafnyExample]
Item = TypeVar("Item", DafnyProgram, DafnyExample)


@dataclass(frozen=True)
class DataSetLayout:
    """The layout of one set."""

    name: str
    files: Callable[[Path], list[Path]]
    """The set's files at or below a path; none if the path holds another set."""
    read: Callable[[Path, str], Found]
    """The content of a file; its second argument is the file's name below the loaded folder."""


def read_text(file: Path) -> str:
    """A file's text, with its line ends and byte-order mark. Raises InputError if it is not UTF-8."""
    try:
        return file.read_bytes().decode("utf-8")
    except UnicodeDecodeError as fault:
        got = f"byte {fault.start + 1} of the file"
        raise InputError(InputProblem(str(file), "not UTF-8", got=got, remedy="save it as UTF-8")) from fault


def _dafny_bench(path: Path) -> list[Path]:
    folders = [path / below / TRUTH for below in ("DafnyBench/dataset", "dataset", ".")]
    truth = next((folder for folder in folders if folder.is_dir()), path if path.name == TRUTH else None)
    if truth is not None:
        return sorted(truth.glob("*.dfy"))
    lists = [path, path / "test.json", path / "DafnyBench" / "test.json"]
    return [file for file in lists if file.name == "test.json" and file.is_file()][:1]


def _read_bench(file: Path, source: str) -> Found:
    if file.suffix == ".json":
        yield from bench_programs(read_text(file), file, source)
        return
    partner = file.parent.parent / STRIPPED / f"{file.stem}{NO_HINTS}.dfy"
    yield _of_bench(file.stem, source, read_text(file), read_text(partner) if partner.is_file() else "")


def _clover(path: Path) -> list[Path]:
    folders = (path / "CloverBench" / "textbook_algo", path / "textbook_algo", path)
    inside = next((one for one in folders if one.is_dir() and one.name == "textbook_algo"), None)
    return sorted(inside.glob("*/*_strong.dfy")) if inside else []


def _read_clover(file: Path, source: str) -> Found:
    yield DafnyProgram(file.stem.removesuffix("_strong"), read_text(file), "", source)


def _mbpp(path: Path) -> list[Path]:
    if path.is_file():
        return [path] if path.name.startswith("mbpp-") and path.suffix == ".json" else []
    roots = [path] if path.name.startswith("MBPP-") else sorted(path.glob("MBPP-*"))
    return [file for root in roots for file in (*sorted(root.glob("src/*.dfy")), *sorted(root.glob("*.json")))]


def _read_mbpp(file: Path, source: str) -> Found:
    if file.suffix == ".json":
        yield from programs_by_id(read_text(file), file, source)
    else:
        yield DafnyProgram(f"{file.parent.parent.name}/{file.stem}", read_text(file), "", source)


def _human_eval(path: Path) -> list[Path]:
    files = [path] if path.suffix == ".dfy" else sorted(path.glob("*.dfy")) if path.is_dir() else []
    marked = any(marker in read_text(file) for file in files for marker in _MARKERS)
    return files if marked else []


def _read_human_eval(file: Path, source: str) -> Found:
    groups = (f"humaneval/{file.stem.partition('-')[0]}",)
    yield DafnyProgram(source.removesuffix(".dfy"), read_text(file), "", source, groups=groups)


def _read_program(file: Path, source: str) -> Found:
    yield DafnyProgram(source.removesuffix(".dfy"), read_text(file), "", source)


def _vericoding(path: Path) -> list[Path]:
    files = (path, path / "jsonl" / VERICODING, path / VERICODING)
    return [file for file in files if file.name == VERICODING and file.is_file()][:1]


def _read_vericoding(file: Path, source: str) -> Found:
    """The tasks of the vericoding benchmark. The given program is preamble, helpers and specification, after the
    description as a comment. The body that holds the place of the answer (`vc-code`) is left out."""
    folder = file.parent.parent if file.parent.name == "jsonl" else file.parent
    for number, line in enumerate(_lines(file), 1):
        if not line.strip():
            continue
        where = f"{file}, line {number}"
        row = _json(line, where)
        name, *parts = (_text(row, f"{key}", where) for key in ("id", *_PARTS))
        described, origin, title, group = (_text(row, key, where, "") for key in _ABOUT)
        given = "\n\n".join(part.strip("\n") for part in (_comment(described), *parts) if part.strip()) + "\n"
        solution = folder / "vericoded" / f"{name}_vericoded.dfy"
        reference = read_text(solution) if solution.is_file() else ""
        shared = {"dafnybench": f"dafnybench/{title}", "humaneval": "/".join(title.split("_")[:2])}.get(origin, "")
        groups = tuple(filter(None, (shared, group and f"vericoding/{group}")))
        family = f"vericoding/{origin}"
        yield DafnyExample(name, "", "", given, reference, "", "", family, source, whole="writer", groups=groups)


def _comment(text: str) -> str:
    inner = text.strip().removeprefix("/*").removesuffix("*/").strip()
    return "\n".join(f"// {line}".rstrip() for line in inner.splitlines())


def _rows(path: Path) -> list[Path]:
    files = [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file())
    return [file for file in files if file.name.endswith(SUFFIXES) and not _is_hidden(file, path)]


def _plain(path: Path) -> list[Path]:
    files = [path] if path.suffix == ".dfy" and path.is_file() else sorted(path.rglob("*.dfy")) if path.is_dir() else []
    return [file for file in files if not _is_hidden(file, path)]


def _is_hidden(file: Path, root: Path) -> bool:
    return file != root and any(part.startswith(".") for part in file.relative_to(root).parts)


LAYOUTS = {
    layout.name: layout
    for layout in (
        DataSetLayout("dafnybench", _dafny_bench, _read_bench),
        DataSetLayout("clover_bench", _clover, _read_clover),
        DataSetLayout("mbpp_dfy", _mbpp, _read_mbpp),
        DataSetLayout("vericoding", _vericoding, _read_vericoding),
        DataSetLayout("humaneval_dafny", _human_eval, _read_human_eval),
        DataSetLayout("rows", _rows, items),
        DataSetLayout("programs", _plain, _read_program),
    )
}
"""All layouts, in the order in which they are tried."""
_ANY = ("rows", "programs")
"""Layouts of any files: their folders are no sets of a folder of sets."""


NO_TARGET, UNREADABLE, UNPAIRED = "no method or lemma with a body", "cannot be read", "no version without hints"


@dataclass
class Survey:
    """The content of a set."""

    set: str
    """The layout's name."""
    examples: list[DafnyExample] = field(default_factory=list)
    programs: list[DafnyProgram] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    """Programs without an example, by id, each with the reason."""


def load(path: Path | str, unit: str = "method") -> list[DafnyExample]:
    """Every example at or below a path, whatever the set.

    Raises:
        InputError: nothing is there, or a file does not fit its layout; with file, key and remedy.
    """
    return survey(path, unit).examples


def survey(path: Path | str, unit: str = "method") -> Survey:
    """As `load`, with the programs left out.

    Args:
        unit: method or program: whether a program that the set also has without hints is an example for each method, or one.
    """
    path = Path(path)
    if not path.exists():
        raise InputError(
            InputProblem(str(path), "no such file or folder", remedy="point data.path at a Dafny data set")
        )
    for layout in LAYOUTS.values():
        if layout.name in _ANY and len(sets := sets_in(path)) > 1:
            return _joined([(name, survey(path / name, unit)) for name in sets])
        files = layout.files(path)
        if files:
            return _read(layout, path, files, unit)
    allowed = "DafnyBench, HumanEval-Dafny, MBPP-DFY, CloverBench, vericoding, .dfy files or .jsonl rows"
    raise InputError(InputProblem(str(path), "no Dafny programs here", allowed=allowed))


def sets_in(path: Path) -> list[str]:
    """Names of the folders in a folder that hold a set each."""
    folders = sorted(one for one in path.iterdir() if one.is_dir()) if path.is_dir() else []
    known = [layout for layout in LAYOUTS.values() if layout.name not in _ANY]
    return [one.name for one in folders if any(layout.files(one) for layout in known)]


def _joined(surveys: Sequence[tuple[str, Survey]]) -> Survey:
    found = Survey("several sets")
    for name, one in surveys:
        found.examples += (_below(name, example) for example in one.examples)
        found.programs += (_below(name, program) for program in one.programs)
        found.left_out |= {f"{name}/{program}": reason for program, reason in one.left_out.items()}
    return found


def _below(folder: str, item: Item) -> Item:
    return replace(item, id=f"{folder}/{item.id}", source=f"{folder}/{item.source}")


def _read(layout: DataSetLayout, path: Path, files: list[Path], unit: str) -> Survey:
    found = Survey(layout.name)
    root = path if path.is_dir() else path.parent
    read = [item for file in files for item in layout.read(file, file.relative_to(root).as_posix())]
    paired = unit == "program" and any(isinstance(item, DafnyProgram) and item.stripped for item in read)
    for item in read:
        item = replace(item, family=item.family or layout.name)
        if isinstance(item, DafnyExample):
            found.examples.append(item)
            continue
        found.programs.append(item)
        if paired and not item.stripped:
            found.left_out[item.id] = UNPAIRED
            continue
        try:
            own = [whole_example(item)] if paired else examples(item)
        except Unreadable as fault:
            found.left_out[item.id] = f"{UNREADABLE}: {fault}"
            continue
        found.examples += own
        if not own:
            found.left_out[item.id] = NO_TARGET
    if not found.programs and not found.examples:
        got = f"{len(files)} files in the layout of {layout.name}"
        raise InputError(InputProblem(str(path), "no Dafny programs here", got=got))
    counts = Counter(one.id for one in found.examples)
    clashes = [name for name, count in counts.items() if count > 1]
    if clashes:  # Later steps could not distinguish such tasks.
        remedy = "give each row an id of its own"
        raise InputError(InputProblem(str(path), f"{len(clashes)} ids stand twice", got=clashes[0], remedy=remedy))
    return found
