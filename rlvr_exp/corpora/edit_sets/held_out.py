"""Decontamination: no row may share content with a task that is held out for evaluation.

Content is shared where a program of the row is one of the task's, or has one of the task's definitions of at least three
statements, whatever names, comments and layout (rlvr_exp.tasks.content); or where the row is alike to the task by
MinHash. Held in memory: the keys and signatures of the held-out tasks, and nothing of the rows.
"""

from collections.abc import Container, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from rlvr_exp.core.hashing import content_hash
from rlvr_exp.corpora.edit_sets.signature import Signature, bands_of, likeness, signature
from rlvr_exp.tasks.code_sets import load
from rlvr_exp.tasks.content import Shape, keyed_parts, text_key
from rlvr_exp.tasks.edits import rows
from rlvr_exp.tasks.edits.rows import METADATA, NormalizedRecord
from rlvr_exp.tasks.formats.python import CodeInputs

HELD_OUT = "shares content with a held-out task"
SPLITS = ("dev", "test")
"""What is held out of the output of an earlier run."""


class HeldOut:
    """The tasks of some paths, by content.

    Raises:
        InputError: a path has no set.
    """

    def __init__(self, paths: Sequence[str], similarity: float):
        self._similarity = similarity
        self._keys: dict[str, str] = {}
        self._shapes: set[Shape] = {()}
        self._bands: dict[int, list[int]] = {}
        self._names: list[str] = []
        signatures = []
        for path in paths:
            for name, language, texts in _tasks(Path(path)):
                for shape, key in _parts(texts, language):
                    self._keys[key] = name
                    self._shapes.add(shape)
                signatures.append(self._banded(name, texts))
        self._signatures = np.stack(signatures) if signatures else np.empty((0, 0), np.uint32)

    @property
    def count(self) -> int:
        """Tasks held out."""
        return len(self._names)

    @property
    def fingerprint(self) -> str:
        """Hash of what is held out; empty where nothing is."""
        return content_hash(sorted(self._keys)) if self._names else ""

    def sharing(self, record: NormalizedRecord, numbers: Signature) -> str:
        """The id of a task that a record, whose signature is given, shares content with; empty where there is none."""
        if not self._names:
            return ""
        texts = [text for text in (record.before, record.after) if text]
        for _, key in _parts(texts, record.language, self._shapes):
            if key in self._keys:
                return self._keys[key]
        near = sorted({at for band in bands_of(numbers, self._similarity) for at in self._bands.get(band, ())})
        if not near:
            return ""
        found = likeness(numbers, self._signatures[near])
        return self._names[near[int(found.argmax())]] if found.max() >= self._similarity else ""

    def _banded(self, name: str, texts: Sequence[str]) -> Signature:
        numbers = signature(*texts)
        for band in bands_of(numbers, self._similarity):
            self._bands.setdefault(band, []).append(len(self._names))
        self._names.append(name)
        return numbers


def _tasks(path: Path) -> Iterator[tuple[str, str, list[str]]]:
    """Id, language and programs of every held-out task at a path."""
    if (path / METADATA).is_file():
        for row in (row for split in SPLITS if (path / split).is_dir() for row in rows.load(path / split)):
            yield row.id, row.language, [text for text in (row.before, row.after) if text]
        return
    for task in load(path):
        before = task.inputs.before if isinstance(task.inputs, CodeInputs) else ""
        yield task.id, "python", list(dict.fromkeys(filter(None, (before, task.gold, *task.negatives))))


def _parts(texts: Iterable[str], language: str, wanted: Container[Shape] | None = None) -> Iterator[tuple[Shape, str]]:
    """Shape and key of all that texts may share with others."""
    for text in texts:
        if language == "python":
            yield from keyed_parts(text, wanted)
        else:
            yield (), text_key(text)
