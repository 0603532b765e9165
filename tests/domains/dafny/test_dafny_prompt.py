"""Prompts of both roles, and the body in a completion, whatever is around it."""

from dataclasses import replace

import pytest
from dafny_samples import EXAMPLES, MAX, SUM
from hypothesis import given
from hypothesis import strategies as st

from rlvr_exp.domains.dafny.options import DafnyPrompt as Wording
from rlvr_exp.domains.dafny.problem import ROLES, RoleExample
from rlvr_exp.domains.dafny.prompt import FORMS, answer_of, body_of, closed, retry, write

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


BODY = "{\n  m := if a > b then a else b; // } not here\n  assert m in {a, b};\n}"
HEAD = MAX.header + MAX.spec
CHATTER = st.text(st.characters(blacklist_characters="`{}/\"'@\r\\", blacklist_categories=["Cs"]), max_size=60)
AROUND = {
    "alone": BODY,
    "spilling over": f"{BODY}\nmethod Other() {{ }}\nW\n",
    "header repeated": HEAD + BODY,
    "specification repeated": MAX.spec + BODY,
    "the program repeated": f"{SUM.before}{HEAD}{BODY}\nmethod Main() {{ print 1; }}\n",
    "header of another kind": f"function Max(a: int): int {{ a }}\n{HEAD}{BODY}",
    "fenced": f"```dafny\n{BODY}\n```",
    "fenced with its header": f"Here:\n```dafny\n{HEAD}{BODY}\n```\nIt holds since {{a, b}} has a maximum.",
    "fenced again": f"```\n{{ m := a; }}\n```\nNo, wait:\n```dafny\n{BODY}\n```",
    "a fence that is never closed": f"```dafny\n{BODY}\n",
    "words before": f"The body of method Max is, in short:\n{BODY}\nDone.",
    "another program's fence first": f"```python\nprint(1)\n```\nand\n```dafny\n{BODY}\n```",
    "an example of its use after it": f"```dafny\n{HEAD}{BODY}\n```\nUse:\n```dafny\nmethod Main() {{ var x := Max(1, 2); }}\n```",
    "its use after a bare body": f"```dafny\n{BODY}\n```\nUse:\n```dafny\nmethod Main() {{ var x := Max(1, 2); }}\n```",
    "windows line ends": BODY.replace("\n", "\r\n"),
}


@pytest.mark.parametrize("text", AROUND.values(), ids=AROUND)
def test_the_body_is_found(text: str) -> None:
    assert body_of(text, MAX).text == BODY


@given(CHATTER, CHATTER, st.sampled_from(EXAMPLES), st.sampled_from(["body", "method", "program"]))
def test_a_fenced_body_is_found_among_any_words(before: str, after: str, example, form: str) -> None:
    body = example.annotated_body
    shown = {"body": body, "method": example.header + example.spec + body, "program": example.gold}[form]
    assert body_of(f"{before}\n```dafny\n{shown}\n```\n{after}", example).text == body


@given(
    st.one_of(
        st.text(),
        st.lists(st.sampled_from([*'{}()[];"`/*', "```", "\n", "method Max", "ensures", "by", "x"])).map(" ".join),
    )
)
def test_no_text_breaks_the_reader(text: str) -> None:
    found = body_of(text, MAX)
    assert (found.text is None) == bool(found.fault)
    assert found.text is None or (found.text[0], found.text[-1]) == ("{", "}")
    closed(text)


@pytest.mark.parametrize(
    ("text", "fault"),
    [("", "no body"), ("I cannot.", "no body"), ("\n{ while true { m := a; ", "line 2"), ("requires x", "no body")],
)
def test_an_answer_without_a_body_says_so(text: str, fault: str) -> None:
    found = body_of(text, MAX)
    assert found.text is None and fault in found.fault


def test_of_several_methods_by_one_name_the_targets_own_is_taken() -> None:
    before, after = (f"class {name} {{\n{HEAD}{{ m := a; }}\n" for name in "AB")
    example = replace(MAX, before=f"{before}}}\nclass C {{\n", after=f"\n}}\n{after}}}\n")
    assert body_of(f"```dafny\n{example.program(BODY)}\n```", example).text == BODY
    assert body_of(f"{HEAD}{{ m := a; }}\nBetter:\n{HEAD}{BODY}", MAX).text == BODY


def test_a_specification_that_is_brought_along_is_left_behind() -> None:
    assert body_of(f"{MAX.header}  ensures true\n{BODY}", MAX).text == BODY


def test_an_open_body_is_not_taken_for_a_block_inside_it() -> None:
    assert body_of(f"{HEAD}{{\n  while true\n  {{\n  }}\n", MAX).text is None


def test_a_bare_answer_is_whole_with_its_last_brace() -> None:
    assert [text for cut in range(len(BODY) + 1) if closed(text := BODY[:cut])] == [BODY]
    assert not closed("```\n{ }")
