"""Folders with a manifest that shows whether they are complete: `checkpoint.json` holds the checksum of every other
file but the model card, and of itself.

`seal` closes a folder; `check_sound` finds a file that was cut short, changed, emptied, taken away, put there later or
exchanged, and names the first. `check_if_ours` lets folders of others pass, and of earlier formats, whose weights load as
ever. Never repairs.
"""

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.core.hashing import checksum, content_hash

NAME = "checkpoint.json"
CARD = "README.md"
"""The model card. It is written again when the run ends, so the manifest has no checksum of it."""
FORMAT = 3
READ_AT = {2: "bafc8b9"}
"""Earlier formats, and a commit that reads all of them."""
STEP = re.compile(r"step_(\d{6,})")
"""Name of a checkpoint's folder."""
MARKS = (NAME, "state.json", "training")
"""Files of every checkpoint of ours; one of them may be the missing file."""
OTHER = "name another checkpoint, or copy this folder here a second time"
SEAL = "seal"
"""Key of the hash over everything else in the manifest."""


def seal(folder: Path, about: Mapping[str, Any]) -> None:
    """Write the manifest: the entries of `about`, and size and SHA-256 of each file. All of it is on the disk when this
    returns."""
    files = {name: path for name, path in _files(folder).items() if name != CARD}
    manifest: dict[str, Any] = {
        "format": FORMAT,
        **about,
        "bytes": {name: path.stat().st_size for name, path in files.items()},
        "sha256": {name: checksum(path) for name, path in files.items()},
    }
    (folder / NAME).write_text(_text({**manifest, SEAL: content_hash(manifest)}), encoding="utf-8")
    for path in [*files.values(), folder / NAME, *{path.parent for path in files.values()}]:
        _to_disk(path)


class OtherFormat(InputError):
    """A sound folder of a format that this version does not read."""


def check_sound(folder: Path) -> dict[str, Any]:
    """The manifest of a sound folder.

    Raises:
        OtherFormat: another version wrote it.
        InputError: naming the first file that is not as it was written.
    """
    manifest = _check_files(folder)
    if manifest["format"] != FORMAT:
        raise OtherFormat(_other_format(folder / NAME, manifest["format"]))
    return manifest


def _check_files(folder: Path) -> dict[str, Any]:
    manifest = _manifest(folder)
    found = _files(folder)
    for name, size in manifest["bytes"].items():
        if name not in found:
            raise _wrong(folder / name, "missing")
        if found[name].stat().st_size != size:
            raise _wrong(folder / name, _length(found[name].stat().st_size, size))
        if checksum(found[name]) != manifest["sha256"][name]:
            raise _wrong(folder / name, "does not hold what was written: its checksum is another")
    if strangers := sorted(found.keys() - manifest["bytes"].keys() - {CARD}):
        raise _wrong(folder / strangers[0], "was not there when the checkpoint was written")
    return manifest


def check_if_ours(path: str | Path) -> None:
    """Every file, where the path is one of our checkpoints of any known format, or a role's folder in one: for those that
    read weights. Raises InputError."""
    folder = Path(path).resolve()
    if not marks(folder):
        if marks(folder.parent) < 2:
            return
        folder = folder.parent
    manifest = _check_files(folder)
    if manifest["format"] not in (FORMAT, *READ_AT):
        raise OtherFormat(_other_format(folder / NAME, manifest["format"]))


def marks(folder: Path) -> int:
    """How many marks of our checkpoints a folder has; 0 for any other folder."""
    placed = folder.parent.name == "checkpoints" and STEP.fullmatch(folder.name) is not None
    return placed + sum((folder / name).exists() for name in MARKS)


def _manifest(folder: Path) -> dict[str, Any]:
    path = folder / NAME
    if not path.is_file():
        raise _wrong(path, "missing")
    try:
        text = path.read_text(encoding="utf-8")
        manifest = json.loads(text)
        given = manifest.pop(SEAL)
        intact = content_hash(manifest) == given and _text({**manifest, SEAL: given}) == text
    except (ValueError, KeyError, AttributeError, TypeError) as fault:
        raise _wrong(path, "empty" if not path.stat().st_size else "damaged: it cannot be read") from fault
    if not intact:
        raise _wrong(path, "damaged: it does not hold what was written")
    return manifest


def _other_format(path: Path, found: int) -> InputProblem:
    if found in READ_AT:
        what = (
            f"is of format {found}, which commit {READ_AT[found]} of rlvr_exp reads; model.path still takes its weights"
        )
        return InputProblem(str(path), what)
    remedy = "use the version of rlvr_exp that wrote it"
    return InputProblem(str(path), "another format", str(found), str(FORMAT), "", remedy)


def _length(got: int, written: int) -> str:
    if not got:
        return f"empty: {written} bytes were written"
    return f"{'cut short' if got < written else 'too long'}: {got} bytes of {written}"


def _wrong(path: Path, what: str) -> InputError:
    return InputError(InputProblem(str(path), what, remedy=OTHER))


def _files(folder: Path) -> dict[str, Path]:
    """Every file but the manifest, by its path inside the folder, sorted."""
    there = (path for path in folder.rglob("*") if path.is_file() or path.is_symlink())
    named = {path.relative_to(folder).as_posix(): path for path in there}
    return {name: named[name] for name in sorted(named) if name != NAME}


def _text(manifest: Mapping[str, Any]) -> str:
    return json.dumps(manifest, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _to_disk(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
