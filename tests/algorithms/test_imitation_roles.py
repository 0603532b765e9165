"""Both roles of Dafny are imitated in the same way: the answer and its end are learned, the prompt and the pads are not."""

import json

import pytest
import torch

from rlvr_exp.algorithms.gradients import NonFiniteGuard
from rlvr_exp.algorithms.sft import IGNORED, ImitationTrainer
from rlvr_exp.config.compose import compose
from rlvr_exp.config.load import build
from rlvr_exp.models.policy import load_policy
from rlvr_exp.stages.sft import batch_plan, trainer_arguments

ROWS = [
    {
        "id": f"m{number}",
        "header": f"method M{number}(a: int) returns (r: int)\n",
        "spec": "  requires a > 0\n" * (number % 2) + f"  ensures r == a + {number}\n",
        "body": f"{{\n  r := a + {number};\n}}",
        "annotated_body": f"{{\n  r := a + {number};\n  assert r == a + {number};\n}}",
    }
    for number in range(4)
]
WORDS = ["+stage=sft", "data=dafny", "model=tiny", "algorithm.batch_size=4", "algorithm.max_sequence_tokens=512"]


@pytest.fixture(scope="module")
def policy():
    return load_policy(compose(["+stage=sft"]).config.model, 0)


@pytest.fixture(scope="module")
def batches(policy, tmp_path_factory):
    """By role: its tasks and a batch of them as the model's input."""
    folder = tmp_path_factory.mktemp("dafny")
    (folder / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))

    def made(role: str):
        words = [*WORDS, f"data.path={folder}", f"data.role={role}", "data.dev_fraction=0", "data.test_fraction=0"]
        config = compose(words).config
        domain, algorithm = build(config.data), build(config.algorithm)
        tasks = domain.splits()["train"]
        rows = algorithm.examples(policy, domain, tasks)
        assert len(rows) == len(tasks) and not rows.left_out
        arguments = trainer_arguments(policy, config, algorithm, batch_plan(config), folder / role)
        descent = torch.optim.SGD(policy.model.parameters(), lr=0.1)
        trainer = ImitationTrainer(policy, arguments, descent, rows.dataset, rows.dataset, NonFiniteGuard(), 512)
        return domain, tasks, rows, trainer.data_collator(list(rows))

    return {role: made(role) for role in ("writer", "annotator", "both")}


@pytest.mark.parametrize("role", ["writer", "annotator", "both"])
def test_only_the_answer_and_its_end_are_learned(role, policy, batches):
    domain, tasks, _, batch = batches[role]
    for task, ids, labels in zip(tasks, batch["input_ids"], batch["labels"], strict=True):
        learned = ids[labels != IGNORED].tolist()
        assert learned == labels[labels != IGNORED].tolist() and learned[-1] == policy.eos_ids[0]
        assert policy.tokenizer.decode(learned[:-1]) == task.gold == task.inputs.gold
        first = int((labels != IGNORED).nonzero()[0])
        assert ids[:first].tolist() == policy.encode_prompt(domain.task_prompt(task))


@pytest.mark.parametrize("role", ["writer", "annotator", "both"])
def test_pads_stand_right_and_are_neither_seen_nor_learned(role, policy, batches):
    _, _, rows, batch = batches[role]
    lengths = [len(row["input_ids"]) for row in rows]
    assert len(set(lengths)) > 1, "rows of several lengths"
    for length, ids, labels, mask in zip(
        lengths, batch["input_ids"], batch["labels"], batch["attention_mask"], strict=True
    ):
        assert mask.tolist() == [1] * length + [0] * (len(ids) - length)
        assert set(ids[length:].tolist()) <= {policy.pad_id} and set(labels[length:].tolist()) <= {IGNORED}


def test_a_mixture_learns_each_example_in_both_roles(batches):
    _, tasks, rows, _ = batches["both"]
    alone = [list(row["input_ids"]) for role in ("writer", "annotator") for row in batches[role][2]]
    assert sorted(list(row["input_ids"]) for row in rows) == sorted(alone)
    assert len({task.id for task in tasks}) == 2 * len(ROWS)
