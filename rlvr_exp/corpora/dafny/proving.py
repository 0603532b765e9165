"""Makes the embedded Dafny corpus, every row of it proved by the configured Dafny.

Half an hour to an hour on two cores; verdicts are cached, so a second run takes minutes.
"""

from collections.abc import Sequence
from pathlib import Path

from rlvr_exp.config.load import build
from rlvr_exp.config.schema import Config
from rlvr_exp.corpora.dafny import mixture
from rlvr_exp.corpora.dafny.build import build_splits, written
from rlvr_exp.corpora.dafny.row import Built
from rlvr_exp.corpora.splits import sizes
from rlvr_exp.records.context import RunContext
from rlvr_exp.tasks.base import Candidate
from rlvr_exp.tasks.formats.dafny import DafnyProblem
from rlvr_exp.verifiers.base import Request, Verdict, Verifier

EVERY = 100
"""Verdicts between messages of progress."""


def make(config: Config, context: RunContext) -> tuple[str, dict[str, int]]:
    """Draw the splits, prove them and write them."""
    folder = Path(config.prepare.output or context.directory / "dafny")
    with build(config.verifier, sandbox=config.sandbox, cache=config.cache) as verifier:
        splits, counts = build_splits(
            sizes(config.prepare, mixture.SPLITS), lambda texts: judged(verifier, texts, context)
        )
        return written(folder, splits, counts, {**verifier.tool(), "rlimit": str(config.verifier.rlimit)})


def judged(verifier: Verifier, texts: Sequence[tuple[Built, str]], context: RunContext) -> list[str]:
    """The verdict on each annotated body against its method's specification, as a word."""
    requests = [Request(DafnyProblem(one.program("")), Candidate(one.program(text))) for one, text in texts]
    results = [""] * len(requests)
    for done, (index, verdict) in enumerate(verifier.as_ready(requests), 1):
        results[index] = _word(verdict)
        if done % EVERY == 0:
            context.progress(kind="phase", name="prove", done=done, total=len(requests))
    return results


def _word(verdict: Verdict) -> str:
    """Raises RuntimeError where Dafny itself crashed: nothing may be concluded from that."""
    if verdict.outcome == "no_verdict":
        raise RuntimeError(f"Dafny gave no verdict: {verdict.log}")
    if verdict.outcome == "passed":
        return "proved"
    return "refused" if verdict.bucket == "verify" else verdict.rule or str(verdict.bucket)
