"""One warm judge for all tests here; without Dafny they are skipped, with the command that installs it."""

from collections.abc import Iterator

import pytest
from dafny_judge import Judge

from rlvr_exp.config.verifier import Sandbox
from rlvr_exp.core.errors import InputError
from rlvr_exp.domains.dafny.package import INSTALL
from rlvr_exp.domains.dafny.tool import find
from rlvr_exp.domains.dafny.verifier import DafnyVerifier


@pytest.fixture(scope="package")
def judge() -> Iterator[Judge]:
    try:
        find()
    except InputError:
        pytest.skip(f"NO DAFNY: its guards are not tried against the tool; {INSTALL}")
    with DafnyVerifier(Sandbox(), rlimit=3_000_000, cpu_s=40, wall_s=300, memory_mb=2048) as verifier:
        yield Judge(verifier)
