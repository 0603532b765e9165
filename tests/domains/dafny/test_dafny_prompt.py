"""Prompts of both roles: distinguished by the first token, without any part of the answer, in both styles."""

import pytest
from dafny_samples import EXAMPLES, MAX, SUM

from rlvr_exp.domains.dafny.options import DafnyPrompt as Wording
from rlvr_exp.domains.dafny.problem import ROLES, RoleExample
from rlvr_exp.domains.dafny.prompt import FORMS, answer_of, body_of, retry, write

INSTRUCT = Wording("instruct")
PARTS = [RoleExample(role, one) for role in ROLES for one in EXAMPLES]


def test_bare_prompts_are_the_program_between_marks() -> None:
    around = SUM.before.strip() + "\n" + SUM.header + SUM.spec
    assert write(RoleExample("writer", SUM), Wording()) == f"W\n{around}P\n"
    assert write(RoleExample("annotator", SUM), Wording()) == f"A\n{around}{SUM.body}\nP\n"


@pytest.mark.parametrize("part", PARTS, ids=lambda part: f"{part.role}-{part.example.id}")
@pytest.mark.parametrize(
    "options",
    [Wording(), INSTRUCT, Wording("instruct", answer="permissive")],
    ids=lambda one: f"{one.style}-{one.answer}",
)
def test_an_answer_is_read_back_as_the_gold(part: RoleExample, options: Wording) -> None:
    assert body_of(answer_of(part, options), part.example).text == part.gold
    assert part.gold == (part.example.body if part.role == "writer" else part.example.annotated_body)


@pytest.mark.parametrize("options", [Wording(), INSTRUCT], ids=["bare", "instruct"])
def test_a_prompt_tells_what_is_given_and_not_what_is_asked(options: Wording) -> None:
    assert "s := s + i" not in write(RoleExample("writer", SUM), options)
    annotator = write(RoleExample("annotator", SUM), options)
    assert SUM.body in annotator and "invariant 0" not in annotator and "assert s" not in annotator


def test_the_forms_of_an_answer_differ() -> None:
    texts = {write(RoleExample("writer", MAX), Wording("instruct", answer=form)) for form in FORMS}
    assert len(texts) == len(FORMS) and all("`method Max`" in text for text in texts)


@pytest.mark.parametrize(
    "options", [Wording(context="// Dafny 2.3"), Wording("instruct", context="Dafny 2.3")], ids=lambda one: one.style
)
def test_a_context_is_fused_in_ahead_of_the_task(options: Wording) -> None:
    text = write(RoleExample("annotator", SUM), options)
    assert text.count(options.context) == 1 and text.index(options.context) < text.index("Tri(n: nat)")
    assert text.startswith("A\n") or options.style == "instruct"


@pytest.mark.parametrize("options", [Wording(), INSTRUCT], ids=["bare", "instruct"])
def test_shots_stand_before_the_task_with_their_answers(options: Wording) -> None:
    shot, task = RoleExample("annotator", SUM), RoleExample("annotator", MAX)
    text = write(task, options, [shot])
    assert text.endswith(write(task, options)) and text.index(answer_of(shot, options)) < text.rindex(MAX.header)


def test_asked_again_the_bare_prompt_shows_what_was_answered_and_what_was_said() -> None:
    part = RoleExample("writer", MAX)
    text = retry(part, Wording(), [], "{ m := a; }", "a postcondition\n\nmight not hold")
    asked = write(part, Wording())
    assert text == f"{asked}{{ m := a; }}\n// a postcondition\n// might not hold\n\n{asked}"
