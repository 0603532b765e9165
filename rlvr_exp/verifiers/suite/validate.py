"""Whether a suite can judge: the reference passes it, and stub solutions do not.

Suites come from task authors or from models, and a model's may be empty, wrong or hostile (`assert True`, a patched
solution, an early exit). The verifier runs a suite under the same guards whoever wrote it; it cannot know whether
the suite tests anything. That is decided here, by running it against solutions whose outcome is known.
"""

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rlvr_exp.tasks.base import Candidate
from rlvr_exp.tasks.formats.limits import Limits
from rlvr_exp.tasks.formats.pytest_suite import PytestProblem
from rlvr_exp.verifiers.base import Request, Verdict, Verifier


@dataclass(frozen=True)
class Validation:
    """Whether a suite can judge.

    `sound`: the reference passes it. `empty`: so does a solution that does nothing, or nothing is collected. A suite is
    of use where it is sound and not empty.
    """

    sound: bool
    empty: bool
    tests: int
    """Number of tests that count."""
    reference: Verdict
    stubs: tuple[Verdict, ...]
    """Verdicts on the reference without its bodies: one that raises, one that returns None."""

    @property
    def usable(self) -> bool:
        return self.sound and not self.empty


def validate_tests_against_solution(
    tests: str, reference: str, verifier: Verifier, files: Mapping[str, str] | None = None, limits: Limits = Limits()
) -> Validation:
    """Run a suite against a reference solution, and against stubs of it.

    Args:
        tests: the suite's text, as `sanitise_tests` gives it.
        reference: a solution that is known to be right.
        verifier: a `PytestSuite`; several suites at once: `validate_many`.
    """
    return validate_many([(tests, reference, files or {})], verifier, limits)[0]


def validate_many(
    suites: Sequence[tuple[str, str, Mapping[str, str]]], verifier: Verifier, limits: Limits = Limits()
) -> list[Validation]:
    """The same for many (tests, reference, files), in parallel, in order."""
    requests = []
    for tests, reference, files in suites:
        problem = PytestProblem(tests, tuple(files.items()), limits)
        stubs = [stubbed(reference, "raise NotImplementedError"), stubbed(reference, "return None")]
        requests += [Request(problem, Candidate(code)) for code in (reference, *stubs)]
    verdicts = verifier.verify(requests)
    return [_validation(verdicts[at : at + 3]) for at in range(0, len(verdicts), 3)]


def stubbed(reference: str, body: str) -> str:
    """The reference with `body` in place of each function's own body. Text that is no Python stays unchanged."""
    try:
        tree = ast.parse(reference)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return reference
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and not node.name.startswith("__"):
            node.body = ast.parse(body).body if body.startswith("raise") else [ast.Return(ast.Constant(None))]
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def _validation(verdicts: Sequence[Verdict]) -> Validation:
    reference, *stubs = verdicts
    passes_nothing = reference.total == 0
    empty = passes_nothing or any(verdict.outcome == "passed" for verdict in stubs)
    return Validation(reference.outcome == "passed", empty, reference.total, reference, tuple(stubs))
