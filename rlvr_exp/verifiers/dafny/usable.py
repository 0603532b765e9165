"""Whether an example of a data set can be trained on, according to Dafny.

It can where its program is proved, the guards accept it as an answer to the program with a hole (an annotator's also to
the program with the body), and the program with the body alone resolves.
"""

from collections.abc import Callable, Iterable

from rlvr_exp.tasks.base import Candidate
from rlvr_exp.tasks.dafny.example import DafnyExample
from rlvr_exp.tasks.dafny.role_examples import Role
from rlvr_exp.tasks.dafny.syntax import Unreadable
from rlvr_exp.tasks.dafny.tokens import plain
from rlvr_exp.tasks.formats.dafny import DafnyProblem
from rlvr_exp.verifiers.base import Request, Verdict
from rlvr_exp.verifiers.dafny import guards
from rlvr_exp.verifiers.dafny.declarations import read_declarations
from rlvr_exp.verifiers.dafny.guards import Protect
from rlvr_exp.verifiers.dafny.resolver import Resolver
from rlvr_exp.verifiers.dafny.soundness_rules import without_limits
from rlvr_exp.verifiers.dafny.verifier import DafnyVerifier

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
