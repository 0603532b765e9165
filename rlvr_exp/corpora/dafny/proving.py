"""Rewrites the embedded Dafny corpus, every row of it proved by the installed Dafny:

    python -m rlvr_exp.corpora.dafny.proving

Half an hour to an hour on two cores; verdicts are cached, so a second run takes minutes.
"""

import sys
from collections.abc import Sequence

from rlvr_exp.config.verifier import Cache, Sandbox
from rlvr_exp.corpora.dafny import mixture
from rlvr_exp.corpora.dafny.build import build_splits, write
from rlvr_exp.corpora.dafny.row import Built
from rlvr_exp.tasks.base import Candidate
from rlvr_exp.tasks.problems import DafnyProblem
from rlvr_exp.verifiers.base import Request, Verdict
from rlvr_exp.verifiers.dafny.verifier import DafnyVerifier

RLIMIT = 2_000_000
"""A tenth of the verifier's default: only easy proofs enter the corpus."""


def main() -> None:
    with DafnyVerifier(Sandbox(), Cache(), rlimit=RLIMIT, cpu_s=60, wall_s=240, memory_mb=2048) as verifier:
        splits, counts = build_splits(mixture.SPLITS, lambda texts: judged(verifier, texts))
        write(splits, counts, {**verifier.tool(), "rlimit": str(RLIMIT)})


def judged(verifier: DafnyVerifier, texts: Sequence[tuple[Built, str]]) -> list[str]:
    """The verdict on each annotated body against its method's specification, as a word."""
    requests = [Request(DafnyProblem(one.program("")), Candidate(one.program(text))) for one, text in texts]
    results = [""] * len(requests)
    for done, (index, verdict) in enumerate(verifier.as_ready(requests), 1):
        results[index] = _word(verdict)
        if done % 100 == 0:
            print(f"{done} of {len(requests)}", file=sys.stderr, flush=True)
    return results


def _word(verdict: Verdict) -> str:
    """Raises RuntimeError where Dafny itself crashed: nothing may be concluded from that."""
    if verdict.outcome == "no_verdict":
        raise RuntimeError(f"Dafny gave no verdict: {verdict.log}")
    if verdict.outcome == "passed":
        return "proved"
    return "refused" if verdict.bucket == "verify" else verdict.rule or str(verdict.bucket)


if __name__ == "__main__":
    main()
