"""Families over sequences: built cell by cell, cut, joined, searched."""

from rlvr_exp.corpora.dafny.cells import all_cells, cell_term, claim, summed
from rlvr_exp.corpora.dafny.draw import Draw, plus
from rlvr_exp.corpora.dafny.family import Method, family, function


def _built(d: Draw, params: str, requires: list[str], length: str, cell: str) -> Method:
    """A result of `length` cells, each `cell`, in which `$` is its index."""
    r, i, j = d.one("r", "res", "out"), d.index(), d.index()
    here, there = cell.replace("$", i), cell.replace("$", j)
    of_length = f"|{r}| == {length}"
    return Method(
        params,
        f"{r}: seq<int>",
        requires=requires,
        ordered=True,
        ensures=[d.equal(f"|{r}|", length), d.all(j, length if d.chance(0.5) else f"|{r}|", f"{r}[{j}] == {there}")],
        plain=[
            f"""
{r} := [];
while |{r}| < {length}
@ |{r}| <= {length}
@ forall {j} :: 0 <= {j} < |{r}| ==> {r}[{j}] == {there}
  {r} := {r} + [{cell.replace("$", f"|{r}|")}];
~assert {of_length};
"""
        ],
        winded=[
            f"""
{r} := [];
var {i} := 0;
while {i} < {length}
@ 0 <= {i} <= {length}
@ |{r}| == {i}
@ forall {j} :: 0 <= {j} < {i} ==> {r}[{j}] == {there}
  {r} := {r} + [{here}];
  {i} := {i} + 1;
~assert {of_length};
"""
        ],
    )


@family("Build", "Generate", "List")
def seq_build(d: Draw) -> Method:
    n = d.number()
    param, need = d.natural(n)
    return _built(d, param, need, n, cell_term(d, "$"))


@family("Repeat", "Replicate", "Many")
def seq_repeat(d: Draw) -> Method:
    n, x = d.number(), d.value()
    param, need = d.natural(n)
    cell = d.one(x, f"{x} + {d.k(1, 20)}", f"{d.k(2, 9)} * {x}")
    return _built(d, d.one(f"{param}, {x}: int", f"{x}: int, {param}"), need, n, cell)


@family("MapSeq", "Transform", "Each")
def seq_map(d: Draw) -> Method:
    s = d.sequence()
    return _built(d, f"{s}: seq<int>", [], f"|{s}|", cell_term(d, f"{s}[$]"))


@family("Reverse", "Backwards", "Mirror")
def seq_reverse(d: Draw) -> Method:
    s, c = d.sequence(), d.k(0, 9)
    cell = d.one(f"{s}[|{s}| - 1 - $]", plus(f"{s}[|{s}| - 1 - $]", c))
    return _built(d, f"{s}: seq<int>", [], f"|{s}|", cell)


@family("Zip", "AddSeqs", "Pointwise")
def seq_zip(d: Draw) -> Method:
    s, t, a = d.sequence(), d.sequence(), d.k(2, 9)
    cell = d.one(f"{s}[$] + {t}[$]", f"{s}[$] - {t}[$]", f"{a} * {s}[$] + {t}[$]", f"{s}[$] + {a} * {t}[$]")
    return _built(d, f"{s}: seq<int>, {t}: seq<int>", [d.equal(f"|{s}|", f"|{t}|")], f"|{s}|", cell)


@family("Rotate", "Cycle", "Turn")
def seq_rotate(d: Draw) -> Method:
    s, k, r, t = d.sequence(), d.number(), d.one("r", "res", "out"), d.temporary()
    first, second = d.rng.choice(
        [(f"{s}[{k}..]", f"{s}[..{k}]"), (f"{s}[..{k}]", f"{s}[..{k}]"), (f"{s}[{k}..]", f"{s}[{k}..]")]
    )
    extra = f"[{d.k(0, 20)}]" if d.chance(0.7) else ""
    first, second = (
        d.rng.choice([(f"{first} + {extra}", second), (first, f"{second} + {extra}")]) if extra else (first, second)
    )
    return Method(
        f"{s}: seq<int>, {k}: int",
        f"{r}: seq<int>",
        requires=[d.one(f"0 <= {k} <= |{s}|", f"0 <= {k} && {k} <= |{s}|", f"0 <= {k} < |{s}|")],
        ensures=[d.equal(r, f"{first} + {second}")],
        plain=[f"{r} := {first} + {second};", f"{r} := {first};\n{r} := {r} + {second};"],
        winded=[
            f"var {t} := {second};\n~assert {t} == {second};\n{r} := {first};\n{r} := {r} + {t};\n~assert |{r}| >= |{t}|;",
            f"var {t} := {first};\n{r} := {t} + {second};\n~assert {r}[..|{t}|] == {t};",
        ],
    )


@family("Append", "Push", "Extend")
def seq_append(d: Draw) -> Method:
    s, x, r = d.sequence(), d.value(), d.one("r", "res", "out")
    v = d.one(x, f"{x} + {d.k(1, 20)}", f"{d.k(2, 9)} * {x}")
    front = d.chance(0.4)
    whole = f"[{v}] + {s}" if front else f"{s} + [{v}]"
    last = f"{r}[0] == {v}" if front else f"{r}[|{s}|] == {v}"
    rest = f"{r}[1..] == {s}" if front else f"{r}[..|{s}|] == {s}"
    return Method(
        f"{s}: seq<int>, {x}: int",
        f"{r}: seq<int>",
        ordered=True,
        ensures=[f"{r} == {whole}"]
        if d.chance(0.5)
        else [d.one(f"|{r}| == |{s}| + 1", f"|{r}| == 1 + |{s}|"), last, rest],
        plain=[f"{r} := {whole};\n~assert {last};"],
        winded=[
            f"{r} := {s};\n{r} := {whole.replace(s, r)};\n~assert |{r}| == |{s}| + 1;",
            f"{r} := [{v}];\n~assert |{r}| == 1;\n{r} := {f'{r} + {s}' if front else f'{s} + {r}'};\n~assert {last};",
        ],
    )


@family("Replace", "SetAt", "With")
def seq_replace(d: Draw) -> Method:
    s, i, x, r, j = d.sequence(), d.index(), d.value(), d.one("r", "res", "out"), d.index()
    v = d.one(x, f"{x} + {d.k(1, 20)}", f"{s}[{i}] + {x}", f"{d.k(2, 9)} * {s}[{i}]")
    params = f"{s}: seq<int>, {i}: int, {x}: int" if x in v else f"{s}: seq<int>, {i}: int"
    rest = f"forall {j} :: 0 <= {j} < |{s}| && {j} != {i} ==> {r}[{j}] == {s}[{j}]"
    return Method(
        params,
        f"{r}: seq<int>",
        requires=[d.one(f"0 <= {i} < |{s}|", f"0 <= {i} && {i} < |{s}|")],
        ordered=True,
        ensures=[f"{r} == {s}[{i} := {v}]"]
        if d.chance(0.4)
        else [d.equal(f"|{r}|", f"|{s}|"), f"{r}[{i}] == {v}", rest],
        plain=[f"{r} := {s}[{i} := {v}];\n~assert {r}[{i}] == {v};"],
        winded=[
            f"{r} := {s}[..{i}] + [{v}] + {s}[{i} + 1..];\n~assert |{r}| == |{s}|;",
            f"{r} := {s};\n~assert |{r}| == |{s}|;\n{r} := {r}[{i} := {v}];\n~assert {r}[{i}] == {v};",
        ],
    )


@family("Slice", "Take", "Part")
def seq_slice(d: Draw) -> Method:
    s, n, r, j = d.sequence(), d.number(), d.one("r", "res", "out"), d.index()
    front, fixed = d.chance(0.5), d.chance(0.5)
    n = str(d.k(1, 12)) if fixed else n
    cut = f"{s}[..{n}]" if front else f"{s}[{n}..]"
    length = n if front else f"|{s}| - {n}"
    cell = f"{s}[$]" if front else f"{s}[$ + {n}]"
    there = cell.replace("$", j)
    need = (
        d.one(f"|{s}| >= {n}", f"{n} <= |{s}|") if fixed else d.one(f"0 <= {n} <= |{s}|", f"0 <= {n} && {n} <= |{s}|")
    )
    return Method(
        f"{s}: seq<int>" if fixed else f"{s}: seq<int>, {n}: int",
        f"{r}: seq<int>",
        requires=[need],
        ordered=True,
        ensures=[d.equal(f"|{r}|", length), d.all(j, f"|{r}|", f"{r}[{j}] == {there}")],
        plain=[f"{r} := {cut};\n~assert |{r}| == {length};"],
        winded=[
            f"""
{r} := [];
while |{r}| < {length}
@ |{r}| <= {length}
@ forall {j} :: 0 <= {j} < |{r}| ==> {r}[{j}] == {there}
  {r} := {r} + [{cell.replace("$", f"|{r}|")}];
~assert |{r}| == {length};
"""
        ],
    )


def _folded(d: Draw, f: str, term: str, base: int) -> Method:
    """A function over the first n elements; `$` in the term is the element."""
    s, r, i = d.sequence(), d.result(), d.index()
    low, arg = d.one("p", "v"), d.one("n", "m")
    cell = f"{low}[{arg} - 1]"
    value = f"if {arg} == 0 then {base} else {f}({low}, {arg} - 1) + {term.replace('$', cell)}"
    whole = function(f, f"{low}: seq<int>, {arg}: int", "int", value, f"requires 0 <= {arg} <= |{low}|")
    return Method(
        f"{s}: seq<int>",
        f"{r}: int",
        ensures=[d.equal(r, f"{f}({s}, |{s}|)")],
        plain=[summed(r, i, f"{f}({s}, {i})", f"|{s}|", base, term.replace("$", f"{s}[{i}]"))],
        winded=[
            f"""
{r} := {base};
var {i} := 0;
while {i} != |{s}|
@ 0 <= {i} <= |{s}|
@ {r} == {f}({s}, {i})
~ |{s}| >= 0
  {i} := {i} + 1;
  {r} := {r} + {term.replace("$", f"{s}[{i} - 1]")};
"""
        ],
        before=whole,
    )


@family("SumSeq", "Total", "AddUp")
def seq_sum(d: Draw) -> Method:
    a, b = d.k(2, 9), d.k(1, 9)
    term = d.one("$", f"{a} * $", f"$ * {a}", "$ * $", f"($ + {b})", f"({a} * $ - {b})")
    return _folded(d, d.one("Sum", "Total", "Acc", "S"), term, d.k(0, 9))


@family("CountSeq", "HowMany", "Occurrences")
def seq_count(d: Draw) -> Method:
    good, _ = claim(d)
    return _folded(d, d.one("Count", "Cnt", "Number", "C"), f"(if {good} then {d.k(1, 3)} else 0)", 0)


@family("Member", "Has", "Includes")
def seq_member(d: Draw) -> Method:
    s, x, r, i, j = d.sequence(), d.value(), d.result(), d.index(), d.index()
    sought = x if d.chance(0.5) else str(d.k(0, 50))
    whole = f"exists {j} :: 0 <= {j} < |{s}| && {s}[{j}] == {sought}"
    return Method(
        f"{s}: seq<int>, {x}: int" if sought == x else f"{s}: seq<int>",
        f"{r}: bool",
        ensures=[d.one(f"{r} <==> {sought} in {s}", f"{r} == ({sought} in {s})", f"{r} <==> {whole}")],
        plain=[f"{r} := {sought} in {s};"],
        winded=[
            f"""
{r} := false;
var {i} := 0;
while {i} < |{s}|
@ 0 <= {i} <= |{s}|
@ {r} <==> {sought} in {s}[..{i}]
  if {s}[{i}] == {sought}
    {r} := true;
  {i} := {i} + 1;
~assert {i} == |{s}|;
"""
        ],
    )


@family("AllSeq", "Every", "Satisfy")
def seq_every(d: Draw) -> Method:
    return all_cells(d, s := d.sequence(), "seq<int>", f"|{s}|")
