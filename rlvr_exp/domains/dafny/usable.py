"""Whether an example of a data set can be trained on, according to Dafny.

It can where its program is proved, the guards accept it as an answer to the program with a hole (an annotator's also to
the program with the body), and the program with the body alone resolves.

`prepare=dafny_usable` also checks their texts (rlvr_exp/domains/dafny/pairs.py). Verdicts are cached, so a second run takes
seconds. A row of `reasons.jsonl` is an example: {"id", "writer", "annotator"}, each the reason why not, or empty.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from rlvr_exp.config.load import build
from rlvr_exp.config.schema import Config
from rlvr_exp.core.errors import RlvrError
from rlvr_exp.core.files import write_json_lines
from rlvr_exp.domains.dafny import guards
from rlvr_exp.domains.dafny.example import DafnyExample, Role, RoleExample
from rlvr_exp.domains.dafny.guards import Protect, read_declarations
from rlvr_exp.domains.dafny.load import row_of, survey
from rlvr_exp.domains.dafny.pairs import Pairings, build_pairings_for_annotator, build_pairings_for_writer
from rlvr_exp.domains.dafny.problem import DafnyProblem
from rlvr_exp.domains.dafny.soundness import without_limits
from rlvr_exp.domains.dafny.syntax import Unreadable
from rlvr_exp.domains.dafny.tokens import plain
from rlvr_exp.domains.dafny.tool import Resolver
from rlvr_exp.domains.dafny.verifier import DafnyVerifier
from rlvr_exp.records.context import RunContext
from rlvr_exp.sandbox.tools import Lost
from rlvr_exp.tasks.base import Candidate, Domain, Golds
from rlvr_exp.verifiers.base import Request, Verdict

_WORDS = {"parse": "does not parse", "resolve": "does not resolve", "verify": "is not proved"}


class UsableCheck:
    """Says why an example is of no use to a role: a `pairs.Check`. Each program is proved once, whatever the number of
    its methods. `proved` is told how many programs have their verdict, and of how many."""

    def __init__(
        self, verifier: DafnyVerifier, resolver: Resolver, proved: Callable[[int, int], None] = lambda done, total: None
    ):
        self._verifier, self._resolver, self._proved = verifier, resolver, proved
        self._verdicts: dict[str, Verdict] = {}

    def ask(self, texts: Iterable[str]) -> None:
        """Prove programs in parallel before their verdicts are needed one by one."""
        fresh = [text for text in dict.fromkeys(texts) if text not in self._verdicts]
        requests = (Request(DafnyProblem(text), Candidate(text)) for text in fresh)
        total = len(self._verdicts) + len(fresh)
        for index, verdict in self._verifier.as_ready(requests):
            self._verdicts[fresh[index]] = verdict
            self._proved(len(self._verdicts), total)

    def __call__(self, example: DafnyExample, role: Role) -> str:
        self.ask([example.gold])
        verdict = self._verdicts[example.gold]
        if verdict.outcome != "passed":
            return _reason(verdict)
        refused = _refused(example.program(None), example.gold, "specification")
        if role == "annotator" and not refused:
            refused = _refused(example.program(example.body), example.gold, "program")
        if refused:
            return f"the guards refuse the gold, {refused}"
        reason = "" if example.body == example.annotated_body else self._resolver.fault(example.program(example.body))
        return f"the body alone does not resolve: {reason}" if reason else ""


def _reason(verdict: Verdict) -> str:
    if verdict.outcome == "rejected":
        return f"the guards refuse the program, {verdict.rule}: {verdict.log[:200]}"
    if verdict.outcome == "no_verdict":
        return f"no verdict: {verdict.log[:200]}"
    what = _WORDS.get(verdict.bucket or "", f"ends with {verdict.bucket}")
    return f"the program {what}: {verdict.log[:200]}"


def _refused(given: str, gold: str, protect: Protect) -> str:
    """The rule by which the gold is no answer to the given program; empty where it is an answer."""
    early = guards.before_parsing(plain(given), plain(gold))
    if early is not None:
        return early.rule
    given, gold = (without_limits(plain(text)) for text in (given, gold))
    try:
        violation, _ = guards.check(read_declarations(given), gold, protect)
    except Unreadable as fault:
        return f"unreadable: {fault}"
    return violation.rule if violation is not None else ""


def make(config: Config, context: RunContext) -> tuple[str, dict[str, int]]:
    """Write the usable examples as rows that `data.path` takes, and `reasons.jsonl` into the run directory.

    Raises:
        RlvrError: Dafny broke down; what is proved by then is cached.
    """
    options, found = config.prepare, survey(config.prepare.path)
    try:
        pairings = _pairings(found.examples, config)
    except Lost as fault:
        raise RlvrError(f"{fault}: run the command again, what is proved by now is cached") from fault
    reasons = ({of.role: of.left_out.get(one.id, "") for of in pairings} for one in found.examples)
    rows = ({"id": one.id, **why} for one, why in zip(found.examples, reasons, strict=True))
    write_json_lines(context.directory / "reasons.jsonl", rows)
    unfit = {name for of in pairings if options.role in (of.role, "both") for name in of.left_out}
    output = Path(options.output or context.directory / "examples.jsonl")
    usable = write_json_lines(output, (row_of(one) for one in found.examples if one.id not in unfit))
    head = f"path: {options.path}\nprograms: {len(found.programs)}, examples: {len(found.examples)}"
    counts = {"examples": len(found.examples), "usable": usable}
    return "\n".join([head, *map(_summary, pairings)]), counts | {of.role: len(of) for of in pairings}


def _pairings(examples: Sequence[DafnyExample], config: Config) -> list[Pairings]:
    with (
        build(config.verifier, sandbox=config.sandbox, cache=config.cache) as verifier,
        Resolver(config.verifier.path, config.verifier.image) as resolver,
    ):
        usable = UsableCheck(verifier, resolver)
        usable.ask(example.gold for example in examples)
        return [pair(examples, usable) for pair in (build_pairings_for_writer, build_pairings_for_annotator)]


def _summary(pairings: Pairings) -> str:
    left = "".join(f"\n    {count} {reason}" for reason, count in pairings.reasons().items())
    return f"usable {pairings.role} pairs: {len(pairings)}, left out: {len(pairings.left_out)}{left}"


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
    with (
        build(config.verifier, sandbox=config.sandbox, cache=config.cache) as verifier,
        Resolver(config.verifier.path, config.verifier.image) as resolver,
    ):
        usable = UsableCheck(verifier, resolver, proved)

        def check(parts: Sequence[RoleExample]) -> list[str]:
            usable.ask(part.example.gold for part in parts)
            faults = [usable(part.example, part.role) for part in parts]
            known.update(zip((part.id for part in parts), faults, strict=True))
            return faults

        checked(check).splits()
    return Golds(len(known), {name: fault for name, fault in known.items() if fault})
