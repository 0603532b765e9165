"""Trivial honest answers to tasks of the writer and of the annotator."""

from rlvr_exp.domains.dafny.problem import DafnyExample, RoleExample
from rlvr_exp.domains.dafny.weak import MOST, filled, trivial_answers

ABS = DafnyExample(
    "abs", "method Abs(x: int) returns (y: int)\n", "  ensures y >= 0\n", "{ y := x; }", "{ y := x; assert true; }"
)


def example(header: str) -> RoleExample:
    return RoleExample("writer", DafnyExample("m", header, "", "{ }", "{ }"))


def test_a_writer_returns_nothing_a_parameter_or_a_constant() -> None:
    answers = dict(trivial_answers(RoleExample("writer", ABS)))
    assert list(answers) == ["{ }", "{ y := x; }", "{ y := 0; }", "{ y := 1; }", "{ y := -1; }"]
    assert answers["{ y := 0; }"].split() == "method Abs(x: int) returns (y: int) ensures y >= 0 { y := 0; }".split()


def test_an_annotator_adds_nothing() -> None:
    ((body, program),) = trivial_answers(RoleExample("annotator", ABS))
    assert body == "{ y := x; }" and program == ABS.program(ABS.body)


def test_results_of_several_types_are_combined_up_to_a_limit() -> None:
    bodies = [
        body
        for body, _ in trivial_answers(example("method M<T>(a: seq<T>, m: map<int, T>) returns (r: seq<T>, b: bool)"))
    ]
    assert bodies == [
        "{ }",
        "{ r, b := a, true; }",
        "{ r, b := a, false; }",
        "{ r, b := [], true; }",
        "{ r, b := [], false; }",
    ]
    assert len(list(trivial_answers(example("method M(a: int, b: int) returns (r: int, s: int)")))) == MOST


def test_a_lemma_and_an_unknown_type_get_the_empty_body() -> None:
    for header in ("lemma L(n: nat)", "method M<T>() returns (t: T)"):
        assert [body for body, _ in trivial_answers(example(header))] == ["{ }"]


def test_declarations_with_a_body_and_axioms_stay_as_they_are() -> None:
    given = "method A() { }\nlemma {:axiom} B()\nlemma C();\nmethod D()"
    assert filled(given, {}).split() == given.replace("C();", "C(); { }").split() + ["{", "}"]
