"""A model or a data set of the Hugging Face hub, downloaded into a folder. No other command of the program downloads.

The revision is resolved to a commit first. Files go into a hidden folder that the same command continues after an interruption. It is
renamed when every file has the hub's checksum, so that a folder under its final name is complete. The record next to it,
`FOLDER.hub.json`, has the name, the commit, and the SHA-256 of every file.
"""

import os
import shutil
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import httpx
from huggingface_hub import HfApi, snapshot_download
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    LocalEntryNotFoundError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

from rlvr_exp.config.stage_options import hub_record
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.core.files import write_json
from rlvr_exp.core.hashing import checksum
from rlvr_exp.core.secrets import masked
from rlvr_exp.records.context import RunContext

OFFLINE = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
"""Variables that the client obeys."""
UNREACHABLE = (httpx.HTTPError, OfflineModeIsEnabled, LocalEntryNotFoundError)


def make(config: Any, context: RunContext) -> tuple[str, dict[str, int]]:
    """Download `prepare.name`.

    Raises:
        InputError: the hub refuses or cannot be reached, a file differs from the hub's checksum, or the output exists.
    """
    options = config.prepare
    out = Path(options.output or context.directory / options.name.rpartition("/")[2])
    existing = [path for path in (out, hub_record(out)) if path.exists()]
    if existing:
        raise InputError(InputProblem("prepare.output", "exists", str(existing[0]), "a new folder"))
    try:
        commit, wanted = _files(options)
        partial = out.with_name(f".{out.name}.{commit[:12]}.partial")
        context.progress(kind="wait", name=f"download {options.name}, {len(wanted)} files")
        snapshot_download(
            options.name,
            repo_type=options.kind,
            revision=commit,
            local_dir=partial,
            allow_patterns=options.files or None,
        )
    except (*UNREACHABLE, HfHubHTTPError, HFValidationError) as fault:
        raise InputError(_problem(options, fault)) from fault
    shutil.rmtree(partial / ".cache", ignore_errors=True)  # The client's notes about the download.
    sums = {name: checksum(partial / name) for name in sorted(wanted)}
    for name, expected in wanted.items():
        if expected and sums[name] != expected:
            (partial / name).unlink()
            what, remedy = f"{name} differs from the hub's checksum", "run the same command again"
            raise InputError(InputProblem("prepare.name", what, sums[name], expected, "", remedy))
    write_json(
        hub_record(out),
        {"name": options.name, "kind": options.kind, "revision": options.revision, "commit": commit, "sha256": sums},
    )
    os.replace(partial, out)
    word = "model.path" if options.kind == "model" else "data.path"
    return f"downloaded {options.name} at {commit}\nuse it with {word}={out}", {"files": len(sums)}


def _files(options: Any) -> tuple[str, dict[str, str]]:
    """The commit, and the hub's SHA-256 of each wanted file; empty for files outside of its large storage.

    Raises:
        InputError: no file matches.
    """
    info = HfApi().repo_info(
        options.name, repo_type=options.kind, revision=options.revision, files_metadata=True, timeout=30
    )
    assert info.sha is not None and info.siblings is not None  # The hub always answers both.
    found = {one.rfilename: str(one.lfs.sha256) if one.lfs else "" for one in info.siblings}
    wanted = {
        name: value
        for name, value in found.items()
        if not options.files or any(fnmatch(name, pattern) for pattern in options.files)
    }
    if not wanted:
        allowed = ", ".join(sorted(found)) or "nothing: the repository is empty"
        raise InputError(InputProblem("prepare.files", "no file matches", str(options.files), allowed))
    return info.sha, wanted


def _problem(options: Any, fault: Exception) -> InputProblem:
    got, kind = options.name, options.kind
    if isinstance(fault, GatedRepoError):
        remedy = "accept the licence on its page, then export HF_TOKEN=TOKEN"
        return InputProblem("prepare.name", "the hub asks for permission", got, "", "", remedy)
    if isinstance(fault, RepositoryNotFoundError):
        remedy = "correct the name or prepare.kind, or export HF_TOKEN=TOKEN for a private one"
        return InputProblem("prepare.name", f"the hub has no such {kind}", got, "OWNER/NAME", "", remedy)
    if isinstance(fault, RevisionNotFoundError):
        return InputProblem(
            "prepare.revision", f"{got} has no such revision", options.revision, "a branch, tag or commit"
        )
    if isinstance(fault, HFValidationError):
        return InputProblem("prepare.name", "not a name of the hub", got, "OWNER/NAME")
    where = os.environ.get("HF_ENDPOINT") or "https://huggingface.co"
    if isinstance(fault, OfflineModeIsEnabled):
        variable = next((one for one in OFFLINE if os.environ.get(one)), OFFLINE[0])
        return InputProblem("prepare.name", f"{variable} forbids downloads", got, "", "", f"unset {variable}")
    reason = masked(str(fault).splitlines()[0] if str(fault) else type(fault).__name__)
    remedy = "run the same command again with a network; it continues, or download elsewhere and copy the folder"
    return InputProblem("prepare.name", f"the hub at {masked(where)} gave no answer: {reason}", got, "", "", remedy)
