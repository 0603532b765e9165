"""Examples that can be trained on, judged by their text and by Dafny, and the reasons why others cannot.

By text (`fault_of`): no text is empty, the parts are one method of a readable program, and the body equals the annotated body
without annotations. A whole program for the writer has a method or lemma to write. By Dafny (`UsableCheck`): the program is proved, the guards accept it as an answer to the program with a hole
(an annotator's also to the program with the body), and the program with the body alone resolves.

`prepare=dafny_check` reads all of the data, cuts every program into its methods, reassembles each, splits, and counts examples by
their texts, with reasons. It proves nothing.

`prepare=dafny_usable` also asks Dafny. Verdicts are cached, so a second run takes seconds. Each row that it writes has the
strictest level that the reference program passes. A row of `reasons.jsonl` is an example: {"id", "writer", "annotator", "risks"},
the reason against each role, or an empty text, and the risks of its given program.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from rlvr_exp.config.load import build
from rlvr_exp.config.schema import Config
from rlvr_exp.core.errors import GuardStop, RlvrError
from rlvr_exp.core.files import write_json_lines
from rlvr_exp.domains.dafny import annotations, guards
from rlvr_exp.domains.dafny.given import given_risks
from rlvr_exp.domains.dafny.guards import read_declarations
from rlvr_exp.domains.dafny.load import DafnyProgram, Survey, row_of, survey
from rlvr_exp.domains.dafny.problem import (
    ROLES,
    STRENGTHS,
    DafnyExample,
    DafnyProblem,
    Protect,
    Role,
    RoleExample,
    Strength,
)
from rlvr_exp.domains.dafny.soundness import without_limits
from rlvr_exp.domains.dafny.splits import alike, construct, split_examples
from rlvr_exp.domains.dafny.syntax import CALLABLES, Declaration, Method, Split, Unreadable, every, qualified, split
from rlvr_exp.domains.dafny.tokens import ERROR, Unbalanced, plain, tokens
from rlvr_exp.domains.dafny.tool import Resolver
from rlvr_exp.domains.dafny.verifier import DafnyVerifier
from rlvr_exp.domains.dafny.weak import trivial_answers
from rlvr_exp.records.context import RunContext
from rlvr_exp.sandbox.tools import Lost
from rlvr_exp.tasks.base import Candidate, Domain, Golds
from rlvr_exp.verifiers.base import Request, Verdict

EMPTY_HEADER, EMPTY_BODY = "empty header", "empty body"
UNREADABLE, NOT_ONE_METHOD = "cannot be read", "the parts are not one method with its body"
ALL_PROOF, NO_PROMISE = "a lemma or ghost method: no code to write", "no ensures: every body would do"
OTHER_ROLE = "a whole program for the other role"
NO_HOLE = "nothing to write: no method or lemma lacks a body that must keep a promise"
OTHER_CODE = "the body is not the annotated one without annotations"
_BUCKETS = {"parse": "does not parse", "resolve": "does not resolve", "verify": "is not proved"}
_SHOWN = 20
Check = Callable[[DafnyExample, Role], str]
"""Return why an example is of no use to a role, or an empty text."""


def fault_of(example: DafnyExample, role: Role) -> str:
    """Return why an example is of no use to a role, judged by its text, or an empty text."""
    if example.whole:
        return OTHER_ROLE if role != example.whole else _fault_of_program(example)
    if not example.header.strip():
        return EMPTY_HEADER
    body, annotated = tokens(plain(example.body)), tokens(plain(example.annotated_body))
    ghost = {"lemma", "colemma", "ghost"} & set(tokens(plain(example.header))[:3])
    if not body or len(annotated) <= 2 or (role == "writer" and len(body) <= 2 and not ghost):
        return EMPTY_BODY
    try:
        whole = _split(example.gold)
        method = target(example, whole)
        if method is None:
            return NOT_ONE_METHOD
        if role == "writer" and method.ghost:
            return ALL_PROOF
        promises = any(clause.word == "ensures" for clause in method.declaration.clauses)
        if role == "writer" and method.kind != "function" and not promises:
            return NO_PROMISE
        if method.body != example.annotated_body:
            return NOT_ONE_METHOD
        written = target(example, split(example.program(example.body)))
        if written is None or written.body != example.body:
            return NOT_ONE_METHOD
        if method.ghost:
            return ""
        same = annotations.method_body(body, whole.proofs) == annotations.method_body(annotated, whole.proofs)
        return "" if same else OTHER_CODE
    except (Unreadable, Unbalanced) as fault:
        return f"{UNREADABLE}: {fault}"


def _fault_of_program(example: DafnyExample) -> str:
    try:
        given = split(example.body)
        if example.annotated_body:
            split(example.annotated_body)
    except Unreadable as fault:
        return f"{UNREADABLE}: {fault}"
    if example.whole == "annotator":
        return ""
    return "" if any(map(_is_hole, every(given.declarations))) else NO_HOLE


def _is_hole(one: Declaration) -> bool:
    """Whether it is a method or lemma to write."""
    promises = any(clause.word == "ensures" for clause in one.clauses)
    return promises and one.kind in ("method", "lemma") and one.body is None and not one.attributes


@lru_cache(maxsize=256)
def _split(text: str) -> Split:
    return split(text)


def target(example: DafnyExample, whole: Split) -> Method | None:
    """The method of the program that the example is cut at."""
    cut = (example.before, example.header + example.spec)
    return next((one for one in whole.methods if (one.before, one.header + one.spec) == cut), None)


@dataclass(frozen=True)
class TrainingPairs:
    """Training pairs of a role: the usable examples in their order, and the reasons against the others by id."""

    role: Role
    examples: tuple[DafnyExample, ...]
    left_out: Mapping[str, str]

    def reasons(self) -> dict[str, int]:
        """Counts of the reasons, most first; of a reason with details the part before the colon."""
        return dict(Counter(reason.partition(":")[0] for reason in self.left_out.values()).most_common())

    def summary(self, note: str = "") -> str:
        left = "".join(f"\n    {count} {reason}" for reason, count in self.reasons().items())
        return f"{self.role} pairs: {len(self.examples)}{note}, left out: {len(self.left_out)}{left}"


def pairs_of(examples: Iterable[DafnyExample], role: Role, check: Check | None = None) -> TrainingPairs:
    """The pairs of a role: the writer goes from the specification to the body, the annotator from the body to the annotated
    body, which may be equal: it also has to learn when nothing is missing.

    Args:
        check: a further check of well-formed examples.
    """
    found, left_out = [], {}
    for example in examples:
        fault = fault_of(example, role) or (check(example, role) if check is not None else "")
        if fault:
            left_out[example.id] = fault
        else:
            found.append(example)
    return TrainingPairs(role, tuple(found), left_out)


def make_check(config: Config, context: RunContext) -> tuple[str, dict[str, int]]:
    """The counts. Raises InputError for faults of the data, GuardStop if a reassembled program is another."""
    path = config.prepare.path
    found = survey(path)
    lost = [*changed(found), *other_text(found)]
    reasons = Counter(reason.partition(":")[0] for reason in found.left_out.values())
    lexed = sum(not any(one[0] == ERROR for one in tokens(plain(program.text))) for program in found.programs)
    declared = [one for _, whole in _splits(found) for _, one in qualified(whole.declarations)]
    kinds = Counter(one.kind for one in declared if one.kind in CALLABLES and one.body is not None)
    examples = found.examples
    writer, annotator = (pairs_of(examples, role) for role in ROLES)
    same = sum(one.body == one.annotated_body for one in annotator.examples)
    lines = [
        f"path: {path}",
        f"set: {found.set}",
        f"programs: {len(found.programs)}, that lex: {lexed}, without an example: {_counted(reasons)}",
        f"put together otherwise than given: {len(lost)}" + "".join(f"\n    {name}" for name in lost[:_SHOWN]),
        f"declared with a body: {_counted(kinds)}",
        f"examples: {len(examples)}, by first construct: {_counted(Counter(map(construct, examples)))}",
        writer.summary(),
        annotator.summary(f" ({same} with nothing to add)"),
    ]
    if examples:
        groups = Counter(alike(examples).values())
        parts = split_examples(examples)
        lines += [f"groups that stay together: {len(groups)}, the largest of {max(groups.values())}"]
        lines += ["splits: " + " ".join(f"{name}={len(members)}" for name, members in parts.items())]
    text = "\n".join(lines)
    if lost:
        raise GuardStop(text)
    return text, {"programs": len(found.programs), "examples": len(examples)}


def _splits(found: Survey) -> Iterator[tuple[DafnyProgram, Split]]:
    """The readable programs."""
    for program in found.programs:
        try:
            yield program, split(program.text)
        except Unreadable:
            continue


def changed(found: Survey) -> list[str]:
    """Programs that differ from one of their methods reassembled from its parts."""
    return [
        program.id
        for program, whole in _splits(found)
        if any(one.before + one.header + one.spec + one.body + one.after != program.text for one in whole.methods)
    ]


def other_text(found: Survey) -> list[str]:
    """Examples whose texts are not their program's."""
    texts = {program.text for program in found.programs}
    return [example.id for example in found.examples if texts and example.gold not in texts]


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.most_common()) or "none"


class UsableCheck:
    """A `Check` by Dafny. Each program is proved once, whatever the number of its methods.

    Args:
        proved: called with the number of programs that have their verdict, and the number of all.
    """

    def __init__(
        self, verifier: DafnyVerifier, resolver: Resolver, proved: Callable[[int, int], None] = lambda done, total: None
    ):
        self._verifier, self._resolver, self._proved = verifier, resolver, proved
        self._verdicts: dict[Request, tuple[Strength, Verdict]] = {}

    def ask(self, examples: Iterable[DafnyExample]) -> None:
        """Prove reference programs in parallel, each on the strictest level that it passes."""
        fresh = [one for one in dict.fromkeys(map(_reference, examples)) if one not in self._verdicts]
        total = len(self._verdicts) + len(fresh)
        for strength in STRENGTHS:
            asked = [replace(one, problem=replace(one.problem, strength=strength)) for one in fresh]
            failed = []
            for index, verdict in self._verifier.as_ready(asked):
                if verdict.outcome == "failed" and verdict.bucket != "parse" and strength != STRENGTHS[-1]:
                    failed.append(fresh[index])
                    continue
                self._verdicts[fresh[index]] = (strength, verdict)
                self._proved(len(self._verdicts), total)
            fresh = failed

    def strength(self, example: DafnyExample) -> Strength:
        """The level of the task."""
        self.ask([example])
        return self._verdicts[_reference(example)][0]

    def weakness(self, part: RoleExample) -> str:
        """Return why a usable task is not a strong one, or an empty text."""
        level = self.strength(part.example) if part.example.gold else STRENGTHS[0]
        if level != STRENGTHS[0]:
            return f"below the level {STRENGTHS[0]}: {level}"
        if part.role == "annotator":
            return ""
        if part.example.whole and (fault := self._resolver.fault(part.problem.program)):
            return f"the answer declares a part of the specification: {fault}"
        answers = list(trivial_answers(part))
        verdicts = self._verifier.verify([Request(part.problem, Candidate(program)) for _, program in answers])
        for (body, _), verdict in zip(answers, verdicts, strict=True):
            if verdict.outcome == "passed":
                return f"a trivial body solves it: {body}"
        return ""

    def __call__(self, example: DafnyExample, role: Role) -> str:
        if not example.gold:
            return ""
        self.ask([example])
        _, verdict = self._verdicts[_reference(example)]
        if verdict.outcome == "rejected":
            return f"the guards refuse the program, {verdict.rule}: {verdict.log[:200]}"
        if verdict.outcome == "no_verdict":
            return f"no verdict: {verdict.log[:200]}"
        if verdict.outcome != "passed":
            what = _BUCKETS.get(verdict.bucket or "", f"ends with {verdict.bucket}")
            return f"the program {what}: {verdict.log[:200]}"
        if example.whole:
            return ""
        refused = _refused(example.program(None), example.gold, "specification")
        if role == "annotator" and not refused:
            refused = _refused(example.program(example.body), example.gold, "program")
        if refused:
            return f"the guards refuse the gold, {refused}"
        reason = "" if example.body == example.annotated_body else self._resolver.fault(example.program(example.body))
        return f"the body alone does not resolve: {reason}" if reason else ""


def _reference(example: DafnyExample) -> Request:
    """The reference program as an answer to its task; that of a method as an answer to itself."""
    problem = RoleExample(example.whole, example).problem if example.whole else DafnyProblem(example.gold)
    return Request(replace(problem, strength=None), Candidate(example.gold))


def _refused(given: str, gold: str, protect: Protect) -> str:
    """The rule by which the gold is no answer to the given program, or an empty text."""
    early = guards.before_parsing(plain(given), plain(gold))
    if early is not None:
        return early.rule
    given, gold = (without_limits(plain(text)) for text in (given, gold))
    try:
        violation, _ = guards.check(read_declarations(given), gold, protect)
    except Unreadable as fault:
        return f"unreadable: {fault}"
    return violation.rule if violation is not None else ""


@contextmanager
def _usable_check(config: Any, proved: Callable[[int, int], None] = lambda done, total: None) -> Iterator[UsableCheck]:
    with (
        build(replace(config.verifier, prune=False), sandbox=config.sandbox, cache=config.cache) as verifier,
        Resolver(config.verifier.path, config.verifier.image) as resolver,
    ):
        yield UsableCheck(verifier, resolver, proved)


def make(config: Config, context: RunContext) -> tuple[str, dict[str, int]]:
    """Write the usable examples as rows that `data.path` takes, and `reasons.jsonl` into the run directory.

    Raises:
        RlvrError: Dafny broke down; the verdicts until then are cached.
    """
    options, found = config.prepare, survey(config.prepare.path, config.prepare.unit)

    def proved(done: int, total: int) -> None:
        context.progress(kind="phase", name="prove golds", done=done, total=total)

    try:
        with _usable_check(config, proved) as usable:
            usable.ask(one for one in found.examples if one.gold)
            pairs = [pairs_of(found.examples, role, usable) for role in ROLES]
            graded = [
                replace(one, strength=usable.strength(one) if one.gold else STRENGTHS[0]) for one in found.examples
            ]
    except Lost as fault:
        raise RlvrError(f"{fault}: run the command again, what is proved by now is cached") from fault
    remaining = {one.id: given_risks(one) for one in graded}
    reasons = (
        {"id": one.id, **{of.role: of.left_out.get(one.id, "") for of in pairs}, "risks": remaining[one.id]}
        for one in graded
    )
    write_json_lines(context.directory / "reasons.jsonl", reasons)
    roles = [role for role in ROLES if options.role in (role, "both")]
    wanted = [one for one in graded if _fits(one, roles, pairs)]
    output = Path(options.output or context.directory / "examples.jsonl")
    usable_rows = write_json_lines(output, map(row_of, wanted))
    levels: Counter[str] = Counter(str(one.strength) for one in wanted)
    risks = Counter(risk for one in wanted for risk in remaining[one.id])
    lines = [
        f"path: {options.path}",
        f"programs: {len(found.programs)}, examples: {len(graded)}, usable: {usable_rows}",
        *(f"usable {of.summary()}" for of in pairs),
        f"levels of the usable: {_counted(levels)}",
        f"risks that no guard removes, in given text: {_counted(risks)}",
    ]
    below = usable_rows - sum(count for level, count in levels.items() if level.startswith("strict"))
    counts = {"examples": len(graded), "usable": usable_rows, "below_strict": below}
    return "\n".join(lines), counts | {of.role: len(of.examples) for of in pairs}


def _fits(example: DafnyExample, roles: Sequence[Role], pairs: Sequence[TrainingPairs]) -> bool:
    """Whether the example is usable for these roles. A whole program has one role."""
    needed = [role for role in roles if example.whole in (None, role)]
    return bool(needed) and not any(example.id in of.left_out for of in pairs if of.role in needed)


def golds(
    checked: Callable[[Callable[[Sequence[RoleExample]], Sequence[str]]], Domain],
    config: Any,
    proved: Callable[[int, int], None],
) -> Golds:
    """The verdicts on every gold that is needed until each split is full.

    Args:
        checked: makes the domain whose golds pass a check.
    """
    known: dict[str, str] = {}
    levels: dict[str, str] = {}
    with _usable_check(config, proved) as usable:

        def check(parts: Sequence[RoleExample]) -> list[str]:
            usable.ask(part.example for part in parts if part.example.gold)
            faults = [usable(part.example, part.role) for part in parts]
            levels.update({part.id: usable.strength(part.example) for part in parts if part.example.gold})
            if config.data.usable == "strong":
                faults = [fault or usable.weakness(part) for part, fault in zip(parts, faults, strict=True)]
            known.update(zip((part.id for part in parts), faults, strict=True))
            return faults

        checked(check).splits()
    refused = {name: fault for name, fault in known.items() if fault}
    return Golds(len(known), refused, {name: level for name, level in levels.items() if name not in refused})
