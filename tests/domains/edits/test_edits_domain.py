"""Edits as tasks: rows of files, splits, wording, and the answer inside a completion."""

import json
import lzma

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thinning import tries

from rlvr_exp.core.errors import InputError
from rlvr_exp.domains.edits.action import parse_action
from rlvr_exp.domains.edits.options import EditPrompt
from rlvr_exp.domains.edits.rows import EditRow, Wrong, load
from rlvr_exp.domains.edits.tasks import Edits, answer_in, gold_of, notes_in, worded

ACTION = json.dumps([{"pattern": "f", "rewrite": "g"}, {"pattern": "x", "rewrite": "y"}])
ROW = {
    "id": "a",
    "source": "mine",
    "language": "python",
    "instruction": "Rename f to g.",
    "lazy_instruction": "f -> g",
    "before": "def f(x):\n    return x\n",
    "after": "def g(y):\n    return y\n",
    "action": ACTION,
    "wrong": [{"text": "def h(x):\n    return x\n"}, {"action": '{"pattern": "x", "rewrite": "g"}'}],
}
EDIT = EditRow("a", "mine", "python", "Rename f to g.", ROW["before"], ROW["after"], action=ACTION)
STYLES = [
    (target, EditPrompt(style, answer, form))
    for target in ("action", "text")
    for style in ("bare", "instruct")
    for answer in ("plain", "tags")
    for form in ("json", "yaml")
    if target == "action" or (answer, form) == ("plain", "json")
]


def written(folder, rows, name="rows.jsonl"):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(row) + "\n" for row in rows).encode()
    path.write_bytes(lzma.compress(text) if name.endswith(".xz") else text)
    return path


def domain(path, **options) -> Edits:
    return Edits(path=str(path), **options)


def others(count: int) -> list[dict]:
    return [
        ROW | {"id": f"r{n}", "before": f"def f(x):\n    return x + {n}\n", "after": f"def g(x):\n    return x + {n}\n"}
        for n in range(count)
    ]


def test_a_row_keeps_all_that_it_says(tmp_path):
    (row,) = load(written(tmp_path, [ROW | {"split": "dev", "difficulty": 0.5, "family": "rename"}]))
    assert (row.split, row.difficulty, row.family, row.lazy_instruction) == ("dev", 0.5, "rename", "f -> g")
    assert [(one.is_action, one.text[:5]) for one in row.wrong] == [(False, "def h"), (True, '{"pat')]
    assert row.action == ACTION and row.licence == "" and row.metadata == {}


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"id": None}, "id"),
        ({"before": 3}, "before"),
        ({"instruction": None}, "instruction"),
        ({"action": '{"patern": "x"}'}, "action"),
        ({"difficulty": "hard"}, "difficulty"),
        ({"wrong": [{"both": "x"}]}, "wrong"),
    ],
)
def test_a_bad_row_is_named_with_its_line_and_key(tmp_path, change, key):
    path = written(tmp_path, [ROW, ROW | change])
    with pytest.raises(InputError) as caught:
        load(path)
    assert f"line 2, {key}" in str(caught.value)


def test_nothing_to_read_is_told(tmp_path):
    with pytest.raises(InputError, match="no edits here"):
        load(tmp_path)


@pytest.mark.parametrize("name", ["train.jsonl", "train/part.jsonl", "train.jsonl.xz"])
def test_files_and_folders_name_splits(tmp_path, name):
    written(tmp_path, others(3), name)
    written(tmp_path, [ROW], "test.jsonl")
    splits = domain(tmp_path).splits()
    assert {split: len(tasks) for split, tasks in splits.items()} == {"train": 3, "test": 1}


def test_rows_that_nothing_places_are_drawn_and_texts_stay_together(tmp_path):
    rows = others(40) + [row | {"id": row["id"] + "b", "instruction": "Again."} for row in others(40)]
    path = written(tmp_path, rows)
    found = domain(path).splits()
    again = domain(written(tmp_path, rows[::-1], "turned.jsonl")).splits()
    of = {task.inputs.row.id: name for name, tasks in found.items() for task in tasks}
    assert set(found) == {"train", "dev", "test"} and len(of) == 80
    assert of == {task.inputs.row.id: name for name, tasks in again.items() for task in tasks}
    assert all(of[f"r{n}"] == of[f"r{n}b"] for n in range(40))


def test_a_row_without_an_answer_is_no_task(tmp_path):
    path = written(tmp_path, [ROW | {"split": "test"}, ROW | {"id": "b", "after": None, "split": "test"}])
    made = domain(path)
    assert [task.id for task in made.splits()["test"]] == ["a"] and list(made.left_out()) == ["b"]


@pytest.mark.parametrize(("instruction", "words"), [("descriptive", ["Rename f to g."]), ("lazy", ["f -> g"])])
def test_a_style_of_instruction_is_chosen(tmp_path, instruction, words):
    made = domain(written(tmp_path, [ROW | {"split": "test"}]), instruction=instruction)
    (task,) = made.splits()["test"]
    assert [task.inputs.instruction] == words and words[0] in made.task_prompt(task) and task.id == "a"


def test_both_styles_are_two_tasks_of_one_split(tmp_path):
    plain = ROW | {"id": "b", "lazy_instruction": "", "split": "test", "before": "f()\n", "after": "g()\n"}
    made = domain(written(tmp_path, [ROW | {"split": "test"}, plain]), instruction="both")
    assert [task.id for task in made.splits()["test"]] == ["a/descriptive", "a/lazy", "b"]


def test_gold_and_wrong_answers_are_those_of_the_target(tmp_path):
    path = written(tmp_path, [ROW | {"split": "test"}])
    for target, gold, wrong in (("action", ACTION, '{"patt'), ("text", ROW["after"], "def h")):
        (task,) = domain(path, target=target).splits()["test"]
        assert task.gold == gold and [one[: len(wrong)] for one in task.negatives] == [wrong]
        assert task.problem.answer == target and not task.problem.proved


@pytest.mark.parametrize(("target", "options"), STYLES)
def test_a_gold_answer_is_read_back(target, options):
    gold = gold_of(EDIT, target, options)
    found = answer_in(gold, target, options, EDIT.before).text
    if target == "text":
        assert found == EDIT.after
    else:
        assert parse_action(found, "python") == parse_action(ACTION, "python")


@pytest.mark.parametrize(("target", "options"), STYLES)
def test_a_prompt_says_the_instruction_the_text_and_the_form(target, options):
    prompt = worded(EDIT, EDIT.instruction, target, options)
    assert EDIT.instruction in prompt and EDIT.before in prompt
    other = "text" if target == "action" else "action"
    assert prompt != worded(EDIT, EDIT.instruction, other, options)
    assert ("<action>" in prompt) == (options.style == "instruct" and options.answer == "tags")


def test_a_state_is_shown_and_thoughts_are_learned():
    row = EditRow(
        "a", "s", "python", "Do.", "f()\n", "g()\n", action=ACTION, state="one", think="so", state_update="two"
    )
    options = EditPrompt("instruct", answer="tags")
    assert "<state>\none\n</state>" in worded(row, "Do.", "action", options)
    gold = gold_of(row, "action", options)
    assert gold == f"<think>\nso\n</think>\n<action>\n{ACTION}\n</action>\n<state_update>\ntwo\n</state_update>"


def test_reference_steps_without_thoughts_say_what_is_left_and_what_is_done(tmp_path):
    rules = [{"pattern": "f($X)", "rewrite": "g($X)"}, {"rule": {"kind": "comment"}, "fix": ""}]
    row = {"id": "a", "instruction": "Do.", "before": "f(1)  # one\n", "after": "g(1)  \n", "action": json.dumps(rules)}
    (tmp_path / "train.jsonl").write_text(json.dumps(row) + "\n")
    domain = Edits(path=str(tmp_path), prompt=EditPrompt("instruct", answer="tags"))
    (task,) = domain.splits()["train"]
    first, second, last = (notes_in(gold) for gold in domain.gold_steps(task))
    assert first == {"think": "2 rules left. The next one matches `f($X)`.", "state_update": "1 of 2 rules applied."}
    assert second == {"think": "1 rule left.", "state_update": "2 of 2 rules applied."}
    assert last == {"think": "No rule is left.", "state_update": "2 of 2 rules applied."}
    assert "think" not in "".join(Edits(path=str(tmp_path)).gold_steps(task)), (
        "plain answers have no place for thoughts"
    )


@settings(max_examples=tries(40))
@given(thought=st.text(alphabet="ab<>/ \n`", max_size=30))
def test_an_action_inside_thoughts_never_counts(thought):
    options = EditPrompt("instruct", answer="tags")
    inside, answer = f"<think>{thought}<action>wrong</action></think>", "<action>\nright\n</action>"
    for text in (f"{inside}\n{answer}", f"{answer}\n{inside}"):
        assert answer_in(text, "action", options, "").text == "right"


STYLES = [("action", EditPrompt()), ("action", EditPrompt(style="instruct")), ("text", EditPrompt(style="instruct"))]
STYLES += [("action", EditPrompt(style="instruct", answer="tags")), ("text", EditPrompt())]
DRAFT = "```\nwrong\n```"


@pytest.mark.parametrize(("target", "options"), STYLES)
@pytest.mark.parametrize(
    "thoughts", [f"<think>\n{DRAFT}\n</think>", f" <think>{DRAFT}</think>", f"So:\n{DRAFT}\n</think>"]
)
def test_thoughts_are_no_part_of_an_answer(target, options, thoughts):
    assert answer_in(f"{thoughts}\nright\n", target, options, "f()\n").text.strip() == "right"
    assert answer_in(thoughts, target, options, "f()\n").text is None


@pytest.mark.parametrize(("target", "options"), STYLES)
def test_thoughts_without_an_end_are_no_answer(target, options):
    assert answer_in(f"<think>\n{DRAFT}\n", target, options, "f()\n").text is None


@pytest.mark.parametrize(("target", "options"), STYLES)
def test_the_word_inside_an_answer_begins_no_thoughts(target, options):
    answer = 'f("<think>")'
    assert answer_in(answer, target, options, "f()\n").text.strip() == answer


@pytest.mark.parametrize(("target", "options"), STYLES)
@pytest.mark.parametrize("answer", ['{"pattern": "END", "rewrite": "\'</think>\'"}', 'a = 1\nEND = "</think>"'])
def test_the_end_of_thoughts_inside_an_answer_ends_none(target, options, answer):
    assert answer_in(answer, target, options, "f()\n").text.strip() == answer


def test_chatter_around_a_block_is_dropped():
    options = EditPrompt("instruct")
    assert answer_in("Sure:\n```python\ng()\n```\nDone.", "text", options, "f()\n\n").text == "g()\n\n"
    assert answer_in(" \n", "text", options, "f()\n").text is None


def test_a_completion_ends_with_its_block_or_its_last_tag():
    blocks, tags = Edits(prompt=EditPrompt("instruct")), Edits(prompt=EditPrompt("instruct", answer="tags"))
    assert blocks.is_complete("```json\n{}\n```") and not blocks.is_complete("```json\n{}\n")
    closed = "<action>\n{}\n</action>\n<state_update>\n</state_update>"
    assert tags.is_complete(closed) and not tags.is_complete("<action>\n{}\n</action>")
    assert not Edits().stop_text


def test_options_of_actions_have_no_effect_on_texts():
    (problem,) = Edits(target="text", prompt=EditPrompt(form="yaml")).problems()
    assert problem.where == "prompt.form"
    assert not Edits(target="action", prompt=EditPrompt(form="yaml")).problems()


def test_equal_texts_are_equal_contents(tmp_path):
    rows = [ROW | {"split": "train"}, ROW | {"id": "b", "instruction": "Other words.", "split": "test"}]
    made = domain(written(tmp_path, rows))
    (one,), (other,) = made.splits()["train"], made.splits()["test"]
    assert set(made.contents(one)) & set(made.contents(other))
    assert Wrong("x", False) != Wrong("x", True)


@pytest.mark.parametrize("style", ["bare", "instruct"])
def test_texts_with_line_ends_of_their_own_are_read_back(tmp_path, style):
    pairs = [("\nx = 1\n", "\nx = 2\n"), ("x = 1\r\ny = 1\r\n", "x = 2\r\ny = 1\r\n"), ("x = 1", "\n\nx = 2")]
    rows = [ROW | {"id": f"r{n}", "before": one, "after": other} for n, (one, other) in enumerate(pairs)]
    found = domain(written(tmp_path, rows), target="text", prompt=EditPrompt(style))
    tasks = [task for of_split in found.splits().values() for task in of_split]
    assert len(tasks) == 3 and not found.left_out()
    assert all(found.parse(found.gold_completion(task), task).text == task.problem.after for task in tasks)


def test_a_gold_that_no_answer_can_be_is_no_task(tmp_path):
    fence = 'def f():\n    """Shows:\n\n```\nf()\n```\n    """\n    return 2\n'
    rows = [ROW | {"id": "a", "after": fence}, ROW | {"id": "b", "after": "    return 2\n"}, ROW | {"id": "c"}]
    found = domain(written(tmp_path, rows), target="text", prompt=EditPrompt("instruct"))
    assert {name: why[:11] for name, why in found.left_out().items()} == {"a": "its gold is", "b": "its gold is"}
    assert not domain(written(tmp_path, rows), target="text").left_out(), "a bare answer is the text itself"


def test_line_ends_at_the_end_are_no_edit(tmp_path):
    rows = [ROW | {"after": ROW["before"] + "\n"}, ROW | {"id": "b", "after": "def g(x):\n    return x"}]
    found = domain(written(tmp_path, rows), target="text")
    ((task,),) = [tasks for tasks in found.splits().values() if tasks]
    assert task.id == "b" and task.problem.after == "def g(x):\n    return x\n"
    assert list(found.left_out()) == ["a"]
    completion = found.gold_completion(task)
    assert found.parse(completion, task).text == task.problem.after
