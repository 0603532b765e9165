"""Settings of every test: no network, a cache of its own, and one thread a process, since several share few cores.

Set before any test imports torch, and in the environment so that child processes have it too.
"""

import atexit
import gc
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path

import pytest
import unit_tier
from hypothesis import settings
from thinning import EVERY

CACHE = tempfile.mkdtemp(prefix="cache-of-tests-")
"""Verdicts of tests stay out of the user's cache."""
MANY = 6
"""A test with more cases has many."""
WORKER = "PYTEST_XDIST_WORKER" in os.environ
atexit.register(shutil.rmtree, CACHE, ignore_errors=True)
os.environ.update(
    XDG_CACHE_HOME=CACHE,
    OMP_NUM_THREADS="1",
    MKL_NUM_THREADS="1",
    TOKENIZERS_PARALLELISM="false",
    HF_HUB_OFFLINE="1",
    HF_DATASETS_OFFLINE="1",
    TRANSFORMERS_OFFLINE="1",
    WANDB_MODE="offline",
    PIP_NO_INDEX="1",
)

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # As shells start what runs in the background.
    signal.signal(signal.SIGINT, signal.default_int_handler)
gc.disable()  # Until all tests are found: nothing of what is imported is garbage.
chosen = settings.get_profile(settings.get_current_profile_name())  # Hypothesis' own choice for CI stays.
settings.register_profile("unhurried", chosen, deadline=None, max_examples=100 if EVERY else 15)
settings.load_profile("unhurried")  # A busy machine is no fault of the code.


def pytest_report_header() -> str:
    """Where this commit's runs of tests/exact die: workers print nothing."""
    sys.path.append(str(Path(__file__).parent / "exact"))
    import drawn

    return drawn.told()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--tier", choices=unit_tier.TIERS, default="all", help="which tests run; see tests/unit_tier.py")


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Refuse heavy work from here on. Under xdist, the workers run the tests and the main process starts them."""
    tier = session.config.option.tier
    if tier != "all" and (absent := unit_tier.absent()):
        raise pytest.UsageError(f"tests/unit_tier.py: no such file: {', '.join(absent)}")
    if tier == "unit" and (WORKER or not session.config.getoption("numprocesses", None)):
        session.config.pluginmanager.register(unit_tier)
        unit_tier.refuse_heavy_work()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """The unit tier does not import the files of the other tests."""
    left_out = config.option.tier == "unit" and collection_path.is_file() and not unit_tier.holds(collection_path)
    return True if left_out else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run the tests of the tier. In the default suite, run the first and the last case of a test, or one of ten if it has
    many."""
    tier = unit_tier.chosen(config.option.tier, items)
    if len(tier) < len(items):
        kept = {id(item) for item in tier}
        config.hook.pytest_deselected(items=[item for item in items if id(item) not in kept])
        items[:] = tier
    asked = [Path(word).resolve() for word in config.args] != [Path(__file__).parent]
    if EVERY or asked or config.option.keyword or "not slow" not in config.option.markexpr:
        return
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    kept = {id(item) for each in cases.values() for item in each[:: 10 if len(each) > MANY else len(each) - 1 or 1]}
    config.hook.pytest_deselected(items=[item for item in items if id(item) not in kept])
    items[:] = [item for item in items if id(item) in kept]


def pytest_collection_finish() -> None:
    """Transformers and Accelerate collect garbage at each start and end of training: what was imported and the thousands
    of tests that were found need not be scanned each time."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session")
def dafny():
    """The Dafny of this machine; without it the tests that need it are skipped, with the command that installs it."""
    from rlvr_exp.core.errors import InputError
    from rlvr_exp.domains.dafny.package import INSTALL
    from rlvr_exp.domains.dafny.tool import find

    try:
        return find()
    except InputError:
        pytest.skip(f"NO DAFNY: nothing is proved here; {INSTALL}")
