"""The table of real runs (table_runs.py): the first cause of sick ones, and no alarm on healthy ones."""

import pytest
from kept_runs import KEPT, kept
from table_runs import NAMES

from rlvr_exp.report.diagnosis import diagnose

TABLE = sorted((KEPT / "table").glob("*.json"))


@pytest.fixture(scope="module")
def found():
    """By name: the causes that are found, the first cause first."""
    return {path.stem: [one.cause for one in diagnose(kept(path)).findings] for path in TABLE}


def test_every_kept_run_is_one_of_the_table():
    assert {path.stem for path in TABLE} <= NAMES.keys()


def test_the_first_cause_is_right(found):
    sick = {name: causes for name, causes in found.items() if NAMES[name][0]}
    assert len(sick) >= 40
    assert {name: causes for name, causes in sick.items() if not causes or causes[0] not in expected(name)} == {}


def test_no_healthy_run_raises_an_alarm(found):
    healthy = {name: causes for name, causes in found.items() if not NAMES[name][0]}
    assert len(healthy) >= 12 and not {name: causes for name, causes in healthy.items() if causes}


def expected(name: str) -> list[str]:
    return NAMES[name][0].split()
