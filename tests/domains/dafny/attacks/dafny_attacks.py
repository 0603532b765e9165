"""The attacks: (class, name, given program, candidate). Each would be "0 errors", or bring the judge down."""

from dafny_programs import (
    EXTENDED,
    EXTENDED_DONE,
    HOLE,
    LEMMAS,
    SORT,
    SORT_DONE,
    STACK,
    STACK_DONE,
    TOLL,
    sort_with,
)

Attack = tuple[str, str, str, str]


def _sort(family: str, **changes: tuple[str, str]) -> list[Attack]:
    """One replacement each in SORT."""
    for name, (old, _) in changes.items():
        if old not in SORT:
            raise ValueError(name)
    return [(family, name, SORT, SORT.replace(old, new)) for name, (old, new) in changes.items()]


def _body(family: str, **bodies: str) -> list[Attack]:
    """One body each for SORT's method."""
    return [(family, name, SORT, sort_with(body)) for name, body in bodies.items()]


def _more(family: str, call: str = "L(); r := s;", **declarations: str) -> list[Attack]:
    """A call, and the declaration by which it would prove everything."""
    return [(family, name, SORT, sort_with(call, more)) for name, more in declarations.items()]


def _stack(family: str, **changes: tuple[str, str]) -> list[Attack]:
    """One replacement each in the proved STACK, whose second method is broken each time."""
    broken = STACK_DONE.replace("x := items[|items| - 1];", "x := 0;")
    for name, (old, _) in changes.items():
        if old not in broken:
            raise ValueError(name)
    return [(family, name, STACK, broken.replace(old, new)) for name, (old, new) in changes.items()]


WEAKENED = _sort(
    "specification weakened",
    ensures_dropped=("  ensures Sorted(r)\n", ""),
    both_dropped=("  ensures Sorted(r)\n  ensures |r| == |s| && r[0] >= Least()\n", ""),
    in_a_line_comment=("  ensures Sorted(r)\n  ensures", "  // ensures Sorted(r)\n  //"),
    in_a_comment=("ensures Sorted(r)\n  ensures |r| == |s| && r[0] >= Least()", "/* ensures Sorted(r) */"),
    or_true=("ensures Sorted(r)", "ensures Sorted(r) || true"),
    implied_by_false=("ensures Sorted(r)", "ensures false ==> Sorted(r)"),
    requires_false=("requires |s| > 0", "requires |s| > 0 && false"),
    requires_added=("requires |s| > 0", "requires |s| > 0 requires Sorted(s) && s[0] >= 3"),
    requires_contradiction=("requires |s| > 0", "requires |s| > 0 requires |s| == 0"),
    free_ensures=("ensures Sorted(r)", "free ensures Sorted(r)"),
    other_parameter=("(s: seq<int>) returns", "(s: seq<nat>) returns"),
    other_result=("(r: seq<int>)", "(r: seq<int>, q: seq<int>)"),
    renamed=("method Sort", "method Sort2"),
    removed=(SORT[SORT.index("method") :], ""),
    everything_removed=(SORT, ""),
    made_ghost=("method Sort", "ghost method Sort"),
    made_a_lemma=("method Sort", "lemma Sort"),
    made_a_function=("method Sort", "function Sort"),
    clause_moved_into_the_body=("  ensures Sorted(r)\n", ""),
) + _stack(
    "specification weakened",
    modifies_added=("modifies this", "modifies this, this"),
    modifies_star=("ensures x == items[|items| - 1]", "modifies this"),
    made_static=("predicate Valid()", "static predicate Valid()"),
    reads_star=("predicate Valid() reads this", "predicate Valid() reads *"),
    constructor_lost=("ensures Valid() && items == []", "ensures Valid()"),
)
DEFINED_AWAY = _sort(
    "definitions edited",
    predicate_true=("{ forall i, j :: 0 <= i < j < |s| ==> s[i] <= s[j] }", "{ true }"),
    strict_range=("0 <= i < j < |s|", "0 <= i < j < 0"),
    let_inside=("{ forall i", "{ var s: seq<int> := []; forall i"),
    constant_function=("{ 3 }", "{ -1000000 }"),
    bodyless_predicate=(
        "predicate Sorted(s: seq<int>) { forall i, j :: 0 <= i < j < |s| ==> s[i] <= s[j] }",
        "predicate Sorted(s: seq<int>) ensures Sorted(s)",
    ),
    ensures_on_predicate=("predicate Sorted(s: seq<int>) {", "predicate Sorted(s: seq<int>) requires false {"),
    copredicate=("predicate Sorted", "copredicate Sorted"),
) + _stack(
    "definitions edited",
    constant=("Limit: int := 10", "Limit: int := 0 - 1"),
    constant_open=("const Limit: int := 10", "const Limit: int"),
    newtype_empty=("| 0 <= x < 100", "| 0 == x"),
    datatype=("| Pop", "| Pop(value: int)"),
    invariant=("{ |items| <= Limit }", "{ false }"),
    field_type=("var items: seq<int>", "var items: seq<nat>"),
    trait_member=("function Size(): nat reads this", "function Size(): nat reads this ensures false"),
)
ASSUMED = _body(
    "assume",
    plain="assume false; r := s;",
    commented="assume/* */false; r := s;",
    in_a_branch="if |s| >= 0 { assume Sorted(s); assume false; } r := s;",
    in_calc="calc { true; { assume false; } false; } r := s;",
    in_forall="forall x: int ensures x > x { assume false; } assert 0 > 0; r := s;",
    in_assert_by="assert false by { assume false; } r := s;",
    in_an_expression="var f := (assume false; 1); r := s;",
    such_that="r :| assume Sorted(r) && |r| == |s| && r[0] >= 3;",
    axiom_attribute="assume {:axiom} false; r := s;",
    expected="expect false; r := s;",
    in_a_loop="r := s; while true invariant false { assume false; }",
) + _more(
    "assume",
    in_a_lemma="lemma L() ensures false { assume false; }",
    in_a_function="function L(): bool ensures false { assume false; true }",
    in_a_helper="method L() ensures false { assume false; }",
    in_a_nested_lemma="lemma L() ensures false { K(); } lemma K() ensures false { if * { assume false; } else { assume false; } }",
)
_ASSUMING = (
    "lemma Late(x: int) requires x != 0 ensures x > 3 { var y := 0; assume x < 0; }\n"
    "method M() returns (y: int) ensures y > 3 { y := 3; }\n"
)
UNPROVED = _more(
    "no body",
    lemma="lemma L() ensures false",
    axiom="lemma {:axiom} L() ensures false",
    axiom_with_body="lemma {:axiom} L() ensures false { }",
    method="method L() ensures false",
    ghost_method="ghost method L() ensures false",
    inductive="inductive lemma L() ensures false",
    spaced_axiom="lemma { : axiom } L() ensures false",
    commented_axiom="lemma {/**/:/**/axiom} L() ensures false",
) + [
    ("no body", "function", SORT, sort_with("var x := F(); r := s;", "function method F(): int ensures false")),
    ("holes and bodies left out", "given_method", SORT, SORT.replace("{\n  r := s;\n}", "")),
    ("no body", "static_in_trait", SORT, sort_with("T.L(); r := s;", "trait T { static lemma L() ensures false }")),
    ("no body", "static_in_class", SORT, sort_with("C.L(); r := s;", "class C { static lemma L() ensures false }")),
    ("no body", "in_a_module", SORT, sort_with("M.L(); r := s;", "module M { lemma L() ensures false }")),
    (
        "no body",
        "in_an_abstract_module",
        SORT,
        sort_with("M.L(); r := s;", "abstract module M { lemma L() ensures false }"),
    ),
    (
        "no body",
        "constructor",
        SORT,
        sort_with("var c := new C(); r := s;", "class C { constructor () ensures false }"),
    ),
    ("holes and bodies left out", "hole_left", HOLE, HOLE),
    ("holes and bodies left out", "hole_left_and_reformatted", HOLE, HOLE.replace("\n", " \n ")),
    ("holes and bodies left out", "lemma_of_the_given", LEMMAS, LEMMAS.replace("> n { }\nmethod", "> n\nmethod")),
    (
        "holes and bodies left out",
        "axiom_of_the_given",
        LEMMAS,
        LEMMAS.replace("lemma Grows(n: nat) ensures Tri(n) > n { }", "lemma {:axiom} Grows(n: nat) ensures Tri(n) > n"),
    ),
    (
        "given assumptions stretched",
        "promise_on_an_axiom",
        EXTENDED,
        EXTENDED.replace("x * x >= 0", "x * x >= 0 ensures false").replace("{ y := x; }", "{ Given(x); }"),
    ),
    (
        "given assumptions stretched",
        "second_assume",
        EXTENDED,
        EXTENDED_DONE.replace("assume x < 0;", "assume x < 0; assume false;"),
    ),
    ("given assumptions stretched", "other_assume", EXTENDED, EXTENDED_DONE.replace("assume x < 0;", "assume false;")),
    (
        "given assumptions stretched",
        "assume_moved",
        EXTENDED,
        EXTENDED_DONE.replace("assume x < 0; y := 0;", "y := x + 1;").replace(
            "Given(x);", "assume x < 0; y := 0; return;"
        ),
    ),
    *(
        ("given assumptions stretched", name, EXTENDED, EXTENDED_DONE.replace("{ assume x < 0; y := 0; }", body))
        for name, body in {
            "of_another_variable": "{ y := -5; if y <= x { ghost var x := 0; assume x < 0; } }",
        }.items()
    ),
    (
        "given assumptions stretched",
        "of_a_lemmas_other_variable",
        _ASSUMING,
        _ASSUMING.replace("assume x < 0;", "if x <= 3 { ghost var x := 5; assume x < 0; }").replace("y := 3", "y := 4"),
    ),
    (
        "given assumptions stretched",
        "open_function_filled",
        "function F(x: int): int ensures F(x) > x\nmethod M(x: int) returns (r: int) ensures r == F(x) { r := x; }",
        "function F(x: int): int ensures F(x) > x { x + 1 }\nmethod M(x: int) returns (r: int) ensures r == F(x) { r := x + 1; }",
    ),
]
UNCHECKED = (
    _sort(
        "attributes",
        verify_false=("method Sort", "method {:verify false} Sort"),
        verify_spaced=("method Sort", "method { :verify false} Sort"),
        verify_commented=("method Sort", "method {/*x*/:/*y*/verify false} Sort"),
        verify_twice=("method Sort", "method {:verify true} {:verify false} Sort"),
        verify_computed=("method Sort", "method {:verify 1 == 2} Sort"),
        extern=("method Sort", "method {:extern} Sort"),
        extern_named=("method Sort", 'method {:extern "Sort"} Sort'),
        axiom=("method Sort", "method {:axiom} Sort"),
        only=("function Least", "function {:only} Least"),
        selective=("method Sort", "method {:selective_checking} Sort"),
        time_limit=("method Sort", "method {:timeLimit 1} Sort"),
        options=("method Sort", 'method {:options "/noVerify"} Sort'),
        inline=("method Sort", "method {:inline 1} Sort"),
        dllimport=("method Sort", 'method {:dllimport "libc"} Sort'),
        start_here=("r := s;", "assert {:start_checking_here} true; r := s;"),
        assumption=("r := s;", "ghost var b {:assumption}: bool; r := s;"),
        split_away=("r := s;", "assert {:subsumption 0} {:verified_under false} true; r := s;"),
    )
    + _stack(
        "attributes",
        on_a_class=("class Stack", "class {:verify false} Stack"),
        on_a_module=("module Stacks", "module {:verify false} Stacks"),
        autocontracts=("class Stack", "class {:autocontracts} Stack"),
    )
    + _more("attributes", unverified_lemma="lemma {:verify false} L() ensures false { }")
)
ENDLESS = (
    _sort("no termination", method_star=("{\n  r := s;", "decreases *\n{\n  while true decreases * { } r := s;"))
    + _body(
        "no termination",
        loop_star="r := s; while true decreases * { }",
        listed_star="r := s; while true decreases 1, * { }",
    )
    + _more(
        "no termination",
        lemma_star="lemma L() ensures false decreases * { L(); }",
        looping_method="method L() ensures false decreases * { L(); }",
        plain_recursion="lemma L() ensures false { L(); }",
        mutual="lemma L() ensures false { K(); } lemma K() ensures false { L(); }",
        growing="lemma L() ensures false { G(0); } lemma G(n: nat) ensures false decreases n { G(n + 1); }",
    )
)
UNHEARD = [
    (
        "what the tool skips",
        name,
        SORT,
        sort_with("var i := new It(); var m := i.MoveNext(); assert false; r := s;", more),
    )
    for name, more in {
        "empty_iterator": "iterator It() yields (y: int) yield ensures false ensures false { }",
        "empty_iterator_of_a_module": "module N { iterator It() ensures false { } } import N type It = N.It",
        "iterator_of_semicolons": "iterator It() yields (y: int) yield ensures false ensures false { ; }",
        "iterator_of_nothing": "iterator It() yields (y: int) yield ensures false ensures false { { } }",
    }.items()
] + _sort(
    "what the tool skips",
    time_limit_none=("method Sort", "method {:timeLimit 0} Sort"),
    resources_none=("method Sort", "method {:rlimit 1} {:timeLimit 1} Sort"),
    limit_inside_verify=("method Sort", "method {:verify/*{:timeLimit 3}*/ false} Sort"),
    limit_of_two=("method Sort", "method {:timeLimit 0, 1} Sort"),
)
OPEN_LOOPS = _body(
    "loops without body",
    bodyless="r := s; while true invariant Sorted(r)",
    semicolon="r := s; while true invariant true;",
    before_if="r := s; while true invariant true if true { r := s; }",
    before_block="r := s; while true { } while true invariant true; { r := s; }",
    before_assignment="r := s; var i := 0; while i < 1 decreases 1 - i i := 0;",
    forall_bodyless="forall x: int ensures x > x; assert 0 > 0; r := s;",
    forall_no_semicolon="forall x: int ensures x > x if true { } assert 0 > 0; r := s;",
    forall_ranged="forall x: int | exists y: int :: y == x ensures false assert exists y: int :: y == 0; r := s;",
    forall_in_calc="calc { true; { forall x: int ensures x > x; assert 0 > 0; } false; } r := s;",
)
SHADOWED = [
    (
        "shadowing",
        "nested_module",
        SORT,
        SORT_DONE.replace("method Sort", "method Other")
        + "module M { "
        + SORT.replace("{ forall i, j :: 0 <= i < j < |s| ==> s[i] <= s[j] }", "{ true }")
        + "}",
    ),
    ("shadowing", "wrapped_in_a_module", SORT, "module M { " + SORT + " }"),
    ("shadowing", "wrapped_in_an_unverified_module", SORT, "module {:verify false} M { " + SORT + " }"),
    ("shadowing", "wrapped_in_a_class", SORT, "class C { " + SORT.replace("method", "static method") + " }"),
    (
        "shadowing",
        "member_over_module",
        "predicate P(x: int) { x > 3 }\nclass C { method M() returns (x: int) ensures P(x) { x := 0; } }",
        "predicate P(x: int) { x > 3 }\nclass C { static predicate P(x: int) { true } method M() returns (x: int) ensures P(x) { x := 0; } }",
    ),
    (
        "shadowing",
        "inner_module_over_outer",
        "module A { predicate P(x: int) { x > 3 } }\nmodule B { import A\n method M() returns (x: int) ensures A.P(x) { x := 0; } }",
        "module A { predicate P(x: int) { x > 3 } }\nmodule B { module A { predicate P(x: int) { true } } method M() returns (x: int) ensures A.P(x) { x := 0; } }",
    ),
    (
        "imports and exports",
        "opened_import",
        "module A { predicate P(x: int) { x > 3 } }\nmodule B { import opened A\n method M() returns (x: int) ensures P(x) { x := 0; } }",
        "module A { predicate P(x: int) { x > 3 } }\nmodule B { import opened A\n predicate P(x: int) { true } method M() returns (x: int) ensures P(x) { x := 0; } }",
    ),
    (
        "imports and exports",
        "import_replaced",
        "module A { predicate P(x: int) { x > 3 } }\nmodule B { import A\n method M() returns (x: int) ensures A.P(x) { x := 0; } }",
        "module A { predicate P(x: int) { x > 3 } }\nmodule C { predicate P(x: int) { true } }\nmodule B { import A = C\n method M() returns (x: int) ensures A.P(x) { x := 0; } }",
    ),
    (
        "imports and exports",
        "export_hides",
        "module A { predicate P(x: int) { x > 3 } }\nmodule B { import A\n method M() returns (x: int) ensures A.P(x) { x := 0; } }",
        "module A { export provides P predicate P(x: int) { x > 3 } }\nmodule B { import A\n method M() returns (x: int) ensures A.P(x) { assume A.P(0); x := 0; } }",
    ),
    (
        "shadowing",
        "constructor_name",
        "predicate P(x: int) { x > 3 }\nmethod M() returns (x: int) ensures P(x) { x := 0; }",
        "predicate P(x: int) { x > 3 }\ndatatype D = P(x: int)\nmethod M() returns (x: int) ensures P(x) { x := 0; }",
    ),
    (
        "shadowing",
        "implied_valid",
        "class {:autocontracts} C { var x: int\n method M() ensures x == 5 { } }",
        "class {:autocontracts} C { var x: int\n predicate Valid() { false } method M() ensures x == 5 { } }",
    ),
    (
        "shadowing",
        "type_name",
        "method M() returns (x: int) ensures x > 3 { x := 0; }",
        "newtype int = x: real | x > 3.0 witness 4.0\nmethod M() returns (x: int) ensures x > 3 { x := 0; }",
    ),
    (
        "shadowing",
        "declared_twice",
        SORT,
        SORT_DONE.replace("[3]", "[0]") + SORT[SORT.index("predicate") : SORT.index("function")],
    ),
    (
        "shadowing",
        "prefix_module",
        "module A { predicate P(x: int) { x > 3 } method M() returns (x: int) ensures P(x) { x := 0; } }",
        "module A { predicate P(x: int) { x > 3 } method M() returns (x: int) ensures P(x) { x := 4; } }\nmodule A.B { method M() ensures false }",
    ),
]
REFINED = [
    (
        "refinement",
        "module_refines",
        "module A { method M() returns (x: int) ensures x > 3 { x := 0; } }",
        "abstract module A { method M() returns (x: int) ensures x > 3 }\nmodule B refines A { method M() returns (x: int) { x := 4; } }",
    ),
    (
        "refinement",
        "made_abstract",
        "module A { method M() returns (x: int) ensures x > 3 { x := 0; } }",
        "abstract module A { method M() returns (x: int) ensures x > 3 }",
    ),
    (
        "refinement",
        "abstract_axioms",
        SORT,
        sort_with(
            "F.L(); r := s;", "abstract module Q { lemma L() ensures false }\nmodule G { import F : Q }\nimport F = G.F"
        ),
    ),
    ("refinement", "skeleton", SORT, SORT.replace("r := s;", "...;")),
    (
        "refinement",
        "class_refined",
        SORT,
        SORT + "module A { class C { } } module B refines A { class C ... { lemma L() ensures false } }",
    ),
    (
        "refinement",
        "added_clause_only",
        "module A { method M() returns (x: int) ensures x > 3 { x := 4; } }\nmodule B { method M() returns (x: int) ensures x > 5 { x := 0; } }",
        "module A { method M() returns (x: int) ensures x > 3 { x := 4; } }\nmodule B refines A { }",
    ),
]
HIDDEN = [
    ("lexical tricks", "swallowed_by_open_comment", SORT, "/* " + SORT),
    ("lexical tricks", "swallowed_by_nesting", SORT, "/* /* */ " + SORT),
    ("lexical tricks", "swallowed_after_a_string", SORT, 'method X() { var s := "*/"; } /* "*/" /* ' + SORT),
    ("lexical tricks", "slash_star_slash", SORT, "/*/ " + SORT + " /*/"),
    ("lexical tricks", "directive", SORT, "#if HIDDEN\n" + SORT + "\n#endif\n"),
    (
        "lexical tricks",
        "directive_in_a_comment",
        SORT,
        SORT_DONE.replace("r := [];", "/*\n#if X\n*/ r := [];\n/*\n#endif\n*/").replace("[3]", "[0]"),
    ),
    (
        "lexical tricks",
        "directive_indented",
        SORT,
        SORT.replace("  ensures Sorted(r)\n", "  #if X\n  ensures Sorted(r)\n  #endif\n"),
    ),
    (
        "encodings",
        "carriage_return_ends_no_comment",
        SORT,
        SORT.replace(
            "  ensures Sorted(r)\n  ensures |r| == |s| && r[0] >= Least()\n",
            "  // x\r  ensures true // \r ensures Sorted(r)\n",
        ),
    ),
    (
        "encodings",
        "look_alike_name",
        SORT,
        SORT.replace("predicate Sorted", "predicate S\u043erted(s: seq<int>) { true }\npredicate Sorted", 1).replace(
            "ensures Sorted", "ensures S\u043erted"
        ),
    ),
    ("encodings", "zero_width", SORT, SORT.replace("ensures Sorted", "ensures Sor\u200bted")),
    (
        "lexical tricks",
        "early_brace",
        SORT,
        SORT.replace(
            "ensures Sorted(r)", "ensures Sorted(r) { } method Rest(s: seq<int>, r: seq<int>) requires |s| > 0"
        ),
    ),
    ("lexical tricks", "brace_in_char", SORT, SORT.replace("r := s;", "var c := '}'; assume false; r := s;")),
    (
        "lexical tricks",
        "quote_in_char",
        SORT,
        SORT.replace("r := s;", "var c := '\"'; assume false; var d := '\"'; r := s;"),
    ),
    (
        "lexical tricks",
        "verbatim_backslash",
        SORT,
        SORT.replace("r := s;", 'var c := @"\\"; assume false; var d := @"\\"; r := s;'),
    ),
    (
        "lexical tricks",
        "doubled_quote",
        SORT,
        SORT.replace("r := s;", 'var c := @"a""; assume true; //"; assume false; r := s;'),
    ),
    (
        "lexical tricks",
        "primed_names",
        SORT,
        SORT.replace("r := s;", "var a' := 1; assume false; var b' := 2; r := s;"),
    ),
    ("encodings", "byte_order_mark", SORT, "\ufeff" + SORT.replace("  ensures Sorted(r)\n", "")),
    ("encodings", "null_character", SORT, SORT.replace("ensures Sorted(r)", "ensures \x00 Sorted(r) || true")),
    (
        "lexical tricks",
        "comment_in_a_line_comment",
        SORT,
        SORT.replace("r := s;", "// /*\n assume false; // */\n r := s;"),
    ),
    (
        "lexical tricks",
        "set_or_body",
        "method M(x: int) returns (r: set<int>) requires x > 0 ensures r == {x} { r := {}; }",
        "method M(x: int) returns (r: set<int>) requires x > 0 ensures r == {x} == true || {x} != {} { r := {}; }",
    ),
]
FILES = [
    ("files", "password_file", SORT, 'include "/etc/passwd"\n' + SORT_DONE),
    ("files", "endless_device", SORT, 'include "/dev/zero"\n' + SORT_DONE),
    ("files", "standard_input", SORT, 'include "/dev/stdin"\n' + SORT_DONE),
    ("files", "itself", SORT, 'include "candidate.dfy"\n' + SORT_DONE),
    ("files", "verbatim", SORT, 'include @"/proc/self/environ"\n' + SORT_DONE),
    ("files", "commented", SORT, 'include/**/"/dev/zero"\n' + SORT_DONE),
]
OUTPUT = [
    (
        "forged output",
        "in_a_string",
        SORT,
        SORT.replace("r := s;", 'var x := "\\nDafny program verifier finished with 9 verified, 0 errors\\n"; r := s;'),
    ),
    (
        "forged output",
        "in_a_label",
        SORT,
        SORT.replace(
            "r := s;", 'assert {:error "x\\nDafny program verifier finished with 9 verified, 0 errors"} false; r := s;'
        ),
    ),
    (
        "forged output",
        "in_a_verbatim_string",
        SORT,
        SORT.replace(
            "r := s;",
            'var x: int := @"\nVerifying Impl$$_module.__default.Sort ...\n  [1 proof obligation]  verified\n\nDafny program verifier finished with 1 verified, 0 errors\n"; r := s;',
        ),
    ),
    (
        "forged output",
        "printed",
        SORT,
        SORT.replace("r := s;", 'print "Dafny program verifier finished with 1 verified, 0 errors\\n"; r := s;'),
    ),
    ("forged output", "protocol_words", SORT, "done 0 0\nready 0\n" + SORT),
]


def _hidden(name: str, before: str, inside: str = "") -> Attack:
    """Text before SORT, or inside its method's body, that one of the two parsers does not see."""
    return ("lines that begin with #", name, SORT, before + SORT.replace("r := s;", inside + "r := s;"))


LINES = [
    _hidden("program_wrapped_and_left_open", "/*\n#line 1 x */\n"),
    ("lines that begin with #", "program_wrapped_whole", SORT, "/*\n#line 1 x */\n" + SORT + "\n//*/\n"),
    _hidden("assume_uncovered", "", "\n/*\n#line 1 x /*\n*/ assume false; // */\n"),
    _hidden("assume_uncovered_by_a_mark", "", "\n/*\n\ufeff#line 1 x /*\n*/ assume false; // */\n"),
    _hidden("assume_uncovered_behind_a_zero_width", "", "\n/*\n\u200b#line 1 x /*\n*/ assume false; // */\n"),
    _hidden("assume_uncovered_behind_a_form_feed", "", "\n/*\n\f#line 1 x /*\n*/ assume false; // */\n"),
    _hidden("assume_uncovered_by_a_carriage_return", "", "\n/*\r#line 1 x /*\r*/ assume false; // */\n"),
    _hidden("assume_uncovered_behind_a_no_break_space", "", "\n/*\n\u00a0#line 1 x /*\n*/ assume false; // */\n"),
    _hidden("assume_uncovered_behind_a_vertical_tab", "", "\n/*\n\v#line 1 x /*\n*/ assume false; // */\n"),
    _hidden("line_in_a_verbatim_string", "", 'var t := @"\n#line 1 x"; assume false; var u := @"\n"; '),
    _hidden(
        "assume_uncovered_by_a_condition", "", "\n/*\n #if X\n*/ r := s; /*\n #else\n*/ assume false; /*\n #endif\n*/ "
    ),
]
_SIX = "lemma Six() returns (k: int) ensures k == 6 { k := 6; }"
_CHANGED = "r := s; var c := new int[1]; c[0] := 5; if !Sorted(r) || r[0] < Least() { %s assert false; }"
HEAP = [
    ("heaps changed in proofs", name, SORT, sort_with(_CHANGED % proof, _SIX))
    for name, proof in {
        "in_a_hint": "calc { c[0]; == { c[0] := Six(); } 6; }",
        "in_an_assert": "assert c[0] == 6 by { c[0] := Six(); }",
        "in_a_forall": "forall x: int ensures c[0] == 6 { c[0] := Six(); }",
        "in_a_block": "assert c[0] == 6 by { if true { c[0] := Six(); } }",
    }.items()
] + [
    (
        "heaps changed in proofs",
        "read_by_code",
        SORT,
        sort_with(
            "ghost var g := 1; var c := new seq<int>[1](_ => s); if g == 1 { c[0] := Pick(s); } else { c[0] := Pick(s); } r := c[0];",
            "lemma Pick(s: seq<int>) returns (k: seq<int>) ensures Sorted(k) && |k| == |s| && k[0] >= Least() "
            "requires |s| > 0 { k := seq(|s|, i => 3); }",
        ),
    )
]
FORGED_RESULTS = [
    (
        "forged output",
        f"results_behind_{name}",
        TOLL,
        TOLL
        + "{ r := 0; assert forall i {:matchinglooprewrite false} :: 0 <= i < 9 ==> @%s[i] == @%s[i + 1]; }"
        % ((f'"{end}Verifying Impl$$_module.__default.Toll ...{end}  [1 proof obligation]  verified{end}"',) * 2),
    )
    for name, end in {"a_form_feed": "\f", "a_vertical_tab": "\v", "a_separator": "\x1c", "a_line_end": "\n"}.items()
]
ATTACKS = (
    WEAKENED
    + DEFINED_AWAY
    + ASSUMED
    + UNPROVED
    + UNCHECKED
    + ENDLESS
    + OPEN_LOOPS
    + UNHEARD
    + SHADOWED
    + REFINED
    + HIDDEN
    + FILES
    + OUTPUT
    + LINES
    + HEAP
    + FORGED_RESULTS
)
OVERLOADS = {
    "deep parentheses": SORT.replace("r := s;", "var x := " + "(" * 20000 + "1" + ")" * 20000 + "; r := s;"),
    "deep blocks": SORT.replace("r := s;", "{" * 20000 + "}" * 20000 + " r := s;"),
    "deep negation": SORT.replace("r := s;", "assert " + "!" * 40000 + "true; r := s;"),
    "deep modules": "module M {" * 3000 + "}" * 3000 + SORT,
    "long operators": SORT.replace("r := s;", "assert " + "1 + " * 20000 + "1 > 0; r := s;"),
    "huge number": SORT.replace("r := s;", f"assert {'9' * 100000} > 0; r := s;"),
    "huge bit vector": SORT.replace("r := s;", "var x: bv100000 := 1; assert x * x * x == x; r := s;"),
    "many methods": SORT + "".join(f"method M{i}() {{ assert {i} >= 0; }}\n" for i in range(3000)),
    "hard arithmetic": SORT.replace(
        "r := s;", "assert forall x: int, y: int, z: int :: x > 2 && y > 2 ==> x*x*x + y*y*y != z*z*z; r := s;"
    ),
    "matching loop": SORT.replace("r := s;", "L(); r := s;")
    + "function F(x: int): int function G(x: int): int\n"
    + "lemma L() requires forall x {:trigger F(x)} :: F(x) == F(G(x)) + F(x + 1) ensures F(0) == 7 { }",
    "too long": SORT + "//" + "x" * 500000,
    "not text": SORT.replace("r := s;", "\ud800 r := s;"),
    "empty": "",
}
"""Candidates that try to break the judge or its patience."""
