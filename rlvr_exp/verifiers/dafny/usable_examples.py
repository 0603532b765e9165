"""Which examples of a data set can be trained on, according to the installed Dafny.

    python -m rlvr_exp.verifiers.dafny.usable_examples PATH [--examples OUT.jsonl [--role ROLE]] [--reasons OUT.jsonl]
    ...

An example is usable for a role where its texts fit (rlvr_exp/tasks/dafny/pairs.py), its program is proved, the guards
accept it as an answer to the program with a hole (an annotator's also to the program with the body), and the program
with the body alone resolves. Each program is proved once, whatever the number of its methods; verdicts are cached, so a
second run takes seconds. `--examples` writes the usable examples as rows that `data.path` takes;
`--reasons` a row an example: {"id", "writer", "annotator"}, each the reason why not, or empty. Exit codes: 0, 1, 2.
"""

import argparse
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rlvr_exp.config.verifier import Cache, Sandbox
from rlvr_exp.config.verifier import DafnyVerifierOptions as DafnyOptions
from rlvr_exp.core.errors import BAD_INPUT, DONE, FAULT, InputError
from rlvr_exp.tasks.base import Candidate
from rlvr_exp.tasks.dafny.example import DafnyExample
from rlvr_exp.tasks.dafny.example_rows import row_of
from rlvr_exp.tasks.dafny.load import survey
from rlvr_exp.tasks.dafny.pairs import Pairings, build_pairings_for_annotator, build_pairings_for_writer
from rlvr_exp.tasks.dafny.role_examples import ROLES, Role
from rlvr_exp.tasks.dafny.syntax import Unreadable
from rlvr_exp.tasks.dafny.tokens import plain
from rlvr_exp.tasks.problems import DafnyProblem
from rlvr_exp.verifiers.base import Request, Verdict
from rlvr_exp.verifiers.dafny import guards
from rlvr_exp.verifiers.dafny.declarations import read_declarations
from rlvr_exp.verifiers.dafny.guards import Protect
from rlvr_exp.verifiers.dafny.resolve import Resolver
from rlvr_exp.verifiers.dafny.run import Lost
from rlvr_exp.verifiers.dafny.soundness_rules import without_limits
from rlvr_exp.verifiers.dafny.verifier import DafnyVerifier

_WORDS = {"parse": "does not parse", "resolve": "does not resolve", "verify": "is not proved"}


class UsableCheck:
    """Says why an example is of no use to a role: a `pairs.Check`."""

    def __init__(self, verifier: DafnyVerifier, resolver: Resolver):
        self._verifier, self._resolver = verifier, resolver
        self._verdicts: dict[str, Verdict] = {}

    def ask(self, texts: Iterable[str]) -> None:
        """Prove programs in parallel before their verdicts are needed one by one."""
        fresh = [text for text in dict.fromkeys(texts) if text not in self._verdicts]
        requests = (Request(DafnyProblem(text), Candidate(text)) for text in fresh)
        for index, verdict in self._verifier.as_ready(requests):
            self._verdicts[fresh[index]] = verdict

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


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m rlvr_exp.verifiers.dafny.usable_examples", description="Usable examples."
    )
    parser.add_argument("path", help="folder or file of Dafny programs or examples")
    parser.add_argument("--examples", default="", help="a file for the usable examples: a data.path")
    parser.add_argument("--role", default="both", choices=(*ROLES, "both"), help="the role that they must be usable for")
    parser.add_argument("--reasons", default="", help="a file for the reasons, a row an example")
    parser.add_argument("--workers", type=int, default=0, help="provers in parallel; 0: one a core")
    parser.add_argument("--wall-s", type=float, default=DafnyOptions.wall_s, help="wall-clock seconds of one program")
    chosen = parser.parse_args(arguments)
    try:
        found = survey(chosen.path)
        pairings = _pairings(found.examples, chosen.workers, chosen.wall_s)
    except InputError as error:
        print(error)
        return BAD_INPUT
    except Lost as fault:
        print(f"{fault}: run the command again, what is proved by now is remembered")
        return FAULT
    if chosen.reasons:
        reasons = ({of.role: of.left_out.get(one.id, "") for of in pairings} for one in found.examples)
        _write(chosen.reasons, ({"id": one.id, **why} for one, why in zip(found.examples, reasons, strict=True)))
    if chosen.examples:
        unfit = {name for of in pairings if chosen.role in (of.role, "both") for name in of.left_out}
        _write(chosen.examples, (row_of(one) for one in found.examples if one.id not in unfit))
    print(f"path: {chosen.path}\nprograms: {len(found.programs)}, examples: {len(found.examples)}")
    print("\n".join(map(_summary, pairings)))
    return DONE


def _pairings(examples: Sequence[DafnyExample], workers: int, wall_s: float) -> list[Pairings]:
    options = DafnyOptions()
    limits = {"rlimit": options.rlimit, "cpu_s": options.cpu_s, "wall_s": wall_s, "memory_mb": options.memory_mb}
    with DafnyVerifier(Sandbox(workers=workers), Cache(), **limits) as verifier, Resolver() as resolver:
        usable = UsableCheck(verifier, resolver)
        usable.ask(example.gold for example in examples)
        return [build(examples, usable) for build in (build_pairings_for_writer, build_pairings_for_annotator)]


def _write(path: str, rows: Iterable[Mapping[str, Any]]) -> None:
    Path(path).write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


def _summary(pairings: Pairings) -> str:
    left = "".join(f"\n    {count} {reason}" for reason, count in pairings.reasons().items())
    return f"usable {pairings.role} pairs: {len(pairings)}, left out: {len(pairings.left_out)}{left}"


if __name__ == "__main__":
    raise SystemExit(main())
