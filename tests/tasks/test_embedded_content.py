"""A split's fingerprint from its corpus' manifest: another for other tasks, none where the file is another."""

import shutil

import pytest

from rlvr_exp.domains.arc.tasks import EMBEDDED, Arc
from rlvr_exp.tasks.embedded import embedded_content


def test_splits_limits_and_seeds_differ():
    found = [Arc().fingerprint("dev"), Arc().fingerprint("test"), Arc(limit=5).fingerprint("dev")]
    found += [Arc(limit=5, seed=1).fingerprint("dev"), Arc(limit=6).fingerprint("dev")]
    assert len(set(found)) == 5 and Arc(seed=1).fingerprint("dev") == found[0]


@pytest.mark.slow
def test_a_changed_file_is_hashed_by_its_tasks(tmp_path, monkeypatch):
    corpus = tmp_path / "arc"
    shutil.copytree(EMBEDDED, corpus)
    shutil.copy(EMBEDDED.with_name("arc.manifest.json"), tmp_path)
    assert embedded_content(corpus, "dev") == embedded_content(EMBEDDED, "dev") is not None
    shutil.copy(corpus / "test.jsonl.xz", corpus / "dev.jsonl.xz")
    embedded_content.cache_clear()
    assert embedded_content(corpus, "dev") is None and embedded_content(corpus, "hidden") is None
    monkeypatch.setattr("rlvr_exp.domains.arc.tasks.EMBEDDED", corpus)
    assert Arc().fingerprint("dev") != Arc().fingerprint("test") and len(Arc().fingerprint("dev")) == 32
