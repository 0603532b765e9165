import pytest

pytest.importorskip("ast_grep_py")

from edit_arena import honest, make


@pytest.fixture(scope="package")
def verifier():
    with make() as verifier:
        yield verifier


@pytest.fixture(scope="package")
def by_tree():
    with make(compare="syntax") as verifier:
        yield verifier


@pytest.fixture(scope="package")
def repeated():
    with make(max_passes=20) as verifier:
        yield verifier


@pytest.fixture
def honest_after(verifier):
    """The next candidate on the same worker passes, and no worker was lost."""
    assert honest(verifier).outcome == "passed"
    before = verifier._pool.pids()
    yield
    assert honest(verifier).outcome == "passed"
    assert verifier._pool.pids() == before
