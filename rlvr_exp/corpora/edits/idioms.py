"""Families that say the same in Python's own words: comparisons, membership, arithmetic, literals."""

from rlvr_exp.corpora.edits.draw import Draw
from rlvr_exp.corpora.edits.family import Draft, family
from rlvr_exp.corpora.edits.hosts import around_condition, around_statement, around_value, swapped


@family
def equals_none(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    x = d.pick([a, f"{a}.{d.attribute()}", f"{b}[{a}]"])
    host = around_condition(d, f, a, b)
    say = f"In `{f}`, compare with None by `is`, not by `==`."
    return swapped(host, "$X == None", "$X is None", say, "use is None", X=x)


@family
def unequal_none(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    x = d.pick([a, f"{a}.{d.attribute()}", f"{b}({a})"])
    host = around_condition(d, f, a, b)
    say = f"In `{f}`, compare with None by `is not`, not by `!=`."
    return swapped(host, "$X != None", "$X is not None", say, "use is not None", X=x)


@family
def negated_in(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    host = around_condition(d, f, a, b)
    say = f"Write the membership test of `{f}` with `not in`."
    return swapped(host, "not $X in $Y", "$X not in $Y", say, "use not in", X=a, Y=b)


@family
def negated_is(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    host = around_condition(d, f, a, b)
    y = d.pick([b, "None"])
    say = f"Write the identity test of `{f}` with `is not`."
    return swapped(host, "not $X is $Y", "$X is not $Y", say, "use is not", X=a, Y=y)


@family
def type_check(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    kind = d.pick(["int", "str", "list", "dict", "float", d.type()])
    host = around_condition(d, f, a, b)
    say = f"Check the type in `{f}` by `isinstance`."
    return swapped(host, "type($X) == $T", "isinstance($X, $T)", say, "isinstance instead of type()", X=a, T=kind)


@family
def empty_length(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    host = around_condition(d, f, a, b)
    say = f"In `{f}`, test whether `{a}` is empty without its length."
    return swapped(host, "len($X) == 0", "not $X", say, "no len() == 0", X=a)


@family
def filled_length(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    host = around_condition(d, f, a, b)
    say = f"In `{f}`, test whether `{a}` has items by `bool`, without its length."
    return swapped(host, "len($X) > 0", "bool($X)", say, "no len() > 0", X=a)


@family
def equals_true(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    x = d.pick([a, f"{a}.{d.attribute()}", f"{d.function()}({b})"])
    host = around_condition(d, f, a, b)
    say = f"Drop the comparison with True in `{f}`."
    return swapped(host, "$X == True", "$X", say, "no == True", X=x)


@family
def equals_false(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    x = d.pick([a, f"{a}.{d.attribute()}", f"{d.function()}({b})"])
    host = around_condition(d, f, a, b)
    say = f"In `{f}`, use `not` and no comparison with False."
    return swapped(host, "$X == False", "not $X", say, "no == False", X=x)


@family
def augmented(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    o = d.operator()
    y = d.pick([b, str(d.number()), f"{b}.{d.attribute()}"])
    host = around_statement(d, f, a, b)
    say = f"Use augmented assignment for `{a}` in `{f}`."
    return swapped(host, f"$X = $X {o} $Y", f"$X {o}= $Y", say, f"use {o}=", X=a, Y=y)


@family
def chained_comparison(d: Draw) -> Draft:
    f, a, b, c = d.function(), *d.variables(3)
    o = d.pick(["<", "<="])
    low, high = d.pick([(b, c), (str(d.number(2, 40)), str(d.number(41, 99))), (b, str(d.number()))])
    host = around_condition(d, f, a, b, c)
    say = f"Chain the two comparisons of `{a}` in `{f}`."
    pattern = f"$A {o} $X and $X {o} $B"
    rewrite = f"$A {o} $X {o} $B"
    return swapped(host, pattern, rewrite, say, "chain the comparison", A=low, X=a, B=high)


@family
def either_value(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    one, two = d.pick([(str(d.number(2, 40)), str(d.number(41, 99))), (f'"{d.word()}"', f'"{d.phrase()} x"')])
    host = around_condition(d, f, a, b)
    say = f"Compare `{a}` in `{f}` with both values at once, by `in`."
    return swapped(host, "$X == $A or $X == $B", "$X in ($A, $B)", say, "one test with in", X=a, A=one, B=two)


@family
def de_morgan(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    old_word, new_word = d.pick([("and", "or"), ("or", "and")])
    host = around_condition(d, f, a, b)
    say = f"Move the `not` in `{f}` to each part of the condition."
    pattern, rewrite = f"not ($X {old_word} $Y)", f"not $X {new_word} not $Y"
    return swapped(host, pattern, rewrite, say, "no not before the bracket", X=a, Y=b)


@family
def get_with_default(d: Draw) -> Draft:
    f, a, k = d.function(), *d.variables(2)
    v = d.pick([str(d.number()), "None", f'"{d.word()}"', "0"])
    host = around_value(d, f, a, k)
    say = f"Look up `{k}` in `{f}` by `get` with a default."
    return swapped(host, "$D[$K] if $K in $D else $V", "$D.get($K, $V)", say, "use dict.get", D=a, K=k, V=v)


@family
def square(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    x = d.pick([a, b, f"{a}.{d.attribute()}"])
    host = around_value(d, f, a, b)
    say = f"Write the square in `{f}` as a power."
    return swapped(host, "$X * $X", "$X ** 2", say, "use ** 2", X=x)


@family
def set_display(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    items = d.pick([f"{a}, {b}", f"{d.number()}, {a}", f'"{d.word()}", {a}'])
    host = around_value(d, f, a, b)
    say = f"Write the set of `{f}` in braces."
    return swapped(host, "set([$$$A])", "{$$$A}", say, "set literal", A=items)


@family
def empty_display(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    call, new = d.pick([("dict()", "{}"), ("list()", "[]"), ("tuple()", "()")])
    host = around_value(d, f, a, b)
    return swapped(host, call, new, f"Write `{call}` in `{f}` as `{new}`.", f"{new} instead of {call}")


@family
def larger_of_two(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    o, name = d.pick([(">", "max"), ("<", "min")])
    host = around_value(d, f, a, b)
    say = f"Use `{name}` for the choice between `{a}` and `{b}` in `{f}`."
    return swapped(host, f"$A if $A {o} $B else $B", f"{name}($A, $B)", say, f"use {name}()", A=a, B=b)


@family
def range_from_zero(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    n = d.pick([a, f"len({a})", str(d.number()), f"{a} + 1"])
    host = around_value(d, f, a, b)
    say = f"Drop the zero at the start of the range in `{f}`."
    return swapped(host, "range(0, $N)", "range($N)", say, "range without 0", N=n)


@family
def reversed_sort(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    x = d.pick([a, f"{a}.{d.attribute()}", f"{d.function()}({b})"])
    host = around_value(d, f, a, b)
    say = f"Let `sorted` in `{f}` reverse the order itself."
    return swapped(host, "sorted($X)[::-1]", "sorted($X, reverse=True)", say, "use reverse=True", X=x)


@family
def sum_without_list(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    name = d.pick(["sum", "any", "all", "max"])
    value = d.value(b)
    host = around_value(d, f, a, b)
    say = f"Give `{name}` in `{f}` a generator, not a list."
    pattern = f"{name}([$E for $I in $X])"
    rewrite = f"{name}($E for $I in $X)"
    return swapped(host, pattern, rewrite, say, f"{name} without a list", E=value, I=b, X=a)


@family
def keys_of_dict(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    host = around_condition(d, f, a, b)
    say = f"Test for the key in `{f}` without `keys()`."
    return swapped(host, "$K in $D.keys()", "$K in $D", say, "no keys()", K=a, D=b)
