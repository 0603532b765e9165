"""Which tasks a run is measured on."""

from types import SimpleNamespace

import pytest

from rlvr_exp.config import compose
from rlvr_exp.config.run import Evaluation
from rlvr_exp.core.errors import InputError
from rlvr_exp.stages.shared.components import held_out_tasks
from rlvr_exp.stages.shared.held_out import selection
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


@pytest.mark.parametrize(
    ("words", "splits", "every"),
    [
        ((), ("dev",), 32),
        ((), ("train",), 0),
        (("run.select.split=train",), ("train",), 32),
        (("run.select.every_steps=5",), ("train",), 5),
    ],
)
def test_without_a_split_for_it_no_best_step_is_looked_for_unless_it_was_asked_for(words, splits, every) -> None:
    notes = []
    components = SimpleNamespace(domain=SimpleNamespace(splits=lambda: {name: ["task"] for name in splits}))
    context = SimpleNamespace(progress=lambda **told: notes.append(told["text"]))
    found = selection(components, compose(["+stage=grpo", *words]).config, context)
    assert found.every_steps == every and found.active == bool(every)
    assert len(notes) == (not every) and all("no split 'dev'" in text for text in notes)
