"""Families that say the same in Python's own words: comparisons, membership, arithmetic, literals."""

from rlvr_exp.corpora.edits.draw import Draw
from rlvr_exp.corpora.edits.family import Draft, family
from rlvr_exp.corpora.edits.hosts import around_condition, around_statement, around_value, replaced


@family
def equals_none(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    x = d.pick([a, f"{a}.{d.attribute()}", f"{b}[{a}]"])
    host = around_condition(d, f, a, b)
    say = f"In `{f}`, compare with None by `is`, not by `==`."
    return replaced(host, f"{x} == None", f"{x} is None", "$X == None", "$X is None", say, "use is None")


@family
def unequal_none(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    x = d.pick([a, f"{a}.{d.attribute()}", f"{b}({a})"])
    host = around_condition(d, f, a, b)
    say = f"In `{f}`, compare with None by `is not`, not by `!=`."
    return replaced(host, f"{x} != None", f"{x} is not None", "$X != None", "$X is not None", say, "use is not None")


@family
def negated_in(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    host = around_condition(d, f, a, b)
    say = f"Write the membership test of `{f}` with `not in`."
    return replaced(host, f"not {a} in {b}", f"{a} not in {b}", "not $X in $Y", "$X not in $Y", say, "use not in")


@family
def negated_is(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    host = around_condition(d, f, a, b)
    y = d.pick([b, "None"])
    say = f"Write the identity test of `{f}` with `is not`."
    return replaced(host, f"not {a} is {y}", f"{a} is not {y}", "not $X is $Y", "$X is not $Y", say, "use is not")


@family
def type_check(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    kind = d.pick(["int", "str", "list", "dict", "float", d.type()])
    host = around_condition(d, f, a, b)
    say = f"Check the type in `{f}` by `isinstance`."
    old, new = f"type({a}) == {kind}", f"isinstance({a}, {kind})"
    return replaced(host, old, new, "type($X) == $T", "isinstance($X, $T)", say, "isinstance instead of type()")


@family
def empty_length(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    host = around_condition(d, f, a, b)
    say = f"In `{f}`, test whether `{a}` is empty without its length."
    return replaced(host, f"len({a}) == 0", f"not {a}", "len($X) == 0", "not $X", say, "no len() == 0")


@family
def filled_length(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    host = around_condition(d, f, a, b)
    say = f"In `{f}`, test whether `{a}` has items by `bool`, without its length."
    return replaced(host, f"len({a}) > 0", f"bool({a})", "len($X) > 0", "bool($X)", say, "no len() > 0")


@family
def equals_true(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    x = d.pick([a, f"{a}.{d.attribute()}", f"{d.function()}({b})"])
    host = around_condition(d, f, a, b)
    say = f"Drop the comparison with True in `{f}`."
    return replaced(host, f"{x} == True", x, "$X == True", "$X", say, "no == True")


@family
def equals_false(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    x = d.pick([a, f"{a}.{d.attribute()}", f"{d.function()}({b})"])
    host = around_condition(d, f, a, b)
    say = f"In `{f}`, use `not` and no comparison with False."
    return replaced(host, f"{x} == False", f"not {x}", "$X == False", "not $X", say, "no == False")


@family
def augmented(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    o = d.operator()
    y = d.pick([b, str(d.number()), f"{b}.{d.attribute()}"])
    host = around_statement(d, f, a, b)
    say = f"Use augmented assignment for `{a}` in `{f}`."
    return replaced(host, f"{a} = {a} {o} {y}", f"{a} {o}= {y}", f"$X = $X {o} $Y", f"$X {o}= $Y", say, f"use {o}=")


@family
def chained_comparison(d: Draw) -> Draft:
    f, a, b, c = d.function(), *d.variables(3)
    o = d.pick(["<", "<="])
    low, high = d.pick([(b, c), (str(d.number(2, 40)), str(d.number(41, 99))), (b, str(d.number()))])
    host = around_condition(d, f, a, b, c)
    say = f"Chain the two comparisons of `{a}` in `{f}`."
    old, new = f"{low} {o} {a} and {a} {o} {high}", f"{low} {o} {a} {o} {high}"
    return replaced(host, old, new, f"$A {o} $X and $X {o} $B", f"$A {o} $X {o} $B", say, "chain the comparison")


@family
def either_value(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    one, two = d.pick([(str(d.number(2, 40)), str(d.number(41, 99))), (f'"{d.word()}"', f'"{d.phrase()} x"')])
    host = around_condition(d, f, a, b)
    say = f"Compare `{a}` in `{f}` with both values at once, by `in`."
    old, new = f"{a} == {one} or {a} == {two}", f"{a} in ({one}, {two})"
    return replaced(host, old, new, "$X == $A or $X == $B", "$X in ($A, $B)", say, "one test with in")


@family
def de_morgan(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    old_word, new_word = d.pick([("and", "or"), ("or", "and")])
    host = around_condition(d, f, a, b)
    say = f"Move the `not` in `{f}` to each part of the condition."
    old, new = f"not ({a} {old_word} {b})", f"not {a} {new_word} not {b}"
    pattern, rewrite = f"not ($X {old_word} $Y)", f"not $X {new_word} not $Y"
    return replaced(host, old, new, pattern, rewrite, say, "no not before the bracket")


@family
def get_with_default(d: Draw) -> Draft:
    f, a, k = d.function(), *d.variables(2)
    v = d.pick([str(d.number()), "None", f'"{d.word()}"', "0"])
    host = around_value(d, f, a, k)
    say = f"Look up `{k}` in `{f}` by `get` with a default."
    old, new = f"{a}[{k}] if {k} in {a} else {v}", f"{a}.get({k}, {v})"
    return replaced(host, old, new, "$D[$K] if $K in $D else $V", "$D.get($K, $V)", say, "use dict.get")


@family
def square(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    x = d.pick([a, b, f"{a}.{d.attribute()}"])
    host = around_value(d, f, a, b)
    say = f"Write the square in `{f}` as a power."
    return replaced(host, f"{x} * {x}", f"{x} ** 2", "$X * $X", "$X ** 2", say, "use ** 2")


@family
def set_display(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    items = d.pick([f"{a}, {b}", f"{d.number()}, {a}", f'"{d.word()}", {a}'])
    host = around_value(d, f, a, b)
    say = f"Write the set of `{f}` in braces."
    return replaced(host, f"set([{items}])", f"{{{items}}}", "set([$$$A])", "{$$$A}", say, "set literal")


@family
def empty_display(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    call, new = d.pick([("dict()", "{}"), ("list()", "[]"), ("tuple()", "()")])
    host = around_value(d, f, a, b)
    return replaced(host, call, new, call, new, f"Write `{call}` in `{f}` as `{new}`.", f"{new} instead of {call}")


@family
def larger_of_two(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    o, name = d.pick([(">", "max"), ("<", "min")])
    host = around_value(d, f, a, b)
    say = f"Use `{name}` for the choice between `{a}` and `{b}` in `{f}`."
    old, new = f"{a} if {a} {o} {b} else {b}", f"{name}({a}, {b})"
    return replaced(host, old, new, f"$A if $A {o} $B else $B", f"{name}($A, $B)", say, f"use {name}()")


@family
def range_from_zero(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    n = d.pick([a, f"len({a})", str(d.number()), f"{a} + 1"])
    host = around_value(d, f, a, b)
    say = f"Drop the zero at the start of the range in `{f}`."
    return replaced(host, f"range(0, {n})", f"range({n})", "range(0, $N)", "range($N)", say, "range without 0")


@family
def reversed_sort(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    x = d.pick([a, f"{a}.{d.attribute()}", f"{d.function()}({b})"])
    host = around_value(d, f, a, b)
    say = f"Let `sorted` in `{f}` reverse the order itself."
    old, new = f"sorted({x})[::-1]", f"sorted({x}, reverse=True)"
    return replaced(host, old, new, "sorted($X)[::-1]", "sorted($X, reverse=True)", say, "use reverse=True")


@family
def sum_without_list(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    name = d.pick(["sum", "any", "all", "max"])
    value = d.value(b)
    host = around_value(d, f, a, b)
    say = f"Give `{name}` in `{f}` a generator, not a list."
    old, new = f"{name}([{value} for {b} in {a}])", f"{name}({value} for {b} in {a})"
    return replaced(
        host, old, new, f"{name}([$E for $I in $X])", f"{name}($E for $I in $X)", say, f"{name} without a list"
    )


@family
def keys_of_dict(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    host = around_condition(d, f, a, b)
    say = f"Test for the key in `{f}` without `keys()`."
    old, new = f"{a} in {b}.keys()", f"{a} in {b}"
    return replaced(host, old, new, "$K in $D.keys()", "$K in $D", say, "no keys()")
