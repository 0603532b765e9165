"""Which tasks a run is measured on."""

import pytest

from rlvr_exp.config.run import Evaluation
from rlvr_exp.core.errors import InputError
from rlvr_exp.stages.shared.components import held_out_tasks
from rlvr_exp.tasks.arc.domain import Arc


@pytest.fixture(scope="module")
def domain():
    return Arc()


def ids(domain, **options) -> list[str]:
    return [task.id for task in held_out_tasks(domain, Evaluation(**options))]


def test_runs_that_skip_measure_others_in_one_order(domain) -> None:
    whole = ids(domain, tasks=0)
    assert sorted(whole) == sorted(task.id for task in domain.splits()["test"])
    assert [one for skip in (0, 200, 400) for one in ids(domain, tasks=200, skip=skip)] == whole
    assert ids(domain, tasks=0, skip=490) == whole[490:]


def test_where_all_are_skipped_it_is_told(domain) -> None:
    with pytest.raises(InputError, match="evaluation.skip"):
        ids(domain, tasks=10, skip=500)
