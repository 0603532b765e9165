"""Usable examples of both roles by their texts, the reasons against the others, and the check of Dafny data before a run."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from makers import made
from surface_programs import GHOSTS, MAX, PROGRAMS, SUM, TOTAL_BODY

from rlvr_exp.core.errors import GuardStop, InputError
from rlvr_exp.domains.dafny import usable
from rlvr_exp.domains.dafny.load import DafnyProgram, examples, survey
from rlvr_exp.domains.dafny.problem import ROLES, STRENGTHS, DafnyExample, RoleExample
from rlvr_exp.domains.dafny.usable import pairs_of
from rlvr_exp.verifiers.base import Request, Verdict


def of(text: str) -> list[DafnyExample]:
    return examples(DafnyProgram("p", text, "f", "p.dfy"))


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


class Levels:
    """A verifier that proves a program on the levels up to that of its name."""

    def as_ready(self, requests: Iterable[Request]) -> Iterator[tuple[int, Verdict]]:
        for index, request in enumerate(requests):
            text = request.candidate.text
            below = [name for name in STRENGTHS[: STRENGTHS.index(request.problem.strength) + 1] if f"_{name}" in text]
            yield index, Verdict("passed") if below else Verdict("failed", "verify", log="line 1")


class Resolves:
    def fault(self, text: str) -> str:
        return ""


def test_the_level_is_the_strictest_on_which_the_program_is_proved() -> None:
    usable_check = usable.UsableCheck(Levels(), Resolves())  # type: ignore[arg-type]
    found = {name: of(MAX.replace("Max", f"_{name}"))[0] for name in (*STRENGTHS, "never")}
    usable_check.ask(found.values())
    assert {name: usable_check.strength(one) for name, one in found.items()} == {
        "strict": "strict",
        "refresh": "refresh",
        "default": "default",
        "never": "default",
    }
    assert usable_check(found["never"], "annotator") == "the program is not proved: line 1"
    assert not any(usable_check(found[name], "annotator") for name in STRENGTHS)
    weak = {name: usable_check.weakness(RoleExample("annotator", found[name])) for name in STRENGTHS}
    assert weak == {
        "strict": "",
        "refresh": "below the level strict: refresh",
        "default": "below the level strict: default",
    }


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (MAX, ""),
        (
            "method M(n: int) returns (r: int)\n  ensures r <= n\n{\n  r := n;\n}\n",
            "a trivial body solves it: { r := n; }",
        ),
    ],
)
def test_a_writers_task_that_a_trivial_body_solves_is_weak(text: str, found: str) -> None:
    class Accepts:
        def as_ready(self, requests: Iterable[Request]) -> Iterator[tuple[int, Verdict]]:
            yield from ((index, Verdict("passed")) for index, _ in enumerate(requests))

        def verify(self, requests: Iterable[Request]) -> list[Verdict]:
            solved, other = Verdict("passed"), Verdict("failed", "verify")
            return [solved if "{ r := n; }" in str(one.candidate.text) else other for one in requests]

    usable_check = usable.UsableCheck(Accepts(), Resolves())  # type: ignore[arg-type]
    assert usable_check.weakness(RoleExample("writer", of(text)[0])) == found
    assert not usable_check.weakness(RoleExample("annotator", of(text)[0]))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    texts = {"sum": SUM, "max": MAX, "ghosts": GHOSTS, "broken": "method {", "odd": "method M() { § }"}
    (tmp_path / "data").mkdir()
    for name, text in texts.items():
        (tmp_path / "data" / f"{name}.dfy").write_text(text, encoding="utf-8")
    return tmp_path / "data"


def test_counts_programs_examples_pairs_and_reasons(folder: Path) -> None:
    said, counts = made(folder.parent, "dafny_check", f"prepare.path={folder}")
    assert counts == {"programs": 5, "examples": 5}
    for line in (
        "programs: 5, that lex: 4, without an example: 2 cannot be read",
        "put together otherwise than given: 0\n",
        "declared with a body: 4 method, 1 function, 1 lemma",
        "writer pairs: 3, left out: 2\n    2 a lemma or ghost method",
        "annotator pairs: 5 (1 with nothing to add), left out: 0",
        "groups that stay together: 3, the largest of 2",
    ):
        assert line in said, said


def test_examples_that_are_not_their_program_are_told(folder: Path) -> None:
    found = survey(folder)
    assert usable.other_text(found) == [] == usable.changed(found)
    found.examples[0] = replace(found.examples[0], after="")
    assert usable.other_text(found) == [found.examples[0].id]


def test_a_program_that_is_put_together_otherwise_stops_the_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usable, "changed", lambda found: ["sum"])
    with pytest.raises(GuardStop, match="put together otherwise than given: 1\n    sum"):
        made(folder.parent, "dafny_check", f"prepare.path={folder}")


def test_bad_data_are_bad_input(tmp_path: Path) -> None:
    (tmp_path / "r.jsonl").write_text("{}\n{\n")
    with pytest.raises(InputError) as found:
        made(tmp_path, "dafny_check", f"prepare.path={tmp_path}")
    assert len(found.value.problems) == 2
