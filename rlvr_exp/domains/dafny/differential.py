"""`benchmark=dafny_differential`: our parser against Dafny's print of the program (`dafny resolve --print`), on real and on mutated
programs.

Mutated programs have directives, comments, strings and characters that are hard to read put into them. Dafny prints each
text unchanged and in the verifier's form, comments blanked out: both prints must be equal, and must declare what our
parser found: the same declarations, with the same names and literals in each. A text with a line that begins with `#` is
refused before it is parsed.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import takewhile
from pathlib import Path

from rlvr_exp.config.schema import Config
from rlvr_exp.core.errors import GuardStop, InputError, InputProblem
from rlvr_exp.domains.dafny.syntax import Declaration, Unreadable, every, parse, qualified
from rlvr_exp.domains.dafny.tokens import has_directive, is_name, partners, plain, printed, tokens_with_starts
from rlvr_exp.domains.dafny.tool import FILE, RunLimits, Tool, find, outcome
from rlvr_exp.records.context import RunContext

AGREES, REFUSED, NO_PARSE, UNREADABLE, NO_PRINT = "agrees", "refused", "no parse", "unreadable", "not printed"
"""Results that are no difference: `no parse`: Dafny does not parse it either way; `unreadable`: our parser refuses it,
so it cannot pass; `not printed`: Dafny's printer breaks on it."""

_REPRINTED = frozenset(("true", "reads", "modifies", "decreases", "ghost"))
_LIMITS = RunLimits(60, 300, 2048)
_COUNTED = "resolution/type errors detected in"
_LAST = "Dafny program verifier"

BEGINNINGS = {
    "byte-order mark": "\ufeff",
    "byte-order marks": "\ufeff\ufeff",
    "line directive": "#line 7 x\n",
    "indented directive": " \t#line 7 x\n",
    "directive behind a zero width": "\u200b#if X\n#endif\n",
    "directive behind a form feed": "\f#line 7 x\n",
    "directive behind a lone carriage return": "// x\r#line 7 x\n",
    "directive in a comment": "/*\n#line 7 x */\n",
    "nested comment": "/* a /* b */ // c */\n",
    "comment of slashes": "/*/ x /*/ y */ */\n",
    "comment that a line comment opens": "// /*\n",
    "line comment that nothing ends": "/* // */\n",
    "characters in a comment": '/* \' " @" \\ { #x é \u2028 \v */\n',
    "carriage return in a comment": "// x\r// y\n",
    "separator in a line comment": "// x\u2028 assume false;\n",
}
INSIDES = {
    "marks in a string": 'ghost var u := "/* // */ \\" {";',
    "verbatim string": 'ghost var u := @"a""b /* \\";',
    "verbatim string over lines": 'ghost var u := @"a\n// b\n/* c";',
    "directive in a verbatim string": 'ghost var u := @"a\n#line 7 x\n";',
    "directive inside a verbatim string's line": 'ghost var u := @"a\nb #line 7 x\n";',
    "quotes as characters": "ghost var u, v, w := '\"', '\\'', '\\\\';",
    "comment marks between characters": "ghost var u := '/'; /* ' */ ghost var v := '*';",
    "names with quotes": "ghost var u', v'' := 1, 2; assert u' == 1;",
    "unicode in a string": 'ghost var u := "é 漢 \u200b \u2028";',
    "escapes": 'ghost var u := "\\u0041\\n\\t\\0";',
    "character that is none": "ghost var u := 1;\u00a0",
    "zero width between tokens": "ghost\u200b var u := 1;",
    "form feed between tokens": "ghost\fvar u := 1;",
    "comment instead of a blank": "ghost/**/var u/* */:=/*\n*/1;",
    "comment with stars": "/***/ /* **/ /**/ ghost var u := 1;",
    "comment that closes twice": "/* */ */",
    "comment that never closes": "/* x",
    "string that never closes": 'ghost var u := "x;',
}


class Reader:
    """Dafny's parser and printer."""

    def __init__(self, tool: Tool):
        self._tool = tool

    def printed(self, text: str) -> str | None:
        """The parsed program as Dafny prints it; None if it does not parse."""
        _, output, _, _ = outcome(self._tool, ["resolve", "--print=-"], text, _LIMITS)
        if "parse errors detected in" in output:
            return None
        shown = output.partition(f"// {FILE}\n")[2].split("\n")
        # The resolver's messages follow the print.
        return "\n".join(
            takewhile(lambda line: not line.startswith((f"{FILE}(", _LAST)) and _COUNTED not in line, shown)
        )


def compare(reader: Reader, text: str) -> str:
    """The result for one text: one of the words above, or the difference of the two parses."""
    shown = plain(text)
    if has_directive(shown):
        return REFUSED
    theirs = reader.printed(printed(shown))
    if reader.printed(shown) != theirs:
        return "differs: Dafny reads the text otherwise with its comments"
    if theirs is None:
        return NO_PARSE
    if "Exception: " in theirs:
        return NO_PRINT
    try:
        ours = _read(shown)
    except Unreadable:
        return UNREADABLE
    try:
        printed_words = _read(plain(theirs))
    except Unreadable as fault:
        return f"differs: Dafny's print is not read: {fault}"
    names = set(ours) ^ set(printed_words)
    if names:
        return f"differs: only one reading has {min(names)}"
    other = {name: (words - printed_words[name]) + (printed_words[name] - words) for name, words in ours.items()}
    found = next((f"{' '.join(words)} in {name}" for name, words in other.items() if words), "")
    return f"differs: {found}" if found else AGREES


def mutants(text: str) -> Iterator[tuple[str, str]]:
    """Named variants of a program: text that is hard to parse before it, and inside its first method's body."""
    for name, words in BEGINNINGS.items():
        yield name, words + text
    shown = plain(text)
    try:
        found = (one.where for one in every(parse(shown)) if one.kind in ("method", "lemma") and one.where)
        where = next(found, None)
    except Unreadable:
        return
    if where is not None:
        at = tokens_with_starts(shown)[1][where.opens] + 1
        for name, words in INSIDES.items():
            yield name, f"{shown[:at]} {words} {shown[at:]}"


def _read(text: str) -> Mapping[str, Counter[str]]:
    """The names and literals of each declaration, by its qualified name and kind."""
    found: dict[str, Counter[str]] = {}
    for name, one in qualified(parse(text)):
        found.setdefault(f"{one.kind} {name}", Counter()).update(_words(one))
    return found


def _words(one: Declaration) -> Iterator[str]:
    """Names and literals without the changes of Dafny's print: `true` is the range of a forall without one, frames and
    measures are merged, numbers are decimal, and `!new`, a local `ghost` and the size of an array whose elements are
    listed are left out."""
    if one.kind == "import":  # printed with its resolved name
        return
    words = [word for token in one.everything() for word in (token.split(" ") if is_name(token) else [token])]
    left_out: set[int] = set()  # N in `new T[N] [...]`.
    for opened, closed in partners(words).items():
        listed = words[closed + 1 : closed + 2] == ["["]
        if words[opened] == "[" and listed and "new" in words[max(opened - 8, 0) : opened]:
            left_out |= set(range(opened, closed))
    for index, word in enumerate(words):
        if index in left_out or word in _REPRINTED or (words[max(index - 1, 0)] == "!" and word == "new"):
            continue
        if word[0] in "0123456789":
            yield str(int(word, 0)) if word[:2] == "0x" else word.replace("_", "")
        elif is_name(word) or word[0] in "\"'@":
            yield word


def check(
    reader: Reader, programs: Sequence[tuple[str, str]], mutate: bool, report: Callable[[str], None]
) -> Counter[str]:
    """Counts of the results of all programs; `report` gets a line for each difference."""
    counts: Counter[str] = Counter()
    for name, text in programs:
        for what, variant in [("", text), *(mutants(text) if mutate else ())]:
            found = compare(reader, variant)
            counts[found.partition(":")[0]] += 1
            if found.startswith("differs"):
                report(f"{name} {what}: {found}")
    return counts


def measure(config: Config, context: RunContext) -> tuple[str, dict[str, int]]:
    """The counts. Raises InputError if there are no programs, GuardStop if a reading differs."""
    options, path = config.benchmark, Path(config.benchmark.path)
    files = [path] if path.is_file() else sorted(path.rglob("*.dfy"))
    programs = [(file.name, file.read_bytes().decode("utf-8", "replace")) for file in files[:: options.every]]
    if not programs:
        raise InputError(InputProblem("benchmark.path", "no .dfy files below it", options.path))
    reader, lines = Reader(find()), list[str]()
    counts = check(reader, programs, options.mutate, lines.append)
    lines += [f"programs: {len(programs)}, texts: {counts.total()}"]
    text = "\n".join([*lines, *(f"  {count} {what}" for what, count in counts.most_common())])
    if counts["differs"]:
        raise GuardStop(text)
    return text, dict(counts)
