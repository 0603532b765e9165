"""Verifiers that the tests of edits share, one of each way of comparing."""

from collections.abc import Iterator

import pytest

from rlvr_exp.config.verifier import Sandbox


def verifier_of(**options: object) -> Iterator[object]:
    pytest.importorskip("ast_grep_py")
    from rlvr_exp.domains.edits.verifier import AstGrep  # Not at the top: it takes seconds.

    with AstGrep(Sandbox(workers=1), **options) as verifier:
        yield verifier


@pytest.fixture(scope="session")
def exact() -> Iterator[object]:
    yield from verifier_of()


@pytest.fixture(scope="session")
def loose() -> Iterator[object]:
    yield from verifier_of(compare="text_loose")


@pytest.fixture(scope="session")
def by_tree() -> Iterator[object]:
    yield from verifier_of(compare="syntax")
