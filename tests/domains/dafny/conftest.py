"""One warm judge for all tests of this folder that need no options of their own."""

from collections.abc import Iterator

import pytest
from dafny_judge import Judge, of_dafny

from rlvr_exp.domains.dafny.tool import Tool


@pytest.fixture(scope="session")
def judge(dafny: Tool) -> Iterator[Judge]:
    with of_dafny() as verifier:
        yield Judge(verifier)
