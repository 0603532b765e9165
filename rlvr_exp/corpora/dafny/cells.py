"""Parts that families over arrays and sequences share: terms and claims of a cell, loops over all cells. No family."""

from rlvr_exp.corpora.dafny.draw import Draw
from rlvr_exp.corpora.dafny.family import Method


def cell_term(d: Draw, value: str) -> str:
    """A term over an index or a cell, `value`."""
    a, b = d.k(2, 9), d.k(1, 20)
    return d.one(f"{value} + {b}", f"{a} * {value}", f"{a} * {value} + {b}", f"{value} - {b}", f"{b} - {value}")


def claim(d: Draw) -> tuple[str, str]:
    """A claim about a cell and its contrary."""
    c, k = d.k(0, 50), d.k(2, 9)
    return d.rng.choice(
        [
            (f"$ > {c}", f"$ <= {c}"),
            (f"$ < {c}", f"$ >= {c}"),
            (f"$ != {c}", f"$ == {c}"),
            (f"$ % {k} == 0", f"$ % {k} != 0"),
        ]
    )


def summed(r: str, i: str, known: str, size: str, base: int, term: str) -> str:
    """Adding a term for each cell. `known`: the expression for the sum over the first `i` cells."""
    return f"""
{r} := {base};
var {i} := 0;
while {i} < {size}
@ 0 <= {i} <= {size}
@ {r} == {known}
  {r} := {r} + {term};
  {i} := {i} + 1;
~assert {i} == {size};
"""


def all_cells(d: Draw, cells: str, kind: str, size: str, by_and: bool = False) -> Method:
    """Whether a claim holds of every cell. `kind`: the type of `cells`; `by_and`: a loop may also join the claims."""
    r, i, j = d.result(), d.index(), d.index()
    good, bad = claim(d)
    whole = f"forall {j} :: 0 <= {j} < {size} ==> {good.replace('$', f'{cells}[{j}]')}"
    head = f"""
{r} := true;
var {i} := 0;
while {i} < {size}
@ 0 <= {i} <= {size}
@ {r} <==> forall {j} :: 0 <= {j} < {i} ==> {good.replace("$", f"{cells}[{j}]")}
"""
    found = f"""  if {bad.replace("$", f"{cells}[{i}]")}
    {r} := false;
  {i} := {i} + 1;
~assert {i} == {size};
"""
    joined = f"""~ {i} >= 0
  {r} := {r} && {good.replace("$", f"{cells}[{i}]")};
  {i} := {i} + 1;
"""
    return Method(
        f"{cells}: {kind}",
        f"{r}: bool",
        ensures=[d.one(f"{r} <==> {whole}", f"{r} == ({whole})")],
        plain=[f"{r} := {whole};"],
        winded=[head + found, head + joined] if by_and else [head + found],
    )
