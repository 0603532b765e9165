"""Raw sets of edits as normalized rows: read and index every line, group rows that are alike, place the groups, write.

Only the first takes long, and it is continued after a kill; the rest is done again from the index. Memory does not grow with
the rows: the index and the spool are files (rlvr_exp.corpora.edit_sets.index).
"""

import json
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rlvr_exp import __version__
from rlvr_exp.config.prepare import EditSets
from rlvr_exp.config.schema import Config
from rlvr_exp.core.checksums import checksum
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.core.files import write_text
from rlvr_exp.core.hashing import content_hash
from rlvr_exp.corpora.edit_sets import stats
from rlvr_exp.corpora.edit_sets.draft import Place
from rlvr_exp.corpora.edit_sets.groups import group_alike
from rlvr_exp.corpora.edit_sets.held_out import HeldOut
from rlvr_exp.corpora.edit_sets.index import FOLDER, Index, other_rows
from rlvr_exp.corpora.edit_sets.lines import read_lines
from rlvr_exp.corpora.edit_sets.placing import place
from rlvr_exp.corpora.edit_sets.reading import Reading, Shard
from rlvr_exp.corpora.edit_sets.sets import READERS
from rlvr_exp.corpora.edit_sets.tokens import Tokens
from rlvr_exp.corpora.edit_sets.writing import check_output, write_dropped, write_splits
from rlvr_exp.records.context import RunContext
from rlvr_exp.tasks.code_sets import EVALUATION_ONLY
from rlvr_exp.tasks.edit_sets import CANITEDIT
from rlvr_exp.tasks.edits.rows import METADATA, DatasetMetadata

STATS = "stats.md"
NOT_DECIDING = ("_target_", "path", "also", "output", "held_out")
"""Options that are not among what decides the rows, or are there by their content."""
LIBRARIES = ("datasketch", "rapidfuzz")
"""Those that decide the rows."""


def make(config: Config, context: RunContext) -> tuple[str, dict[str, int]]:
    """Write the splits, `metadata.json`, `stats.md` and `dropped.csv`.

    Raises:
        InputError: a path has no set, or one that forbids training; the output holds rows made otherwise; no row is kept.
    """
    options: EditSets = config.prepare
    output = Path(options.output or context.directory / "edits")
    shards = shards_of(options)
    check_output(output, {shard.place.root for shard in shards}, (METADATA, FOLDER))
    context.progress(kind="wait", name="look at the files")
    held_out = HeldOut(options.held_out, options.similarity)
    tokens = Tokens(config.model) if options.count_tokens else None
    provenance = _provenance(config, shards, held_out, tokens)
    if (output / METADATA).is_file():
        return _complete(output, provenance)
    with Index(output, provenance | {"code": _code()}) as index:
        Reading(index, held_out, tokens.count if tokens else None, context).read(shards)
        context.progress(kind="wait", name="group alike rows")
        place(index.db, group_alike(index.db, index.folder / "groups.npy", options.similarity), options, config.seed)
        counts = _write(index, shards, output, provenance, held_out)
        index.remove()
    return _report(output, counts)


def shards_of(options: EditSets) -> list[Shard]:
    """All files of all sets, in the order of the sets' names and of theirs.

    Raises:
        InputError: a path has none, or holds a set that forbids training.
    """
    found: list[Shard] = []
    for name, path in sorted({options.set: options.path, **options.also}.items()):
        where = Place(Path(path), options)
        if not where.root.exists():
            raise InputError(InputProblem("prepare.also", "not there", path, "an existing folder or file"))
        for file in READERS[name].files(where.root):
            _check_allowed(file)
            found.append(Shard(len(found), file, READERS[name], where))
    return found


def _check_allowed(file: Path) -> None:
    """Raises InputError for a file of a set that may not be trained on, by its first line."""
    first = next(read_lines(file), None)
    if first is not None and first.values.keys() >= CANITEDIT.keys:
        what = EVALUATION_ONLY[CANITEDIT.name]
        remedy = f"leave it out; prepare.held_out=[{file}] keeps other rows apart from it"
        raise InputError(InputProblem("prepare.path", what, f"{CANITEDIT.name} in {file}", "", "", remedy))


def _provenance(config: Config, shards: Sequence[Shard], held_out: HeldOut, tokens: Tokens | None) -> dict[str, Any]:
    """All that decides the rows, as `metadata.json` has it."""
    sources: dict[str, dict[str, str]] = {}
    for shard in shards:
        root = shard.place.root
        if shard.reader.NAME not in sources:
            files = getattr(shard.reader, "sources", shard.reader.files)(root)
            names = {
                (file.name if file == root else file.relative_to(root).as_posix()): checksum(file) for file in files
            }
            sources[shard.reader.NAME] = names
    options = {key: value for key, value in vars(config.prepare).items() if key not in NOT_DECIDING}
    options |= {
        "seed": config.seed,
        "held_out": held_out.fingerprint,
        "tokenizer": tokens.fingerprint if tokens else "",
    }
    versions = {"rlvr_exp": __version__} | {name: version(name) for name in LIBRARIES}
    return {"sources": sources, "options": options, "versions": versions}


def _code() -> str:
    """Hash of this room's files: what one version has begun, no other continues."""
    files = sorted(Path(__file__).parent.rglob("*.py"))
    return content_hash([file.read_text(encoding="utf-8") for file in files])


def _write(
    index: Index, shards: Sequence[Shard], output: Path, provenance: Mapping[str, Any], held_out: HeldOut
) -> dict[str, Any]:
    counts = stats.counts_of(index.db)
    if not counts["records"]:
        reasons = ", ".join(f"{reason}: {count}" for reason, count in counts["dropped"].items())
        what = "no record is kept"
        index.remove()
        raise InputError(
            InputProblem("prepare.path", what, reasons or "no lines", remedy="look at prepare.set and the filters")
        )
    languages, licences = (stats.tally(index.db, column) for column in ("language", "licence"))
    files = write_splits(index, shards, output)
    write_dropped(index, shards, output)
    write_text(output / STATS, stats.page(counts, languages, licences, held_out.count) + "\n")
    found = DatasetMetadata(licences=licences, languages=languages, counts=counts, files=files, **provenance)
    found.write(output)
    return counts


def _complete(output: Path, provenance: Mapping[str, Any]) -> tuple[str, dict[str, int]]:
    """The report of an output that is there already. Raises InputError where it was made otherwise."""
    found = json.loads((output / METADATA).read_text(encoding="utf-8"))
    before = {key: found.get(key) for key in provenance}
    if content_hash(before) != content_hash(provenance):
        raise other_rows(output, before, provenance)
    return _report(output, found["counts"])


def _report(output: Path, counts: Mapping[str, Any]) -> tuple[str, dict[str, int]]:
    metrics = {"lines": counts["lines"], "records": counts["records"], "dropped": sum(counts["dropped"].values())}
    for row in counts["splits"]:
        name = f"records/{row['split']}"
        metrics[name] = metrics.get(name, 0) + row["records"]
    return f"written: {output}\n\n{(output / STATS).read_text(encoding='utf-8').strip()}", metrics
