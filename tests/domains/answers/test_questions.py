"""Questions that need execution: each has one answer, and demonstrations of calls learn no result."""

import subprocess
import sys
from types import SimpleNamespace

import pytest
from own_models import own_tokenizer

from rlvr_exp.algorithms.sft import IGNORED, Examples, example
from rlvr_exp.config.verifier import Sandbox
from rlvr_exp.core.errors import InputError
from rlvr_exp.domains.answers.tasks import FAMILIES, SIZES, Answers
from rlvr_exp.models.policy import Policy
from rlvr_exp.tasks.tools import read_call
from rlvr_exp.verifiers.base import Request
from rlvr_exp.verifiers.python_io import PythonIO


def test_splits_are_reproducible_and_apart():
    first, second = Answers().splits(), Answers().splits()
    assert first == second and {name: len(tasks) for name, tasks in first.items()} == SIZES
    questions = [task.inputs[0] for tasks in first.values() for task in tasks]
    assert len({*questions}) == 16600 and {task.family for task in first["test"]} == {*FAMILIES}


def test_a_path_is_refused():
    with pytest.raises(InputError, match="generated"):
        Answers(path="x").splits()


def test_every_demonstrated_call_prints_the_answer():
    domain = Answers(limit=80, called=1.0)
    tasks = domain.splits()["train"]
    calls = [read_call(domain.gold_turns(task)[0][0], domain.tools) for task in tasks]
    printed = subprocess.run(
        [sys.executable, "-c", "\n".join(one.argument for one in calls)], capture_output=True, text=True
    )
    assert (
        printed.stdout.splitlines()
        == [task.gold for task in tasks]
        == [domain.gold_turns(task)[0][1] for task in tasks]
    )


def test_the_share_of_demonstrations_that_call():
    domain = Answers(limit=400, called=0.3)
    assert 80 < sum(bool(domain.gold_turns(task)) for task in domain.splits()["train"]) < 160


@pytest.mark.heavy
def test_the_bare_answer_alone_passes():
    domain, verifier = Answers(limit=40), PythonIO(Sandbox(workers=1))
    for task in domain.splits()["train"][:8]:
        wrong = [f"{task.gold}0", f"print({task.inputs[1]})", task.inputs[1], "", "9" * 300]
        texts = [task.gold, f"\n{task.gold} ", f"<think>\n1\n</think>\n{task.gold}", *wrong]
        verdicts = verifier.verify([Request(task.problem, domain.parse(text, task)) for text in texts])
        assert [one.outcome for one in verdicts] == ["passed"] * 3 + ["failed"] * 5
    verifier.close()


def test_imitation_learns_calls_and_answers_and_no_result():
    tokenizer, domain = own_tokenizer(["print(1)"] * 9, 300, None), Answers(limit=40, called=1.0)
    policy = Policy(SimpleNamespace(), tokenizer, (tokenizer.eos_token_id,), chat=False, thinking=False, max_tokens=999)
    task = domain.splits()["train"][0]
    [(call, result)] = domain.gold_turns(task)
    one = example(policy, domain.task_prompt(task), task.gold, domain.tools, [(call, result)])
    learned = tokenizer.decode([token for token in one["labels"] if token != IGNORED])
    assert learned == f"{call}{task.gold}{tokenizer.eos_token}"
    whole = tokenizer.decode(one["input_ids"])
    assert whole.endswith(f"{call}\n<tool_response>\n{result}\n</tool_response>\n{task.gold}{tokenizer.eos_token}")
    assert len(Examples(policy, domain, domain.splits()["train"], 512)) == 40
