"""One finished run with its report for all tests of pages."""

import shutil

import pytest
from report_pages import report, whole_run


@pytest.fixture(scope="session")
def kept(tmp_path_factory):
    """A finished run with its report, which no test changes."""
    directory = whole_run(tmp_path_factory.mktemp("run") / "whole")
    return directory, report(directory)


@pytest.fixture
def whole(kept, tmp_path):
    """A copy of it."""
    return shutil.copytree(kept[0], tmp_path / "whole")


@pytest.fixture
def page(kept):
    return kept[1]
