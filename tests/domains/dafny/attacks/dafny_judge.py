"""How the tests request a verdict of Dafny."""

from rlvr_exp.config.verifier import Sandbox
from rlvr_exp.domains.dafny.problem import DafnyProblem
from rlvr_exp.domains.dafny.verifier import DafnyVerifier
from rlvr_exp.tasks.base import Candidate
from rlvr_exp.verifiers.base import Request, Verdict


class Judge:
    """Judges (given, candidate) pairs; all pairs announced before are judged together, at the first request."""

    def __init__(self, verifier: DafnyVerifier):
        self.verifier = verifier

    def __call__(self, given: str, candidate: str | None, *own: object, **more: object) -> Verdict:
        """`own` and `more`: options of a DafnyProblem."""
        return self.verifier.verify([Request(DafnyProblem(given, *own, **more), Candidate(candidate))])[0]

    def prefetch(self, pairs: list[tuple[str, str]]) -> None:
        """Later calls find these in the verifier's cache."""
        self.verifier.verify([Request(DafnyProblem(given), Candidate(candidate)) for given, candidate in pairs])


def of_dafny(**own: object) -> DafnyVerifier:
    """A verifier with one worker and limits that a busy machine does not reach."""
    return DafnyVerifier(Sandbox(workers=1), **{"cpu_s": 60, "wall_s": 300, "memory_mb": 2048, **own})


def told(verdict: Verdict) -> str:
    """The bucket, the rule or the outcome."""
    return verdict.bucket or verdict.rule or verdict.outcome
