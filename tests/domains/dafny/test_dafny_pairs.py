"""Pairings of both roles, and the reason for everything that is left out of them."""

from dataclasses import replace

import pytest
from surface_programs import GHOSTS, MAX, PROGRAMS, SUM, TOTAL_BODY

from rlvr_exp.domains.dafny import usable
from rlvr_exp.domains.dafny.load import Program, examples
from rlvr_exp.domains.dafny.problem import ROLES, DafnyExample, RoleExample
from rlvr_exp.domains.dafny.usable import pairs_of


def of(text: str) -> list[DafnyExample]:
    return examples(Program("p", text, "f", "p.dfy"))


TOTAL = of(SUM)[-1]


def test_each_role_is_given_a_text_and_writes_another() -> None:
    assert TOTAL.header + TOTAL.spec == "method Total(s: seq<int>) returns (t: int)\n  ensures t == Sum(s)\n"
    writer, annotator = (RoleExample(role, TOTAL) for role in ROLES)
    assert (writer.given, writer.gold) == ("", TOTAL_BODY)
    assert (annotator.given, annotator.gold) == (TOTAL_BODY, TOTAL.annotated_body)
    assert all(pairs_of([TOTAL], role).examples == (TOTAL,) for role in ROLES)


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_left_out_of_one_role_is_counted(name: str) -> None:
    found = of(PROGRAMS[name])
    for pairs in (pairs_of(found, role) for role in ROLES):
        left_out = sum(pairs.reasons().values())
        assert len(pairs.examples) + len(pairs.left_out) == len(found) == len(pairs.examples) + left_out


def test_a_lemma_is_for_the_annotator_alone() -> None:
    lemma = of(SUM)[0]
    assert lemma.body == "{\n}" and len(pairs_of([lemma], "annotator").examples) == 1
    assert pairs_of([lemma], "writer").left_out == {"p/Splits": usable.ALL_PROOF}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"header": " \n"}, usable.EMPTY_HEADER),
        ({"body": ""}, usable.EMPTY_BODY),
        ({"annotated_body": "{ /* */ }"}, usable.EMPTY_BODY),
        ({"body": TOTAL_BODY.replace("t := 0", "t := 1")}, usable.OTHER_CODE),
        ({"before": ""}, usable.OTHER_CODE),  # without its lemma it is unknown that a call proves
        ({"body": TOTAL_BODY[:-1]}, "cannot be read: a { that is never closed"),
        ({"spec": "{ }"}, "cannot be read: '{ t :=' behind a method"),
        ({"body": TOTAL_BODY + " method N() { }"}, usable.NOT_ONE_METHOD),
        ({"annotated_body": TOTAL.annotated_body + " method N() { }"}, usable.NOT_ONE_METHOD),
    ],
)
def test_faults_of_examples_have_their_reasons(change: dict[str, str], reason: str) -> None:
    for role in ROLES:
        assert pairs_of([replace(TOTAL, **change)], role).left_out == {TOTAL.id: reason}


def test_what_promises_nothing_is_for_the_annotator_alone() -> None:
    example = replace(TOTAL, spec="  requires s == []\n")
    assert pairs_of([example], "writer").left_out == {TOTAL.id: usable.NO_PROMISE}
    assert len(pairs_of([example], "annotator").examples) == 1


def test_ghost_methods_are_proof() -> None:
    note, add = of(GHOSTS)
    assert note.body == "{}" and add.body == "{ n := n + x; }"


def test_a_check_is_asked_of_what_is_well_formed_and_its_reasons_count() -> None:
    asked = []

    def check(example: DafnyExample, role: str) -> str:
        asked.append((example.id, role))
        return "is not proved: line 3" if example.id.endswith("Max") else ""

    pairs = pairs_of([*of(MAX), TOTAL, replace(TOTAL, id="q", header="")], "writer", check)
    assert asked == [("p/Max", "writer"), ("p/Total", "writer")]
    assert pairs.reasons() == {"is not proved": 1, usable.EMPTY_HEADER: 1} and len(pairs.examples) == 1
