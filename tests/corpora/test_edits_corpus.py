"""The generator of edits: every family gives edits that its action makes, and wrong answers that do not."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thinning import thinned, tries

pytest.importorskip("ast_grep_py")

from rlvr_exp.config.verifier import Sandbox
from rlvr_exp.corpora.edits import build, mixture
from rlvr_exp.corpora.edits.build import build_splits, draft_of, families, fault_of, holds
from rlvr_exp.corpora.edits.catalogue import FAMILIES
from rlvr_exp.corpora.edits.compose import COMPOSITIONS
from rlvr_exp.corpora.edits.program import applied, wrong_answers
from rlvr_exp.corpora.splits import text_of
from rlvr_exp.tasks.base import Candidate
from rlvr_exp.tasks.formats.ast_grep import AstGrepProblem
from rlvr_exp.verifiers.ast_grep import AstGrep
from rlvr_exp.verifiers.base import Request

SMALL = {"test": 120, "test_unseen": 40, "train": 150}
EVERY = [*FAMILIES, *COMPOSITIONS]


def first(family: str):
    drawn = (draft_of(family, "tests", number) for number in range(40))
    return next(edit for edit in drawn if not fault_of(edit))


def usable(family: str, tries: int = 40):
    edits = (draft_of(family, "tests", number) for number in range(tries))
    return [edit for edit in edits if not fault_of(edit)]


def test_there_are_enough_families_of_every_kind():
    assert len(FAMILIES) >= 40 and len(mixture.UNSEEN_FAMILIES) >= 8
    assert set(mixture.UNSEEN_FAMILIES) < set(FAMILIES)
    assert not set(mixture.UNSEEN_FAMILIES) & set(mixture.PRACTISED_FAMILIES)
    imitated, practised = families("practice")
    assert families("train") == [imitated] and families("test") == families("dev") == [imitated, practised]
    assert not {*imitated, *practised} & set(*families("test_unseen")) and len(imitated) >= 40
    assert {*imitated, *practised, *mixture.UNSEEN_FAMILIES} == set(FAMILIES)


@pytest.mark.parametrize("family", thinned(EVERY))
def test_a_family_gives_many_different_edits(family):
    found = usable(family)
    assert len(found) > 10 and len({edit.before for edit in found}) == len(found)
    assert len({edit.draft.descriptive for edit in found}) > 1


@settings(max_examples=tries(60), deadline=None)
@given(family=st.sampled_from(EVERY), number=st.integers(0, 10**6))
def test_an_edit_is_its_action_and_no_wrong_answer_is(family, number):
    edit = draft_of(family, "property", number)
    if fault_of(edit):
        return
    assert applied(edit.before, edit.action) == edit.after != edit.before
    assert 1 <= len(edit.draft.rules) <= mixture.MOST_RULES
    wrong = wrong_answers(edit)
    texts = [one["text"] if "text" in one else applied(edit.before, one["action"]) for one in wrong]
    assert wrong and edit.after not in texts
    assert not edit.draft.tests or not any(holds(text, edit.draft.tests) for text in texts if text is not None)


def test_an_instruction_that_quotes_code_has_a_rule_of_that_code(monkeypatch):
    monkeypatch.setattr(mixture, "QUOTED_SHARE", 1.0)
    for edit in usable("equals_none"):
        (rule,) = edit.draft.rules
        assert f"`{rule['pattern']}` by `{rule['rewrite']}`" in edit.draft.descriptive
        assert rule["pattern"] in edit.before and rule["rewrite"] in edit.after and "$" not in rule["pattern"]
    assert all("Replace" not in edit.draft.descriptive for edit in usable("join_strings")), "of several lines"
    monkeypatch.setattr(mixture, "QUOTED_SHARE", 0.0)
    assert all("Replace" not in edit.draft.descriptive for edit in usable("equals_none"))


@pytest.mark.parametrize("family", thinned(name for name in FAMILIES if first(name).draft.tests))
def test_tests_tell_the_programs_apart(family):
    for edit in usable(family, 12):
        assert holds(edit.after, edit.draft.tests) and not holds(edit.before, edit.draft.tests)


def test_the_verifier_itself_passes_golds_and_refuses_what_is_wrong():
    edits = [first(family) for family in EVERY]
    wanted = []
    with AstGrep(Sandbox(workers=2)) as verifier:
        for edit in edits:
            problem = AstGrepProblem("python", edit.before, edit.after)
            wanted.append(("passed", verifier.submit(Request(problem, Candidate(edit.action)))))
            for one in wrong_answers(edit):
                if "action" in one:
                    wanted.append(("failed", verifier.submit(Request(problem, Candidate(one["action"])))))
        assert all(future.result(timeout=300).outcome == outcome for outcome, future in wanted)


def test_the_test_files_decide_in_the_verifier_too():
    edits = [edit for family in FAMILIES if (edit := first(family)).draft.tests]
    with AstGrep(Sandbox(workers=2)) as verifier:
        for text, outcome in (("after", "passed"), ("before", "failed")):
            requests = [
                Request(
                    AstGrepProblem("python", edit.before, "", edit.tests(), answer="text"),
                    Candidate(getattr(edit, text)),
                )
                for edit in edits
            ]
            found = [verifier.submit(request) for request in requests]
            assert [future.result(timeout=300).outcome for future in found] == [outcome] * len(edits)


@pytest.mark.slow
def test_an_edit_that_is_there_already_is_drawn_again(monkeypatch):
    monkeypatch.setattr(build, "draft_of", lambda family, split, number, attempt: draft_of(family, "one", attempt))
    rows = build_splits({"test": 200, "train": 200})
    texts = [row["before"] for split in rows.values() for row in split]
    assert len(set(texts)) == 400


def test_equal_code_draws_equal_splits_that_share_nothing():
    one, two = build_splits(SMALL), build_splits(SMALL)
    assert {name: text_of(rows) for name, rows in one.items()} == {name: text_of(rows) for name, rows in two.items()}
    texts = [row["before"] for rows in one.values() for row in rows]
    assert len(set(texts)) == len(texts) == sum(SMALL.values())
    unseen = {row["family"] for row in one["test_unseen"]} - set(COMPOSITIONS)
    assert unseen <= set(mixture.UNSEEN_FAMILIES)
    assert not unseen & {row["family"] for name in ("test", "train") for row in one[name]}
    assert not set(mixture.PRACTISED_FAMILIES) & {row["family"] for row in one["train"]}
    singles = [row["family"] for row in one["test"] if row["family"] not in COMPOSITIONS]
    assert abs(sum(name in mixture.PRACTISED_FAMILIES for name in singles) - len(singles) / 2) < 1
