"""Parsed completions: a body is found whatever is around it; a completion without a body is a fault."""

from dataclasses import replace

import pytest
from dafny_samples import EXAMPLES, MAX, SUM
from hypothesis import given
from hypothesis import strategies as st

from rlvr_exp.domains.dafny.prompt import body_of, closed

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
