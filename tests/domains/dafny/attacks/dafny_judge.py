"""How the tests here request a verdict."""

from rlvr_exp.domains.dafny.problem import DafnyProblem
from rlvr_exp.domains.dafny.verifier import DafnyVerifier
from rlvr_exp.tasks.base import Candidate
from rlvr_exp.tasks.formats.fields import Limits
from rlvr_exp.verifiers.base import Request, Verdict


class Judge:
    """Judges (given, candidate) pairs; all pairs announced before are judged together, at the first request."""

    def __init__(self, verifier: DafnyVerifier):
        self.verifier = verifier

    def __call__(self, given: str, candidate: str, limits: Limits = Limits()) -> Verdict:
        return self.verifier.verify([Request(DafnyProblem(given, limits), Candidate(candidate))])[0]

    def prefetch(self, pairs: list[tuple[str, str]]) -> None:
        """Later calls find these in the verifier's cache."""
        self.verifier.verify([Request(DafnyProblem(given), Candidate(candidate)) for given, candidate in pairs])
