"""Which tasks a run is measured on."""

from types import SimpleNamespace

import pytest
from completions import completion

from rlvr_exp.config.compose import compose
from rlvr_exp.config.run import Evaluation
from rlvr_exp.core.errors import InputError
from rlvr_exp.domains.arc.tasks import Arc
from rlvr_exp.records.rollout_files import EvalSample
from rlvr_exp.stages.shared.components import held_out_tasks
from rlvr_exp.stages.shared.held_out import _note_too_long, selection


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
        ((), ("dev",), 36),
        ((), ("train",), 0),
        (("run.select.split=train",), ("train",), 36),
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


def test_prompts_that_are_too_long_are_told_in_one_line_that_counts_tasks() -> None:
    notes = []
    context = SimpleNamespace(progress=lambda **told: notes.append(told["text"]))
    long = [("failed", "prompt_too_long"), ("failed", "wrong_answer"), ("passed", None)]
    config = compose(["+stage=evaluate", "model.max_prompt_tokens=60"]).config
    answers = [
        EvalSample(completion(f"t{i}", *verdict, sample=sample), "sampled", "")
        for i, verdict in enumerate(long)
        for sample in range(8)
    ]
    _note_too_long(answers, config, context)
    _note_too_long(answers[8:], config, context)
    assert notes == [
        "1 of 3 held-out prompts are longer than the policy takes (model.max_prompt_tokens=60): "
        "they count as failures (prompt_too_long)"
    ]
