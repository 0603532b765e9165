"""The Dafny domain: each role's prompts and problems, splits, shots, what is left out."""

from dataclasses import replace

import pytest
from dafny_samples import EXAMPLES, GROWS, MAX, SUM, named, write_rows

from rlvr_exp.core.errors import InputError
from rlvr_exp.domains.dafny.options import DafnyPrompt as Wording
from rlvr_exp.domains.dafny.problem import DafnyProblem
from rlvr_exp.domains.dafny.tasks import DafnyDomain
from rlvr_exp.domains.dafny.usable import fault_of


@pytest.fixture
def folder(tmp_path):
    copies = tuple(named(one, f"{one.id}{n}") for n in range(3) for one in EXAMPLES)
    return str(write_rows(tmp_path / "data", train=copies, dev=(SUM,), test=(MAX,), test_unseen=(GROWS,)))


def task_of(folder, role, name):
    domain = DafnyDomain(folder, role=role)
    return domain, next(task for tasks in domain.splits().values() for task in tasks if task.id == name)


def test_a_writer_is_judged_against_the_program_with_a_hole(folder) -> None:
    domain, task = task_of(folder, "writer", "sum")
    assert task.problem == DafnyProblem(SUM.program(None), protect="specification") and task.gold == SUM.body
    assert domain.parse(task.gold, task).text == SUM.gold, "the gold's annotations are grafted on"
    assert (task.family, task.negatives) == ("loop", ())


def test_an_annotator_is_judged_against_the_golds_code(folder) -> None:
    domain, task = task_of(folder, "annotator", "sum")
    assert task.problem == DafnyProblem(SUM.program(SUM.body), protect="program") and task.gold == SUM.annotated_body
    assert domain.parse(SUM.body, task).text == SUM.program(SUM.body), "nothing is added to what it says"
    assert task.negatives == SUM.mutants


def test_an_answer_without_a_body_is_no_candidate(folder) -> None:
    for role in ("writer", "annotator"):
        domain, task = task_of(folder, role, "sum")
        assert domain.parse("I would rather not.", task).text is None


def test_splits_are_those_of_the_files(folder) -> None:
    splits = DafnyDomain(folder, role="annotator").splits()
    assert {name: len(tasks) for name, tasks in splits.items()} == {"train": 9, "dev": 1, "test": 1, "test_unseen": 1}


def test_both_roles_are_two_tasks_of_an_example_and_a_lemma_has_no_code_to_write(folder) -> None:
    domain = DafnyDomain(folder, role="both")
    assert [task.id for task in domain.splits()["dev"]] == ["sum/writer", "sum/annotator"]
    assert [task.id for task in domain.splits()["test_unseen"]] == ["grows/annotator"]
    assert "no code to write" in domain.left_out()["grows/writer"]
    assert {domain.task_prompt(task)[0] for task in domain.splits()["dev"]} == {"W", "A"}


def test_tasks_of_one_role_are_known_by_their_examples(folder) -> None:
    ids = [[task.id for task in DafnyDomain(folder, role=role).splits()["test"]] for role in ("writer", "annotator")]
    assert ids == [["max"], ["max"]]


def test_the_limit_is_a_seeded_choice_of_examples_alike_for_both_roles(folder) -> None:
    def first(role, **options):
        return [task.id for task in DafnyDomain(folder, role=role, limit=2, **options).splits()["train"]]

    assert len(first("annotator")) == 2 and len({tuple(first("annotator", seed=seed)) for seed in range(9)}) > 1
    assert {one[:3] for one in first("both")} <= {one[:3] for one in first("annotator")}


def test_data_without_splits_are_drawn_with_near_duplicates_on_one_side(tmp_path) -> None:
    both = (MAX, named(MAX, "max again"), SUM, named(SUM, "sum again"), GROWS)
    splits = DafnyDomain(
        str(write_rows(tmp_path / "all", programs=both)), role="annotator", dev_fraction=0.3, test_fraction=0.3
    ).splits()
    where = {task.id: name for name, tasks in splits.items() for task in tasks}
    assert set(where) == {one.id for one in both} and {"train", "test"} <= set(splits)
    assert where["max"] == where["max again"] and where["sum"] == where["sum again"]


def test_what_cannot_be_used_is_left_out_and_named(tmp_path) -> None:
    broken = replace(MAX, id="broken", spec="  ensures ((\n")
    domain = DafnyDomain(
        str(write_rows(tmp_path / "bad", train=(MAX, broken))), role="annotator", dev_fraction=0, test_fraction=0
    )
    assert [task.id for task in domain.splits()["train"]] == ["max"] and "broken" in domain.left_out()


def test_shots_are_others_of_the_same_role(folder) -> None:
    domain = DafnyDomain(folder, role="annotator", prompt=Wording(shots=2))
    task = domain.splits()["test"][0]
    text = domain.task_prompt(task)
    assert text.count("A\n") == 3 and text.endswith(DafnyDomain(folder, role="annotator").task_prompt(task))
    assert text == domain.task_prompt(task) and "W\n" not in text


def test_more_shots_than_there_are_is_an_error(folder) -> None:
    domain = DafnyDomain(folder, role="annotator", prompt=Wording(shots=99))
    with pytest.raises(InputError, match="shots"):
        domain.task_prompt(domain.splits()["test"][0])


def test_a_context_comes_from_a_file(folder, tmp_path) -> None:
    (tmp_path / "notes.txt").write_text("// Dafny 2.3\n")
    domain = DafnyDomain(folder, role="writer", prompt=Wording(context_file=str(tmp_path / "notes.txt")))
    assert domain.task_prompt(domain.splits()["test"][0]).startswith("W\n// Dafny 2.3\n")
    with pytest.raises(InputError, match="context_file"):
        DafnyDomain(folder, prompt=Wording(context_file=str(tmp_path / "none.txt")))


def test_golds_are_worded_as_they_are_asked_for(folder) -> None:
    domain = DafnyDomain(folder, role="writer", prompt=Wording("instruct"))
    task = domain.splits()["dev"][0]
    assert task.gold == f"```dafny\n{SUM.body}\n```" and domain.parse(task.gold, task).text == SUM.gold
    assert domain.is_complete(task.gold) and not domain.is_complete(SUM.body)


def test_a_bare_answer_is_finished_with_its_brace(folder) -> None:
    domain = DafnyDomain(folder, role="writer")
    assert (
        domain.is_complete(SUM.body) and not domain.is_complete(SUM.body[:-1]) and SUM.body.endswith(domain.stop_text)
    )


def test_the_fingerprint_tells_roles_apart(folder) -> None:
    assert DafnyDomain(folder, role="writer").fingerprint("dev") != DafnyDomain(folder, role="annotator").fingerprint(
        "dev"
    )


def test_the_embedded_corpus_is_there_without_a_path() -> None:
    domain = DafnyDomain(role="both", limit=6)
    splits = domain.splits()
    assert {name: len(tasks) for name, tasks in splits.items()} == dict.fromkeys(
        ("train", "practice", "dev", "test", "test_unseen"), 6
    )
    for task in (task for tasks in splits.values() for task in tasks):
        assert fault_of(task.inputs.example, task.inputs.role) == ""
        assert domain.parse(task.gold, task).text == task.inputs.example.gold
        assert domain.is_complete(task.gold) and 0 <= task.difficulty <= 1


def test_answers_are_compared_by_tokens_and_tasks_grouped_by_role_and_length(folder) -> None:
    domain, task = task_of(folder, "writer", "sum")
    same, gold = domain.similarity_pair(SUM.body.replace("\n", "  // so\n "), task)
    assert same == gold and domain.similarity_pair("no body here", task)[0] == "no body here"
    assert domain.strata(task) == {"role": "writer", "length": "064 to 127"}


def refuses_even(parts):
    return ["the program is not proved: ..." if part.example.id[-1] in "02" else "" for part in parts]


def test_a_check_of_golds_leaves_out_what_it_refuses_and_others_take_their_place(folder) -> None:
    whole = DafnyDomain(folder, role="annotator")
    assert len(whole.splits()["train"]) == 9
    checked = whole.checked(refuses_even)
    assert [task.id for task in checked.splits()["train"]] == ["max1", "sum1", "grows1"]
    assert checked.left_out()["max0"].startswith("the program is not proved") and "max0" not in whole.left_out()
    limited = DafnyDomain(folder, role="annotator", limit=2).checked(refuses_even)
    assert len(limited.splits()["train"]) == 2 and {task.id[-1] for task in limited.splits()["train"]} == {"1"}


def test_the_same_data_have_the_same_fingerprint_whether_or_not_golds_are_checked(folder) -> None:
    whole = DafnyDomain(folder, role="annotator")
    checked = whole.checked(refuses_even)
    assert len(checked.splits()["train"]) < len(whole.splits()["train"])
    assert {name: checked.fingerprint(name) for name in checked.splits()} == {
        name: whole.fingerprint(name) for name in whole.splits()
    }


def test_shots_are_of_checked_golds(folder) -> None:
    checked = DafnyDomain(folder, role="annotator", prompt=Wording(shots=2)).checked(refuses_even)
    prompt = checked.task_prompt(checked.splits()["train"][0])
    assert prompt
    assert all(part.example.id.endswith("1") for parts in checked._solved.values() for part in parts)
