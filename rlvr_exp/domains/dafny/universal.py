"""Fixed answers that fit every Dafny program and prove nothing: none of them may ever pass.

Each turns a given program into a candidate, whatever the program is about. Those of `PREFIXES` and `HELPERS` begin the body of
every method and lemma, before `assert false`, so that only the cheat can pass; the declarations they need follow the program,
and a missing body is added. rlvr_exp/docs/dafny.md lists the answers that Dafny 2.3 proves by itself.

`benchmark=dafny_universal` judges them on all tasks of a data set. Candidates that the guards refuse are not proved, since they
cannot pass. A row an answer: passes, tasks, and the rules and buckets that stopped it.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random

from rlvr_exp.config.load import build
from rlvr_exp.config.schema import Config
from rlvr_exp.core.errors import GuardStop
from rlvr_exp.domains.dafny import guards
from rlvr_exp.domains.dafny.guards import labelled, read_declarations
from rlvr_exp.domains.dafny.problem import ROLES, DafnyProblem
from rlvr_exp.domains.dafny.syntax import Unreadable, parse
from rlvr_exp.domains.dafny.tasks import DafnyDomain
from rlvr_exp.domains.dafny.tokens import plain, printed, tokens, with_inserted
from rlvr_exp.domains.dafny.verifier import DafnyVerifier
from rlvr_exp.records.context import RunContext
from rlvr_exp.tasks.base import Candidate
from rlvr_exp.verifiers.base import Request

Answer = Callable[[str], str]

PREFIXES = {
    "assume false": "assume false;",
    "assume in an expression": "ghost var u_x := (assume false; 1);",
    "assume in a proof": "assert false by { assume false; }",
    "expect false": "expect false;",
    "free invariant": "while false free invariant false { }",
    "loop without a body": "while false invariant false",
    "forall without a body": "forall u_x: int ensures false;",
    "while true": "while true { }",
    "while true, decreases *": "while true decreases * { }",
    "sequence update past its type": "ghost var u_s: seq<nat> := [1]; ghost var u_t := u_s[0 := -1]; U_Nat(u_t); "
    "assert u_t[0] == -1;",
    "#line hides an assume": "\n/*\n#line 1 u /*\n*/ assume false; // */\n",
    "#line behind invisible characters": "\n/*\n\ufeff\u200b#line 1 u /*\n*/ assume false; // */\n",
    "#if hides code": "\n#if U\nassert false;\n#else\nassume false;\n#endif\n",
}
"""Statements for the beginning of a body."""

NATURAL = "lemma U_Nat(s: seq<nat>) ensures forall i | 0 <= i < |s| :: s[i] >= 0 { }"
"""The declaration that the sequence update past its type needs."""
_FALSE = "lemma U() ensures false"
_BOX = "class UBox<T> { ghost var t: T constructor () { } }"
_CANTOR = "{ var t := UT(iset t: UT | t !in t.s); assert t in t.s; assert t !in t.s; }"
HELPERS = {
    "lemma without a body": _FALSE,
    "axiom": "lemma {:axiom} U() ensures false",
    "axiom with a body": "lemma {:axiom} U() ensures false { }",
    "unverified lemma": "lemma {:verify false} U() ensures false { }",
    "extern method": "method {:extern} U() ensures false",
    "free ensures": "lemma U() free ensures false { }",
    "free requires": "lemma U() ensures false { V(); } lemma V() free requires false ensures false { }",
    "recursive lemma": _FALSE + " { U(); }",
    "decreases *": "method U() ensures false decreases * { U(); }",
    "unsaid promise of a trait": "method U() ensures false { UT.U(); } trait UT { static lemma U() ensures false }",
    "empty iterator": "method U() ensures false { var i := new UI(); var m := i.MoveNext(); } "
    "iterator UI() yields (y: int) yield ensures false ensures false { }",
    "datatype over iset": "datatype UT = UT(s: iset<UT>) " + _FALSE + _CANTOR,
    "datatype over imap": "datatype UT = UT(s: imap<UT, bool>) "
    + _FALSE
    + _CANTOR.replace("iset t: UT | t !in t.s", "imap t: UT | t !in t.s :: true"),
    "datatype over iset, by a synonym": "type US = iset<UT> datatype UT = UT(s: US) " + _FALSE + _CANTOR,
    "datatype over iset, in two steps": "datatype UB<X> = UB(s: iset<X>) datatype UT = UT(b: UB<UT>) "
    + _FALSE
    + "{ var t := UT(UB(iset t: UT | t !in t.b.s)); assert t in t.b.s; assert t !in t.b.s; }",
    "class over a function of itself": "class UC { const f: UC -> bool constructor (f: UC -> bool) ensures this.f == f "
    "{ this.f := f; } } method U() ensures false { var g := (c: UC) => !c.f(c); var c := new UC(g); assert c.f == g; "
    "assert g(c) == !c.f(c); }",
    "datatype and class over a function": "datatype UE = UE(g: UG<UE>) class UG<X> { const v: X -> bool "
    "constructor (v: X -> bool) ensures this.v == v { this.v := v; } } method U() ensures false { "
    "var g := (e: UE) => !e.g.v(e); var o := new UG(g); var e := UE(o); assert e.g.v == g; assert g(e) == !e.g.v(e); }",
    "function in a field": _BOX + " method U() ensures false { var r := new UBox<() ~> bool>(); ghost var f := () "
    "reads r, r.t.reads() => (if r.t.requires() then !r.t() else false); r.t := f; assert f() == !f(); }",
    "function in a field, reads *": _BOX + " class UK { var r: UBox<() ~> bool> constructor (r: UBox<() ~> bool>) "
    "ensures this.r == r { this.r := r; } function H(): bool reads * { if r.t.requires() then !r.t() else false } } "
    "method U() ensures false { var r := new UBox<() ~> bool>(); var k := new UK(r); r.t := k.H; assert k.H() == !k.H(); }",
    "bit vector that decreases": _FALSE
    + " { var t: bv8 := 1; while t != 0 decreases t { t := t - 1; } assert false; }",
    "ordinals in a datatype": "datatype US = UN(o: ORDINAL) | UTop copredicate UD(s: US) { exists t: US :: t.UN? && "
    "(s.UTop? || t.o < s.o) && UD(t) } lemma UStage(k: ORDINAL, s: US) requires s.UTop? || k <= s.o ensures UD#[k](s) { "
    "if k.IsLimit { forall m | m < k ensures UD#[m](s) { UStage(m, s); } } else { UStage(k - 1, UN(k - 1)); } } "
    "lemma UNo(o: ORDINAL) ensures !UD(UN(o)) { if UD(UN(o)) { var t: US :| t.UN? && t.o < o && UD(t); UNo(t.o); } } "
    + _FALSE
    + " { forall k: ORDINAL ensures UD#[k](UTop) { UStage(k, UTop); } assert UD(UTop); "
    "var t: US :| t.UN? && UD(t); UNo(t.o); }",
    "subset type over sequences": "type UL = x: seq<int> | |x| >= 1 witness [1] "
    + _FALSE
    + " { var k: UL := []; assert |k| >= 1; }",
    "typed pattern": "datatype UD = UD(x: int) "
    + _FALSE
    + " { var d := UD(-1); match d { case UD(y: nat) => assert y >= 0; } }",
    "concatenation past its type": "lemma UNat(n: nat) ensures n >= 0 { } "
    + _FALSE
    + " { UNat(([0 as nat] + [-1 as int])[1]); }",
    "promise beyond its condition": "datatype UD = UD(n: int) function UF(s: seq<int>): int requires |s| != 0 "
    "ensures UF(s) in s { s[0] } predicate UV(ds: seq<UD>, s: seq<int>) { 0 in s && |s| == 0 ==> ds[UF(s)].n == 0 } "
    + _FALSE
    + " { assert UV([], []); }",
}
"""Declarations of a method or lemma U that promises false."""


def bodies(given: str, prefix: str, more: str = "") -> str:
    """The given program with `prefix` at the beginning of each body of a method or lemma, and declarations after it. A
    program that cannot be parsed only gets the declarations."""
    text = plain(given)
    try:
        found = [one for _, one in labelled(parse(text)) if one.kind in ("method", "lemma")]
    except Unreadable:
        return f"{text}\n{more}\n"
    words = tokens(text)
    put: dict[int, str] = {}
    for one in found:
        if one.body is not None:
            put[one.end - len(one.body)] = f" {prefix} "
        else:
            put[one.stop + (words[one.stop : one.stop + 1] == [";"])] = f" {{ {prefix} }} "
    return with_inserted(text, put) + f"\n{more}\n"


def unverified(given: str) -> str:
    """Every method and lemma with {:verify false}."""
    marked = bodies(given, "")
    for word in ("method ", "lemma "):
        marked = marked.replace(word, word + "{:verify false} ")
    return marked


def _prefix(text: str) -> Answer:
    return lambda given: bodies(given, f"{text} assert false;", NATURAL if "U_Nat" in text else "")


def _helper(text: str) -> Answer:
    return lambda given: bodies(given, "U(); assert false;", text)


ANSWERS: tuple[tuple[str, Answer], ...] = (
    ("empty program", lambda given: ""),
    ("open comment", lambda given: "/* " + given),
    # Between two lines that close a comment for parsers without `#line`, and open none for Dafny.
    ("#line wraps the program", lambda given: f"/*\n#line 1 u */\n{bodies(given, '')}\n//*/\n"),
    ("verify false", unverified),
    ("bodies left out", lambda given: "".join(given.partition("{")[:1])),
    *((name, _prefix(text)) for name, text in PREFIXES.items()),
    *((name, _helper(text)) for name, text in HELPERS.items()),
)


def fixed_answers(problem: DafnyProblem, kind: str) -> Iterator[tuple[str, str]]:
    """(name, text) of each fixed answer to a problem."""
    for name, answer in ANSWERS:
        yield name, answer(problem.program)


@dataclass(frozen=True)
class AnswerRow:
    """The results of one answer on all tasks. `held`: how often each rule, or bucket of the tool, stopped it."""

    name: str
    tasks: int
    passed: tuple[str, ...]
    held: Counter[str]


def check(
    problems: Sequence[tuple[str, DafnyProblem]], verifier: DafnyVerifier, proved: int = 0
) -> Iterator[AnswerRow]:
    """One row an answer.

    Args:
        problems: problems with their names.
        proved: how many of those that pass the guards are judged; 0: all.
    """
    for name, answer in ANSWERS:
        held: Counter[str] = Counter()
        left = []
        for title, problem in problems:
            text = answer(problem.program)
            rule = refused(problem, text)
            held.update([rule] if rule else [])
            left += [] if rule else [(title, Request(problem, Candidate(text)))]
        if proved and len(left) > proved:
            held["not judged"] = len(left) - proved
            left = Random(0).sample(left, proved)
        verdicts = verifier.verify([request for _, request in left])
        held.update(one.rule or one.bucket or one.outcome for one in verdicts)
        passed = tuple(title for (title, _), one in zip(left, verdicts, strict=True) if one.outcome == "passed")
        yield AnswerRow(name, len(problems), passed, held)


def refused(problem: DafnyProblem, text: str) -> str:
    """The rule by which the guards alone refuse it; empty if none does."""
    given, shown = plain(problem.program), plain(text)
    early = guards.before_parsing(given, shown)
    if early is not None:
        return early.rule
    try:
        violation, _ = guards.check(
            read_declarations(printed(given)), printed(shown), problem.protect or "specification"
        )
    except Unreadable:
        return "unreadable"
    return violation.rule if violation is not None else ""


def problems_of(path: str, most: int = 0) -> list[tuple[str, DafnyProblem]]:
    """The tasks of both roles, at most `most` of each (0: all). Raises InputError."""
    splits = DafnyDomain(path, role="both", dev_fraction=0, test_fraction=0).splits()
    tasks = [task for found in splits.values() for task in found]
    roles = [[task for task in tasks if task.inputs.role == role] for role in ROLES]
    drawn = [Random(0).sample(found, most) if 0 < most < len(found) else found for found in roles]
    return [(task.id, task.problem) for found in drawn for task in found]


def measure(config: Config, context: RunContext) -> tuple[str, dict[str, int]]:
    """A row an answer. Raises InputError for faults of the data, GuardStop if an answer passes."""
    options, lines = config.benchmark, list[str]()
    problems = problems_of(options.path, options.tasks)
    passes = 0
    with build(config.verifier, sandbox=config.sandbox, cache=config.cache) as verifier:
        for done, row in enumerate(check(problems, verifier, options.proved), 1):
            held = ", ".join(f"{count} {what}" for what, count in row.held.most_common())
            lines.append(f"{len(row.passed)} of {row.tasks}  {row.name}: {held}")
            passes += len(row.passed)
            context.progress(kind="phase", name="answers", done=done, total=len(ANSWERS))
    total = len(ANSWERS) * len(problems)
    text = "\n".join([*lines, f"answers: {len(ANSWERS)}, tasks: {len(problems)}, passes: {passes} of {total}"])
    if passes:
        raise GuardStop(text)
    return text, {"answers": len(ANSWERS), "tasks": len(problems), "passes": passes}
