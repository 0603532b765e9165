"""`benchmark=agreement`: how many programs the configured verifier judges as plain Python does; they have to be all."""

from collections.abc import Sequence

from rlvr_exp.benchmarks.agreement.pairs import ComparedProgram, pytest_pairs, python_io_pairs, with_verdicts
from rlvr_exp.config.load import build
from rlvr_exp.config.schema import Config
from rlvr_exp.core.errors import GuardStop, InputError, InputProblem
from rlvr_exp.records.context import RunContext

SHOWN = 20


def measure(config: Config, context: RunContext) -> tuple[str, dict[str, int]]:
    """The counts. Raises InputError for another verifier, GuardStop where a verdict differs."""
    kinds = {"python_io": python_io_pairs, "pytest": pytest_pairs}
    with build(config.verifier, sandbox=config.sandbox, cache=config.cache) as verifier:
        if verifier.name not in kinds:
            raise InputError(InputProblem("verifier", "judges no Python", verifier.name, ", ".join(kinds)))
        found = with_verdicts(kinds[verifier.name](config.benchmark.pairs, config.seed), verifier)
    text, differing = "\n".join(_report(found, config.seed)), sum(not one.agrees for one in found)
    if differing:
        raise GuardStop(text)
    return text, {"programs": len(found), "disagreements": differing}


def _report(found: Sequence[ComparedProgram], seed: int) -> list[str]:
    lines = []
    for one in [one for one in found if not one.agrees][:SHOWN]:
        word, where = "passes" if one.plain else "fails", f"seed {seed}, pair {one.number}, {one.kind}"
        lines.append(f"{where}: {word} under plain Python, {one.outcome}: {one.log[:300]}")
    for kind in ("honest", "wrong"):
        of_kind = [one for one in found if one.kind == kind]
        passed, agreed = sum(one.plain for one in of_kind), sum(one.agrees for one in of_kind)
        lines.append(f"{kind}: {len(of_kind)} programs, {passed} pass under plain Python, {agreed} judged alike")
    return [*lines, f"{sum(not one.agrees for one in found)} disagreements"]
