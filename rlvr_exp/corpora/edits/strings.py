"""Families about strings: formatting, joining, testing."""

from rlvr_exp.corpora.edits.draw import Draw
from rlvr_exp.corpora.edits.family import Draft, family
from rlvr_exp.corpora.edits.hosts import around_condition, around_value, replaced


@family
def percent_to_fstring(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    before, after = d.phrase(), d.pick(["", "!", " " + d.word(), ", " + d.word()])
    x = d.pick([a, f"{a}.{d.attribute()}"])
    host = around_value(d, f, a, b)
    say = f"Format the text in `{f}` with an f-string, not with %."
    old, new = f'"{before} %s{after}" % {x}', f'f"{before} {{{x}}}{after}"'
    pattern, rewrite = f'"{before} %s{after}" % $X', f'f"{before} {{$X}}{after}"'
    return replaced(host, old, new, pattern, rewrite, say, "f-string instead of %")


@family
def format_to_fstring(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    before, after = d.phrase(), d.pick(["", "!", " " + d.word(), ": " + d.word()])
    x = d.pick([a, f"{a}.{d.attribute()}", f"{b}[{a}]"])
    host = around_value(d, f, a, b)
    say = f"Format the text in `{f}` with an f-string, not with `format`."
    old, new = f'"{before} {{}}{after}".format({x})', f'f"{before} {{{x}}}{after}"'
    pattern, rewrite = f'"{before} {{}}{after}".format($X)', f'f"{before} {{$X}}{after}"'
    return replaced(host, old, new, pattern, rewrite, say, "f-string instead of format")


@family
def plus_to_fstring(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    text = d.phrase()
    x = d.pick([a, f"{a}.{d.attribute()}"])
    host = around_value(d, f, a, b)
    say = f"Build the text in `{f}` with an f-string, not with +."
    old, new = f'"{text} " + {x}', f'f"{text} {{{x}}}"'
    return replaced(host, old, new, f'"{text} " + $X', f'f"{text} {{$X}}"', say, "f-string instead of +")


@family
def two_in_fstring(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    text = d.pick([", ", ": ", " - ", f" {d.word()} "])
    host = around_value(d, f, a, b)
    say = f"Join `{a}` and `{b}` in `{f}` by an f-string."
    old, new = f'{a} + "{text}" + {b}', f'f"{{{a}}}{text}{{{b}}}"'
    return replaced(host, old, new, f'$A + "{text}" + $B', f'f"{{$A}}{text}{{$B}}"', say, "one f-string")


@family
def begins_with(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    word = d.word()
    n = len(word)
    host = around_condition(d, f, a, b)
    say = f"Test the start of `{a}` in `{f}` by `startswith`."
    old, new = f'{a}[:{n}] == "{word}"', f'{a}.startswith("{word}")'
    return replaced(host, old, new, f"$S[:{n}] == $T", "$S.startswith($T)", say, "use startswith")


@family
def ends_with(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    word = d.word()
    n = len(word)
    host = around_condition(d, f, a, b)
    say = f"Test the end of `{a}` in `{f}` by `endswith`."
    old, new = f'{a}[-{n}:] == "{word}"', f'{a}.endswith("{word}")'
    return replaced(host, old, new, f"$S[-{n}:] == $T", "$S.endswith($T)", say, "use endswith")


@family
def found_to_in(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    word = d.pick([f'"{d.word()}"', b])
    host = around_condition(d, f, a, b)
    say = f"Search in `{f}` by `in`, not by `find`."
    old, new = f"{a}.find({word}) != -1", f"{word} in {a}"
    return replaced(host, old, new, "$S.find($T) != -1", "$T in $S", say, "use in, not find")


@family
def join_strings(d: Draw) -> Draft:
    f, a, t, i = d.function(), *d.variables(3)
    before = f'def {f}({a}):\n    {t} = ""\n    for {i} in {a}:\n        {t} += {i}\n    return {t}'
    after = f'def {f}({a}):\n    return "".join({a})'
    rule = {
        "pattern": 'def $F($X):\n    $T = ""\n    for $I in $X:\n        $T += $I\n    return $T',
        "rewrite": 'def $F($X):\n    return "".join($X)',
    }
    return Draft(before, after, f"Join the strings of `{f}` by `join`, without a loop.", "use join", (rule,))


@family
def change_message(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    old, new = d.phrase(3), d.phrase(3) + d.pick(["!", " x", "?"])
    host = around_value(d, f, a, b)
    say = f'Change the text "{old}" in `{f}` to "{new}".'
    return replaced(host, f'"{old}"', f'"{new}"', f'"{old}"', f'"{new}"', say, f'say "{new}"')


@family
def lower_compare(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    word = d.word()
    host = around_condition(d, f, a, b)
    say = f'In `{f}`, compare `{a}` with "{word}" whatever its case, by `lower`.'
    tests = ""
    old, new = f'{a} == "{word}"', f'{a}.lower() == "{word}"'
    return replaced(host, old, new, f'{a} == "{word}"', f'{a}.lower() == "{word}"', say, "ignore case", tests=tests)
