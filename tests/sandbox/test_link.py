"""The digest of the packages that candidates see."""

import pytest

from rlvr_exp.sandbox import link


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(link, "_packages", lambda: [str(tmp_path)])
    (tmp_path / "numpy-1.0.dist-info").mkdir()
    return tmp_path


def digest() -> str:
    link.packages_digest.cache_clear()
    try:
        return link.packages_digest()
    finally:
        link.packages_digest.cache_clear()


@pytest.mark.parametrize("name", ["regex-2.0.dist-info", "numpy-1.1.dist-info", "old-3.egg-info"])
def test_another_distribution_is_another_digest(folder, name):
    before = digest()
    (folder / name).mkdir()
    assert digest() != before


@pytest.mark.parametrize("name", ["rlvr_exp-1.0.dist-info", "numpy", "__pycache__"])
def test_what_is_no_visible_distribution_does_not_count(folder, name):
    before = digest()
    (folder / name).mkdir()
    assert digest() == before
