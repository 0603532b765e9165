"""Which examples of a data set can be trained on, according to their texts (rlvr_exp/tasks/dafny/pairs.py) and to Dafny
(rlvr_exp/verifiers/dafny/usable.py). Verdicts are cached, so a second run takes seconds. A row of `reasons.jsonl` is an
example: {"id", "writer", "annotator"}, each the reason why not, or empty.
"""

from collections.abc import Sequence
from pathlib import Path

from rlvr_exp.config.load import build
from rlvr_exp.config.schema import Config
from rlvr_exp.core.errors import RlvrError
from rlvr_exp.corpora.row_files import write_rows
from rlvr_exp.records.context import RunContext
from rlvr_exp.sandbox.tools import Lost
from rlvr_exp.tasks.dafny.example import DafnyExample
from rlvr_exp.tasks.dafny.example_rows import row_of
from rlvr_exp.tasks.dafny.load import survey
from rlvr_exp.tasks.dafny.pairs import Pairings, build_pairings_for_annotator, build_pairings_for_writer
from rlvr_exp.verifiers.dafny.resolver import Resolver
from rlvr_exp.verifiers.dafny.usable import UsableCheck


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
    write_rows(context.directory / "reasons.jsonl", rows)
    unfit = {name for of in pairings if options.role in (of.role, "both") for name in of.left_out}
    output = Path(options.output or context.directory / "examples.jsonl")
    usable = write_rows(output, (row_of(one) for one in found.examples if one.id not in unfit))
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
