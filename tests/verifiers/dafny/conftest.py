"""The Dafny of this machine; without it the tests that need it are skipped, with the command that installs it."""

import pytest

from rlvr_exp.config.verifier import INSTALL_DAFNY
from rlvr_exp.core.errors import InputError
from rlvr_exp.verifiers.dafny.tool import Tool, find


@pytest.fixture(scope="package")
def dafny() -> Tool:
    try:
        return find()
    except InputError:
        pytest.skip(f"NO DAFNY: nothing is proved here; {INSTALL_DAFNY}")


@pytest.fixture(scope="package")
def warm_dafny(dafny: Tool) -> Tool:
    if not dafny.library:
        pytest.skip("this Dafny cannot be kept warm: not 2.3, or no mono compiler beside it")
    return dafny
