"""Families over arrays: fills, scans, searches, changes in place."""

from rlvr_exp.corpora.dafny.cells import all_cells, cell_term, claim, summed
from rlvr_exp.corpora.dafny.draw import Draw, plus
from rlvr_exp.corpora.dafny.family import Method, family, function


@family("Fill", "Set", "Clear", "Init")
def fill(d: Draw) -> Method:
    a, i, j = d.array(), d.index(), d.index()
    v = str(d.k(0, 50)) if d.chance(0.5) else cell_term(d, "$")
    here, there = v.replace("$", i), v.replace("$", j)
    return Method(
        f"{a}: array<int>",
        "",
        modifies=a,
        ensures=[d.all(j, f"{a}.Length", f"{a}[{j}] == {there}")],
        plain=[f"forall {i} | 0 <= {i} < {a}.Length\n  {a}[{i}] := {here};"],
        winded=[
            f"""
var {i} := 0;
while {i} < {a}.Length
@ 0 <= {i} <= {a}.Length
@ forall {j} :: 0 <= {j} < {i} ==> {a}[{j}] == {there}
  {a}[{i}] := {here};
  {i} := {i} + 1;
~assert {i} == {a}.Length;
""",
            f"""
var {i} := {a}.Length;
while {i} > 0
@ 0 <= {i} <= {a}.Length
@ forall {j} :: {i} <= {j} < {a}.Length ==> {a}[{j}] == {there}
  {i} := {i} - 1;
  {a}[{i}] := {here};
~assert {i} == 0;
""",
        ],
    )


@family("Prefix", "FillFirst", "Head")
def fill_prefix(d: Draw) -> Method:
    a, n, i, j = d.array(), d.number(), d.index(), d.index()
    v = str(d.k(0, 50)) if d.chance(0.5) else cell_term(d, "$")
    here, there = v.replace("$", i), v.replace("$", j)
    return Method(
        f"{a}: array<int>, {n}: int",
        "",
        requires=[d.one(f"0 <= {n} <= {a}.Length", f"0 <= {n} && {n} <= {a}.Length")],
        modifies=a,
        ensures=[d.all(j, n, f"{a}[{j}] == {there}")],
        plain=[f"forall {i} | 0 <= {i} < {n}\n  {a}[{i}] := {here};"],
        winded=[
            f"""
var {i} := 0;
while {i} < {n}
@ 0 <= {i} <= {n}
@ forall {j} :: 0 <= {j} < {i} ==> {a}[{j}] == {there}
~ {n} <= {a}.Length
  {a}[{i}] := {here};
  {i} := {i} + 1;
"""
        ],
    )


@family("Update", "Map", "Shift", "Change")
def change_all(d: Draw) -> Method:
    a, i, j = d.array(), d.index(), d.index()
    v = cell_term(d, "$")
    here, there = v.replace("$", f"{a}[{i}]"), v.replace("$", f"old({a}[{j}])")
    return Method(
        f"{a}: array<int>",
        "",
        modifies=a,
        ensures=[d.all(j, f"{a}.Length", f"{a}[{j}] == {there}")],
        plain=[f"forall {i} | 0 <= {i} < {a}.Length\n  {a}[{i}] := {here};"],
        winded=[
            f"""
var {i} := 0;
while {i} < {a}.Length
@ 0 <= {i} <= {a}.Length
@ forall {j} :: 0 <= {j} < {i} ==> {a}[{j}] == {there}
@ forall {j} :: {i} <= {j} < {a}.Length ==> {a}[{j}] == old({a}[{j}])
  {a}[{i}] := {here};
  {i} := {i} + 1;
~assert {i} == {a}.Length;
"""
        ],
    )


@family("Copy", "Into", "Transfer")
def copy_into(d: Draw) -> Method:
    a, b, i, j = d.array(), d.array(), d.index(), d.index()
    v = "$" if d.chance(0.3) else cell_term(d, "$")
    here, there = v.replace("$", f"{a}[{i}]"), v.replace("$", f"{a}[{j}]")
    return Method(
        f"{a}: array<int>, {b}: array<int>",
        "",
        requires=[d.one(f"{a} != {b}", f"{b} != {a}"), d.equal(f"{a}.Length", f"{b}.Length")],
        modifies=b,
        ensures=[d.all(j, f"{b}.Length", f"{b}[{j}] == {there}")],
        plain=[f"forall {i} | 0 <= {i} < {a}.Length\n  {b}[{i}] := {here};"],
        winded=[
            f"""
var {i} := 0;
while {i} < {b}.Length
@ 0 <= {i} <= {b}.Length
@ forall {j} :: 0 <= {j} < {i} ==> {b}[{j}] == {there}
~ {a}.Length == {b}.Length
  {b}[{i}] := {here};
  {i} := {i} + 1;
"""
        ],
    )


@family("Range", "Table", "Build")
def new_array(d: Draw) -> Method:
    r, n, i, j = d.one("r", "res", "out"), d.number(), d.index(), d.index()
    v = str(d.k(0, 50)) if d.chance(0.3) else cell_term(d, "$")
    here, there = v.replace("$", i), v.replace("$", j)
    param, need = d.natural(n)
    return Method(
        param,
        f"{r}: array<int>",
        requires=need,
        ordered=True,
        ensures=[d.equal(f"{r}.Length", n), d.all(j, n, f"{r}[{j}] == {there}")],
        plain=[
            f"{r} := new int[{n}];\nforall {i} | 0 <= {i} < {n}\n  {r}[{i}] := {here};",
            f"{r} := new int[{n}]({i} => {here});",
        ],
        winded=[
            f"""
{r} := new int[{n}];
var {i} := 0;
while {i} < {n}
@ 0 <= {i} <= {n}
@ forall {j} :: 0 <= {j} < {i} ==> {r}[{j}] == {there}
~ {r}.Length == {n}
  {r}[{i}] := {here};
  {i} := {i} + 1;
"""
        ],
    )


@family("Find", "IndexOf", "Search", "Locate")
def find(d: Draw) -> Method:
    a, x, r, j = d.array(), d.value(), d.result(), d.index()
    sought = x if d.chance(0.6) else str(d.k(0, 50))
    params = f"{a}: array<int>, {x}: int" if sought == x else f"{a}: array<int>"
    return Method(
        params,
        f"{r}: int",
        ordered=True,
        ensures=[
            f"0 <= {r} <= {a}.Length",
            d.one(f"{r} < {a}.Length ==> {a}[{r}] == {sought}", f"{r} != {a}.Length ==> {a}[{r}] == {sought}"),
            d.all(j, r, f"{a}[{j}] != {sought}"),
        ],
        plain=[
            f"""
{r} := 0;
while {r} < {a}.Length && {a}[{r}] != {sought}
@ 0 <= {r} <= {a}.Length
@ forall {j} :: 0 <= {j} < {r} ==> {a}[{j}] != {sought}
  {r} := {r} + 1;
~assert {r} <= {a}.Length;
"""
        ],
        winded=[
            f"""
{r} := 0;
while {r} < {a}.Length
@ 0 <= {r} <= {a}.Length
@ forall {j} :: 0 <= {j} < {r} ==> {a}[{j}] != {sought}
  if {a}[{r}] == {sought}
    ~assert {r} < {a}.Length;
    return;
  {r} := {r} + 1;
"""
        ],
    )


@family("AllHold", "Every", "All")
def every(d: Draw) -> Method:
    return all_cells(d, a := d.array(), "array<int>", f"{a}.Length", by_and=True)


@family("Exists", "Some", "Contains")
def some(d: Draw) -> Method:
    a, r, i, j = d.array(), d.result(), d.index(), d.index()
    good, _ = claim(d)
    cell = f"{a}[{j}]"
    whole = f"exists {j} :: 0 <= {j} < {a}.Length && {good.replace('$', cell)}"
    return Method(
        f"{a}: array<int>",
        f"{r}: bool",
        ensures=[d.one(f"{r} <==> {whole}", f"{r} == ({whole})")],
        plain=[f"{r} := {whole};"],
        winded=[
            f"""
{r} := false;
var {i} := 0;
while {i} < {a}.Length
@ 0 <= {i} <= {a}.Length
@ {r} <==> exists {j} :: 0 <= {j} < {i} && {good.replace("$", cell)}
  if {good.replace("$", f"{a}[{i}]")}
    {r} := true;
  {i} := {i} + 1;
~assert {i} == {a}.Length;
"""
        ],
    )


def _array_extreme(d: Draw, sign: str) -> Method:
    """The extreme cell; with a constant, the extreme of the cells and that constant."""
    a, r, i, j = d.array(), d.result(), d.index(), d.index()
    rel = sign.translate(FLIP) + "="
    start = f"{a}[0]" if d.chance(0.4) else str(d.k(0, 50))
    empty = start.isdigit()
    claims = [d.all(j, f"{a}.Length", f"{a}[{j}] {rel} {r}")]
    claims += [d.one(f"{r} {sign}= {start}", f"{start} {rel} {r}")] if empty else []
    bound = f"@ forall {j} :: 0 <= {j} < {i} ==> {a}[{j}] {rel} {r}"
    seen = ""
    if not empty and d.chance(0.5):
        claims += [f"exists {j} :: 0 <= {j} < {a}.Length && {a}[{j}] == {r}"]
        seen = f"@ exists {j} :: 0 <= {j} < {i} && {a}[{j}] == {r}"
    kept = f"@ {r} {sign}= {start}" if empty else ""
    first = 0 if empty else 1
    return Method(
        f"{a}: array<int>",
        f"{r}: int",
        requires=[] if empty else [d.one(f"{a}.Length > 0", f"{a}.Length >= 1", f"0 < {a}.Length")],
        ensures=claims,
        plain=[
            f"""
{r} := {start};
var {i} := {first};
while {i} < {a}.Length
@ {first} <= {i} <= {a}.Length
{bound}
{kept}
{seen}
  if {a}[{i}] {sign} {r}
    {r} := {a}[{i}];
  {i} := {i} + 1;
~assert {r} {sign}= {start};
"""
        ],
        winded=[
            f"""
{r} := {start};
var {i} := 0;
while {i} < {a}.Length
@ 0 <= {i} <= {a}.Length
{bound}
{kept}
{f"@ {r} == {a}[0] || {seen[2:]}" if seen else ""}
~ {i} == 0 ==> {r} == {start}
  {r} := if {a}[{i}] {sign} {r} then {a}[{i}] else {r};
  {i} := {i} + 1;
"""
        ],
    )


FLIP = str.maketrans("<>", "><")


@family("ArrayMax", "MaxOf", "Peak")
def array_max(d: Draw) -> Method:
    return _array_extreme(d, ">")


@family("ArrayMin", "MinOf", "Bottom")
def array_min(d: Draw) -> Method:
    return _array_extreme(d, "<")


def _folded(d: Draw, f: str, term: str, base: int) -> Method:
    """A function over the first n cells; `$` in the term is the cell."""
    a, r, i = d.array(), d.result(), d.index()
    low, arg = "b" if a != "b" else "a", "n"
    cell = f"{low}[{arg} - 1]"
    value = f"if {arg} == 0 then {base} else {f}({low}, {arg} - 1) + {term.replace('$', cell)}"
    whole = function(
        f, f"{low}: array<int>, {arg}: int", "int", value, f"requires 0 <= {arg} <= {low}.Length", f"reads {low}"
    )
    return Method(
        f"{a}: array<int>",
        f"{r}: int",
        ensures=[d.equal(r, f"{f}({a}, {a}.Length)")],
        plain=[summed(r, i, f"{f}({a}, {i})", f"{a}.Length", base, term.replace("$", f"{a}[{i}]"))],
        winded=[
            f"""
{r} := {base};
var {i} := 1;
while {i} <= {a}.Length
@ 1 <= {i} <= {a}.Length + 1
@ {r} == {f}({a}, {i} - 1)
~ {i} > 0
  {r} := {r} + {term.replace("$", f"{a}[{i} - 1]")};
  {i} := {i} + 1;
"""
        ],
        before=whole,
    )


@family("SumArray", "Total", "Add")
def array_sum(d: Draw) -> Method:
    a, b = d.k(2, 9), d.k(1, 9)
    term = d.one("$", f"{a} * $", f"$ * {a}", "$ * $", f"($ + {b})", f"({a} * $ - {b})")
    return _folded(d, d.one("Sum", "Total", "Acc", "S"), term, d.k(0, 9))


@family("CountIf", "HowMany", "Count")
def array_count(d: Draw) -> Method:
    good, _ = claim(d)
    yes = d.k(1, 3)
    return _folded(d, d.one("Count", "Cnt", "Number", "C"), f"(if {good} then {yes} else 0)", 0)


@family("SwapCells", "Exchange", "Trade")
def swap_cells(d: Draw) -> Method:
    a, i, j, t = d.array(), d.index(), d.index(), d.temporary()
    c = d.k(0, 9)
    right = plus(f"old({a}[{i}])", c)
    return Method(
        f"{a}: array<int>, {i}: int, {j}: int",
        "",
        requires=[
            f"0 <= {i} < {a}.Length",
            d.one(f"0 <= {j} < {a}.Length", f"0 <= {j} && {j} < {a}.Length"),
            f"{i} != {j}",
        ],
        modifies=a,
        ensures=[d.equal(f"{a}[{i}]", f"old({a}[{j}])"), d.equal(f"{a}[{j}]", right)],
        plain=[f"{a}[{i}], {a}[{j}] := {a}[{j}], {plus(f'{a}[{i}]', c)};"],
        winded=[
            f"var {t} := {a}[{i}];\n{a}[{i}] := {a}[{j}];\n~assert {t} == old({a}[{i}]);\n{a}[{j}] := {plus(t, c)};",
            f"var {t} := {plus(f'{a}[{i}]', c)};\n{a}[{i}] := {a}[{j}];\n{a}[{j}] := {t};\n~assert {a}[{j}] == {t};",
        ],
    )


@family("Put", "Store", "Assign")
def put(d: Draw) -> Method:
    a, i, j, x = d.array(), d.index(), d.index(), d.value()
    v = cell_term(d, x)
    return Method(
        f"{a}: array<int>, {i}: int, {x}: int",
        "",
        requires=[d.one(f"0 <= {i} < {a}.Length", f"0 <= {i} && {i} < {a}.Length")],
        modifies=a,
        ensures=[
            d.equal(f"{a}[{i}]", v),
            f"forall {j} :: 0 <= {j} < {a}.Length && {j} != {i} ==> {a}[{j}] == old({a}[{j}])",
        ][: d.k(1, 2)],
        plain=[f"{a}[{i}] := {v};\n~assert {a}[{i}] == {v};"],
        winded=[f"{a}[{i}] := {x};\n~assert {a}[{i}] == {x};\n{a}[{i}] := {v.replace(x, f'{a}[{i}]')};"],
    )
