"""The output of Dafny as data: faults with kind and line, the end of each procedure, and the bucket of a failure.

A procedure counts as proved only if the tool says so explicitly: in 2.3 a procedure that runs out of resources may add
nothing to the number of errors, and the last line and the exit code then look like success.

The reader of 4.x (`dafny verify --log-format=text`) is written from its reference manual and the expected outputs of its test
suite; not run by us. Its exit codes: 0 success, 1 bad options, 2 the program does not parse or resolve, 4 not everything proved.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

_KINDS = (
    ("invariant-entry", r"BP5004|invariant (?:might|could) not (?:hold|be proved) on entry|not be proved on entry"),
    ("invariant-maintained", r"BP5005|invariant (?:might|could) not be (?:maintained|proved to be maintained)"),
    ("postcondition", r"BP5003|postcondition"),
    ("precondition", r"BP5002|precondition"),
    ("termination", r"decreases|failure to decrease|termination|cannot prove termination"),
    ("modifies", r"modifies clause|may violate context's modifies|frame"),
    ("reads", r"insufficient reads clause|reads clause"),
    ("index", r"index out of range|range|upper bound|lower bound|element might not be in domain"),
    ("null", r"null|might not be allocated"),
    ("division", r"divisor|division by zero|possible division"),
    ("subrange", r"subset constraints|subrange|value does not satisfy|result of operation might violate"),
    ("assign-such-that", r"cannot establish the existence of LHS|such-that"),
    ("match", r"missing case|matching|case"),
    ("initialisation", r"definite|uninitialized|might be accessed before"),
    ("calc", r"calculation step"),
    ("forall", r"possible violation of postcondition of forall"),
    ("trait", r"overrid|refine|implement"),
    ("assertion", r"BP5001|assertion|might not hold"),
)
_TABLE = [(kind, re.compile(pattern, re.IGNORECASE)) for kind, pattern in _KINDS]


def kind_of(text: str, related: str = "") -> str:
    """The kind. `related`: the message below it; in 2.3 it is sometimes the decisive message."""
    for kind, pattern in _TABLE:
        if pattern.search(text) or (related and pattern.search(related)):
            return kind
    return "other"


_PROCEDURE = re.compile(r"^Verifying (\S+) \.\.\.$")
_RESULT_23 = re.compile(r"^  \[(?:[\d.]+ s, )?(\d+) proof obligations?\]  (.+)$")
_FAULT_23 = re.compile(
    r"^\S*?\((\d+),\d+\): (Error|Verification|Timed out on|Out of resource on|Out of memory on)(.*)$"
)
_RELATED = re.compile(r"^\S*?\((\d+),\d+\): Related (?:location|message): (.*)$")
_COUNTED_23 = re.compile(r"^(\d+) (parse errors|resolution/type errors) detected in ", re.MULTILINE)
_UNFINISHED_23 = re.compile(
    r"^\S*?\(\d+,\d+\): Warning: note, this (?:loop|forall statement) has no body", re.MULTILINE
)
_FINISHED_23 = re.compile(r"^Dafny program verifier finished with (\d+) verified, (\d+) errors?", re.MULTILINE)
_SPELT, _MARKS = re.compile("_([_kqh])"), {"_": "_", "k": "'", "q": "?", "h": "#"}
_BUCKETS = (("out of resource", "timeout"), ("timed out", "timeout"), ("out of memory", "memory"))


@dataclass(frozen=True)
class Fault:
    """One error that the tool reports."""

    line: int
    kind: str
    """The kind of an unproved obligation: `postcondition`, `invariant-entry`, ...; empty for a fault of syntax or
    names."""
    text: str


@dataclass(frozen=True)
class Procedure:
    """One proof that the tool attempted. `name` is the declaration's, dotted, without the tool's own marks."""

    part: str
    """`Impl` for a body, `CheckWellformed` for a specification; the tool has further kinds."""
    name: str
    obligations: int
    result: str
    """`verified`, or the tool's word for another result."""


@dataclass(frozen=True)
class Report:
    """The content of an output. `stage` is the last stage that it reached: `parse`, `resolve` or `verify`."""

    stage: str
    faults: tuple[Fault, ...]
    procedures: tuple[Procedure, ...]
    verified: int
    """The count of the last line; -1 if there is no last line, or if the exit code is not that of success."""
    bodyless: int
    """Number of loops and forall statements without a body; the tool assumes that they are right."""

    @property
    def proved(self) -> bool:
        """Everything was checked and proved, according to every count in the output."""
        good = sum(procedure.result == "verified" for procedure in self.procedures)
        return self.stage == "verify" and not self.faults and good == len(self.procedures) == self.verified

    @property
    def careless(self) -> bool:
        """Only promises without a body are wrong: the tool's options forbid to assume them."""
        return bool(self.faults) and all("must have a body" in fault.text for fault in self.faults)

    def summary(self, most: int = 6) -> str:
        """The first faults, one a line: line, kind, the tool's words."""
        lines = [f"line {one.line}: {one.kind + ': ' if one.kind else ''}{one.text}" for one in self.faults[:most]]
        more = len(self.faults) - most
        decided = ("verified", "error", "errors")
        late = [f"{one.name}: {one.result}" for one in self.procedures if one.result not in decided]
        return "\n".join(lines + ([f"and {more} more"] if more > 0 else []) + late[:most]) or "not proved"

    @property
    def bucket(self) -> str:
        """The bucket of a program that is not proved. An obligation known to fail outweighs another that took too
        long."""
        if self.stage != "verify" or any(fault.kind for fault in self.faults):
            return self.stage
        results = [procedure.result for procedure in self.procedures]
        found = [bucket for words, bucket in _BUCKETS if any(words in result for result in results)]
        return found[0] if found else "verify"


def read_23(output: str, code: int) -> Report:
    """Parse an output of /trace; `code` is the exit code. It does not count if the text reports less."""
    counted, finished = _COUNTED_23.search(output), _FINISHED_23.search(output)
    stage = "verify" if counted is None else "parse" if counted[2] == "parse errors" else "resolve"
    lines = output.split("\n")  # a string of the program may hold other ends of lines
    if counted is None and finished is None:
        stage = "resolve"  # Dafny gave up between resolving and proving
    return Report(
        stage,
        tuple(_faults_23(lines, stage)),
        tuple(_procedures_23(lines)),
        int(finished[1]) if finished and code == 0 else -1,
        len(_UNFINISHED_23.findall(output)),
    )


def _procedures_23(lines: Iterable[str]) -> Iterable[Procedure]:
    name = ""
    for line in lines:
        begun = _PROCEDURE.match(line)
        if begun:
            if name:
                yield _procedure(name, 0, "no result")
            name = begun[1]
        elif name and (ended := _RESULT_23.match(line)):
            yield _procedure(name, int(ended[1]), ended[2].strip())
            name = ""
    if name:
        yield _procedure(name, 0, "no result")


def _procedure(name: str, obligations: int, result: str) -> Procedure:
    """Impl$$_0_M.__default.F_k is the part Impl of M.F': the log spells out marks of a name, and a number begins a nested
    module."""
    kind, _, dotted = name.partition("$$")
    parts = [re.sub(r"^_\d+_", "", part) for part in dotted.split(".") if part not in ("_module", "__default")]
    plain = ".".join(part.removeprefix("_default_") for part in parts)  # Of a Main that cannot be run.
    return Procedure(kind, _SPELT.sub(lambda found: _MARKS[found[1]], plain), obligations, result)


def _faults_23(lines: list[str], stage: str) -> Iterable[Fault]:
    for index, line in enumerate(lines):
        found = _FAULT_23.match(line)
        if found is None or found[2] != "Error":
            continue
        text = found[3].lstrip(": ").strip()
        related = _RELATED.match(lines[index + 1]) if index + 1 < len(lines) else None
        at = int(found[1])
        kind = kind_of(text, related[2] if related else "") if stage == "verify" else ""
        yield Fault(at, kind, text + (f" (line {related[1]})" if related and int(related[1]) != at else ""))


_FAULT = re.compile(r"^\S*?\((\d+),\d+\): Error: (.*)$")
_RESULT = re.compile(r"^Results for (\S+) \(([\w -]+)\)$")
_OUTCOME = re.compile(r"^\s*Overall outcome: (\w+)$")
_BATCH = re.compile(r"^\s+Outcome: ")
_COUNTED = re.compile(r"^\d+ parse errors? detected in ", re.MULTILINE)
_UNFINISHED = re.compile(r"Warning: .*(?:loop|forall statement) has no body", re.MULTILINE)
_FINISHED = re.compile(r"^Dafny program verifier finished with (\d+) verified, 0 errors$", re.MULTILINE)
_RESULTS = {
    "Correct": "verified",
    "TimedOut": "timed out",
    "OutOfResource": "out of resource",
    "OutOfMemory": "out of memory",
}
_PARTS = {"correctness": "Impl", "well-formedness": "CheckWellformed"}


def read_4(output: str, code: int) -> Report:
    """Parse an output and its exit code."""
    stage = "verify"
    if code not in (0, 4):
        stage = "parse" if _COUNTED.search(output) else "resolve"
    lines = output.split("\n")
    procedures = tuple(_procedures(lines))
    proved = _FINISHED.search(output) is not None and code == 0
    good = sum(procedure.result == "verified" for procedure in procedures)
    found = filter(None, map(_FAULT.match, lines))
    faults = (Fault(int(one[1]), kind_of(one[2]) if stage == "verify" else "", one[2]) for one in found)
    return Report(stage, tuple(faults), procedures, good if proved else -1, len(_UNFINISHED.findall(output)))


def _procedures(lines: Iterable[str]) -> Iterable[Procedure]:
    name, part, batches = "", "", 0
    result = "no result"
    for line in lines:
        begun, outcome = _RESULT.match(line), _OUTCOME.match(line)
        if begun:
            if name:
                yield Procedure(part, name, batches, result)
            name, part, batches, result = begun[1], _PARTS.get(begun[2], begun[2]), 0, "no result"
        elif outcome:
            result = _RESULTS.get(outcome[1], outcome[1].lower())
        elif _BATCH.match(line):
            batches += 1
    if name:
        yield Procedure(part, name, batches, result)
