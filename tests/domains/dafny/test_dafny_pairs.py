"""Pairings of both roles, and the reason for everything that is left out of them."""

from dataclasses import replace

import pytest
from surface_programs import GHOSTS, MAX, PROGRAMS, SUM, TOTAL_BODY

from rlvr_exp.domains.dafny import pairs
from rlvr_exp.domains.dafny.example import DafnyExample
from rlvr_exp.domains.dafny.load import Program, examples
from rlvr_exp.domains.dafny.pairs import build_pairings_for_annotator, build_pairings_for_writer


def of(text: str) -> list[DafnyExample]:
    return examples(Program("p", text, "f", "p.dfy"))


TOTAL = of(SUM)[-1]


def test_the_writer_goes_from_header_and_specification_to_the_body() -> None:
    (pair,) = build_pairings_for_writer([TOTAL])
    assert pair.given == "method Total(s: seq<int>) returns (t: int)\n  ensures t == Sum(s)\n"
    assert pair.wanted == TOTAL_BODY


def test_the_annotator_goes_from_the_body_to_the_annotated_one() -> None:
    (pair,) = build_pairings_for_annotator([TOTAL])
    assert (pair.given, pair.wanted) == (TOTAL_BODY, TOTAL.annotated_body)


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_left_out_of_one_role_is_counted(name: str) -> None:
    found = of(PROGRAMS[name])
    for build in (build_pairings_for_writer, build_pairings_for_annotator):
        pairings = build(found)
        assert len(pairings) + len(pairings.left_out) == len(found) == len(pairings) + sum(pairings.reasons().values())


def test_a_lemma_is_for_the_annotator_alone() -> None:
    lemma = of(SUM)[0]
    assert lemma.body == "{\n}" and len(build_pairings_for_annotator([lemma])) == 1
    assert build_pairings_for_writer([lemma]).left_out == {"p/Splits": pairs.ALL_PROOF}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"header": " \n"}, pairs.EMPTY_HEADER),
        ({"body": ""}, pairs.EMPTY_BODY),
        ({"annotated_body": "{ /* */ }"}, pairs.EMPTY_BODY),
        ({"body": TOTAL_BODY.replace("t := 0", "t := 1")}, pairs.OTHER_CODE),
        ({"before": ""}, pairs.OTHER_CODE),  # without its lemma it is unknown that a call proves
        ({"body": TOTAL_BODY[:-1]}, "cannot be read: a { that is never closed"),
        ({"spec": "{ }"}, "cannot be read: '{ t :=' behind a method"),
        ({"body": TOTAL_BODY + " method N() { }"}, pairs.NOT_ONE_METHOD),
        ({"annotated_body": TOTAL.annotated_body + " method N() { }"}, pairs.NOT_ONE_METHOD),
    ],
)
def test_faults_of_examples_have_their_reasons(change: dict[str, str], reason: str) -> None:
    for build in (build_pairings_for_writer, build_pairings_for_annotator):
        assert build([replace(TOTAL, **change)]).left_out == {TOTAL.id: reason}


def test_what_promises_nothing_is_for_the_annotator_alone() -> None:
    example = replace(TOTAL, spec="  requires s == []\n")
    assert build_pairings_for_writer([example]).left_out == {TOTAL.id: pairs.NO_PROMISE}
    assert len(build_pairings_for_annotator([example])) == 1


def test_ghost_methods_are_proof() -> None:
    note, add = of(GHOSTS)
    assert note.body == "{}" and add.body == "{ n := n + x; }"


def test_a_check_is_asked_of_what_is_well_formed_and_its_reasons_count() -> None:
    asked = []

    def check(example: DafnyExample, role: str) -> str:
        asked.append((example.id, role))
        return "is not proved: line 3" if example.id.endswith("Max") else ""

    pairings = build_pairings_for_writer([*of(MAX), TOTAL, replace(TOTAL, id="q", header="")], check)
    assert asked == [("p/Max", "writer"), ("p/Total", "writer")]
    assert pairings.reasons() == {"is not proved": 1, pairs.EMPTY_HEADER: 1} and len(pairings) == 1
