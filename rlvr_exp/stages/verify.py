"""Verify candidates from a file: rows in, verdicts out, in the same order. No model, no torch.

Every problem that can be detected early is reported before the first row is verified. A row that cannot be read gets
`no_verdict`; past `verifier.max_no_verdict_rate` the run ends with exit 3, once every row has been processed.
"""

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from rlvr_exp.config import verifier as options
from rlvr_exp.config.schema import Config
from rlvr_exp.config.stage_options import SAMPLES
from rlvr_exp.config.tree import PACKAGE
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.records import manifest
from rlvr_exp.records.context import RunContext, StageResult
from rlvr_exp.records.resumable_jsonl import VerdictFile
from rlvr_exp.stages.shared.verifier_setup import build_verifier, checked_description
from rlvr_exp.stages.shared.verify_rows import RowVerification
from rlvr_exp.tasks.formats.rows import FORMATS
from rlvr_exp.tasks.rows import fingerprint, lines
from rlvr_exp.verifiers.base import Verifier


def run(config: Config, context: RunContext) -> StageResult:
    with build_verifier(config) as verifier:
        row_format = format_of(verifier)
        source = source_of(config.verify.input, row_format)
        description = checked_description(verifier, context)
        found = fingerprint(source)
        target = Path(config.verify.output or context.directory / "verdicts.jsonl")
        provenance = {
            "input": found.hash,
            "verifier": decides(config, description),
            "max_row_mb": config.verify.max_row_mb,
        }
        with VerdictFile(target, provenance) as out:
            described = {"path": str(source), "hash": found.hash, "rows": found.rows}
            manifest.update(context.directory, verifier=description, input=described, output=str(target))
            verification = RowVerification(
                verifier, row_format, out, context, found.rows, config.verifier.max_no_verdict_rate
            )
            return verification.run(lines(source, config.verify.max_row_mb << 20))


def format_of(verifier: Verifier) -> str:
    """The format of rows that a verifier takes. Raises InputError for a verifier that names none."""
    name = verifier.row_format or verifier.name
    if name not in FORMATS:
        remedy = "give the class an attribute row_format, the name of the format that it takes"
        raise InputError(
            InputProblem("verifier", "takes no rows of a file", verifier.name, ", ".join(FORMATS), "", remedy)
        )
    return name


def source_of(given: str, row_format: str) -> Path:
    """The file to read. Raises InputError where it is the samples and they do not exist."""
    if given != SAMPLES:
        return Path(given)
    path = PACKAGE / "assets" / "rows" / f"{row_format}.jsonl"
    if not path.is_file():
        raise InputError(InputProblem("verify.input", "no samples for this format", row_format, "a file of JSON lines"))
    return path


def decides(config: Config, description: Mapping[str, Any]) -> dict[str, Any]:
    """What determines verdicts in addition to the rows."""
    node, sandbox = config.verifier, config.sandbox
    of_every = {spec.name for spec in fields(options.Verifier)}
    own = {spec.name: getattr(node, spec.name) for spec in fields(node) if spec.name not in of_every}
    limits = {name: getattr(sandbox, name) for name in ("cpu_s", "wall_s", "memory_mb", "output_kb")}
    limits["level"] = description["isolation"].get("level")
    return {**{name: description[name] for name in ("name", "version", "tool")}, "options": own, "sandbox": limits}
