import pytest
from python_arena import HONEST, judge, make, unseen


@pytest.fixture(scope="package")
def verifier():
    with make() as verifier:
        yield verifier


@pytest.fixture
def honest_after(verifier):
    """The next candidate on the same worker passes, and no worker was lost."""
    assert judge(verifier, unseen(HONEST)).outcome == "passed"
    before = verifier._pool.pids()
    yield
    assert judge(verifier, unseen(HONEST)).outcome == "passed"
    assert verifier._pool.pids() == before
