"""The command line: see the package's docstring."""

import argparse
import sys
from collections.abc import Sequence

import rlvr_exp.verifiers.agreement as package
from rlvr_exp.config.verifier import Sandbox
from rlvr_exp.verifiers.agreement.pairs import ComparedProgram, pytest_pairs, python_io_pairs, with_verdicts
from rlvr_exp.verifiers.base import Verifier
from rlvr_exp.verifiers.python_io import PythonIO
from rlvr_exp.verifiers.suite.verifier import PytestSuite

SHOWN = 20


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code: 1 where the two disagree."""
    parser = argparse.ArgumentParser(prog="python -m rlvr_exp.verifiers.agreement", description=package.__doc__)
    parser.add_argument("--verifier", choices=("python_io", "pytest"), default="python_io")
    parser.add_argument("--pairs", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=0, help="0: one a core")
    given = parser.parse_args(arguments)
    make = {"python_io": python_io_pairs, "pytest": pytest_pairs}[given.verifier]
    pairs = make(given.pairs, given.seed)
    with _verifier(given.verifier, given.workers) as verifier:
        found = with_verdicts(pairs, verifier)
    _report(found, given.seed)
    return int(not all(one.agrees for one in found))


def _verifier(name: str, workers: int) -> Verifier:
    sandbox = Sandbox(workers=workers, cpu_s=10.0, wall_s=60.0)
    return PythonIO(sandbox) if name == "python_io" else PytestSuite(sandbox, memory_mb=2048)


def _report(found: Sequence[ComparedProgram], seed: int) -> None:
    for one in [one for one in found if not one.agrees][:SHOWN]:
        word = "passes" if one.plain else "fails"
        print(f"seed {seed}, pair {one.number}, {one.kind}: {word} under plain Python, {one.outcome}: {one.log[:300]}")
    for kind in ("honest", "wrong"):
        of_kind = [one for one in found if one.kind == kind]
        passed, agreed = sum(one.plain for one in of_kind), sum(one.agrees for one in of_kind)
        print(f"{kind}: {len(of_kind)} programs, {passed} pass under plain Python, {agreed} judged alike")
    print(f"{sum(not one.agrees for one in found)} disagreements")


if __name__ == "__main__":
    sys.exit(main())
