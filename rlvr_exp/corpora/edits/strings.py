"""Families about strings: formatting, joining, testing."""

from rlvr_exp.corpora.edits.draw import Draw
from rlvr_exp.corpora.edits.family import Draft, family, rewritten
from rlvr_exp.corpora.edits.hosts import around_condition, around_value, swapped


@family
def percent_to_fstring(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    before, after = d.phrase(), d.pick(["", "!", " " + d.word(), ", " + d.word()])
    x = d.pick([a, f"{a}.{d.attribute()}"])
    host = around_value(d, f, a, b)
    say = f"Format the text in `{f}` with an f-string, not with %."
    pattern, rewrite = f'"{before} %s{after}" % $X', f'f"{before} {{$X}}{after}"'
    return swapped(host, pattern, rewrite, say, "f-string instead of %", X=x)


@family
def format_to_fstring(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    before, after = d.phrase(), d.pick(["", "!", " " + d.word(), ": " + d.word()])
    x = d.pick([a, f"{a}.{d.attribute()}", f"{b}[{a}]"])
    host = around_value(d, f, a, b)
    say = f"Format the text in `{f}` with an f-string, not with `format`."
    pattern, rewrite = f'"{before} {{}}{after}".format($X)', f'f"{before} {{$X}}{after}"'
    return swapped(host, pattern, rewrite, say, "f-string instead of format", X=x)


@family
def plus_to_fstring(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    text = d.phrase()
    x = d.pick([a, f"{a}.{d.attribute()}"])
    host = around_value(d, f, a, b)
    say = f"Build the text in `{f}` with an f-string, not with +."
    return swapped(host, f'"{text} " + $X', f'f"{text} {{$X}}"', say, "f-string instead of +", X=x)


@family
def two_in_fstring(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    text = d.pick([", ", ": ", " - ", f" {d.word()} "])
    host = around_value(d, f, a, b)
    say = f"Join `{a}` and `{b}` in `{f}` by an f-string."
    return swapped(host, f'$A + "{text}" + $B', f'f"{{$A}}{text}{{$B}}"', say, "one f-string", A=a, B=b)


@family
def begins_with(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    word = d.word()
    n = len(word)
    host = around_condition(d, f, a, b)
    say = f"Test the start of `{a}` in `{f}` by `startswith`."
    return swapped(host, f"$S[:{n}] == $T", "$S.startswith($T)", say, "use startswith", S=a, T=f'"{word}"')


@family
def ends_with(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    word = d.word()
    n = len(word)
    host = around_condition(d, f, a, b)
    say = f"Test the end of `{a}` in `{f}` by `endswith`."
    return swapped(host, f"$S[-{n}:] == $T", "$S.endswith($T)", say, "use endswith", S=a, T=f'"{word}"')


@family
def found_to_in(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    word = d.pick([f'"{d.word()}"', b])
    host = around_condition(d, f, a, b)
    say = f"Search in `{f}` by `in`, not by `find`."
    return swapped(host, "$S.find($T) != -1", "$T in $S", say, "use in, not find", S=a, T=word)


@family
def join_strings(d: Draw) -> Draft:
    f, a, t, i = d.function(), *d.variables(3)
    pattern = 'def $F($X):\n    $T = ""\n    for $I in $X:\n        $T += $I\n    return $T'
    rewrite = 'def $F($X):\n    return "".join($X)'
    say = f"Join the strings of `{f}` by `join`, without a loop."
    return rewritten(pattern, rewrite, say, "use join", F=f, X=a, T=t, I=i)


@family
def change_message(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    old, new = d.phrase(3), d.phrase(3) + d.pick(["!", " x", "?"])
    host = around_value(d, f, a, b)
    say = f'Change the text "{old}" in `{f}` to "{new}".'
    return swapped(host, f'"{old}"', f'"{new}"', say, f'say "{new}"')


@family
def lower_compare(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    word = d.word()
    host = around_condition(d, f, a, b)
    say = f'In `{f}`, compare `{a}` with "{word}" whatever its case, by `lower`.'
    return swapped(host, f'{a} == "{word}"', f'{a}.lower() == "{word}"', say, "ignore case")
