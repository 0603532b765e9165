"""Families about loops, branches and exceptions."""

from rlvr_exp.corpora.edits.draw import Draw
from rlvr_exp.corpora.edits.family import Draft, family, rewritten, swap
from rlvr_exp.corpora.edits.hosts import around_statement, swapped


@family
def loop_to_comprehension(d: Draw) -> Draft:
    f, a, t, i = d.function(), *d.variables(3)
    value = d.value(i)
    pattern = "def $F($X):\n    $T = []\n    for $I in $X:\n        $T.append($E)\n    return $T"
    rewrite = "def $F($X):\n    return [$E for $I in $X]"
    say = f"Write the loop of `{f}` as a list comprehension."
    return rewritten(pattern, rewrite, say, "use a comprehension", F=f, X=a, T=t, I=i, E=value)


@family
def comprehension_to_loop(d: Draw) -> Draft:
    f, a, i = d.function(), *d.variables(2)
    t = d.pick(["found", "result", "made", "items"])
    value = d.value(i)
    say = f"Write the comprehension of `{f}` as a loop that fills `{t}`."
    pattern = "def $F($X):\n    return [$E for $I in $X]"
    rewrite = f"def $F($X):\n    {t} = []\n    for $I in $X:\n        {t}.append($E)\n    return {t}"
    return rewritten(pattern, rewrite, say, f"a loop that fills {t}", F=f, X=a, I=i, E=value)


@family
def filtered_comprehension(d: Draw) -> Draft:
    f, a, t, i = d.function(), *d.variables(3)
    test = d.test(i)
    say = f"Filter in `{f}` by a list comprehension."
    pattern = "def $F($X):\n    $T = []\n    for $I in $X:\n        if $C:\n            $T.append($I)\n    return $T"
    rewrite = "def $F($X):\n    return [$I for $I in $X if $C]"
    return rewritten(pattern, rewrite, say, "filter by comprehension", F=f, X=a, T=t, I=i, C=test)


@family
def loop_to_sum(d: Draw) -> Draft:
    f, a, t, i = d.function(), *d.variables(3)
    value = d.pick([i, d.value(i)])
    pattern = "def $F($X):\n    $T = 0\n    for $I in $X:\n        $T += $E\n    return $T"
    rewrite = "def $F($X):\n    return sum($E for $I in $X)"
    say = f"Add up in `{f}` by `sum`."
    return rewritten(pattern, rewrite, say, "use sum", F=f, X=a, T=t, I=i, E=value)


@family
def loop_to_any(d: Draw) -> Draft:
    f, a, i = d.function(), *d.variables(2)
    test = d.test(i)
    one, two, name = d.pick([("True", "False", "any"), ("False", "True", "all")])
    pattern = f"def $F($X):\n    for $I in $X:\n        if $C:\n            return {one}\n    return {two}"
    rewrite = f"def $F($X):\n    return {name}({'$C' if name == 'any' else 'not $C'} for $I in $X)"
    say = f"Replace the loop of `{f}` by `{name}`."
    return rewritten(pattern, rewrite, say, f"use {name}", F=f, X=a, I=i, C=test)


@family
def early_return(d: Draw) -> Draft:
    f, a, b, t = d.function(), *d.variables(3)
    test, one, two = d.test(a), d.value(a, b), d.value(b)
    pattern = "def $F($$$P):\n    if $C:\n        $T = $A\n    else:\n        $T = $B\n    return $T"
    rewrite = "def $F($$$P):\n    if $C:\n        return $A\n    return $B"
    say = f"Return early in `{f}`, without `{t}`."
    return rewritten(pattern, rewrite, say, "return early", F=f, P=f"{a}, {b}", C=test, T=t, A=one, B=two)


@family
def drop_else(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    test, one, two = d.test(a), d.value(a, b), d.value(b)
    pattern = "def $F($$$P):\n    if $C:\n        return $A\n    else:\n        return $B"
    rewrite = "def $F($$$P):\n    if $C:\n        return $A\n    return $B"
    say = f"Drop the `else` after the return in `{f}`."
    return rewritten(pattern, rewrite, say, "no else after return", F=f, P=f"{a}, {b}", C=test, A=one, B=two)


@family
def if_to_ternary(d: Draw) -> Draft:
    f, a, b, t = d.function(), *d.variables(3)
    test, one, two = d.test(a), d.number(), d.number()
    host = around_statement(d, f, a, b)
    say = f"Assign `{t}` in `{f}` by a conditional expression."
    pattern = "if $C:\n    $T = $A\nelse:\n    $T = $B"
    rewrite = "$T = $A if $C else $B"
    return swapped(host, pattern, rewrite, say, "one line for the if", C=test, T=t, A=str(one), B=str(two))


@family
def ternary_to_if(d: Draw) -> Draft:
    f, a, b, t = d.function(), *d.variables(3)
    test, one, two = d.test(a), d.number(), d.number()
    host = around_statement(d, f, a, b)
    say = f"Assign `{t}` in `{f}` by an if statement."
    pattern = "$T = $A if $C else $B"
    rewrite = "if $C:\n    $T = $A\nelse:\n    $T = $B"
    return swapped(host, pattern, rewrite, say, "spell out the if", C=test, T=t, A=str(one), B=str(two))


@family
def use_enumerate(d: Draw) -> Draft:
    f, a, i, v = d.function(), *d.variables(3)
    g = d.pick(["print", "use", "send", d.function()])
    host = f"def {f}({a}):\n    @"
    pattern = "for $I in range(len($X)):\n    $G($I, $X[$I])"
    rewrite = f"for $I, {v} in enumerate($X):\n    $G($I, {v})"
    say = f"Loop in `{f}` by `enumerate`, the item called `{v}`."
    return swapped(host, pattern, rewrite, say, f"enumerate with {v}", I=i, X=a, G=g)


@family
def use_items(d: Draw) -> Draft:
    f, a, k, v = d.function(), *d.variables(3)
    g = d.pick(["print", "use", "send", d.function()])
    host = f"def {f}({a}):\n    @"
    pattern = "for $K in $D:\n    $G($K, $D[$K])"
    rewrite = f"for $K, {v} in $D.items():\n    $G($K, {v})"
    say = f"Loop in `{f}` over `items`, the value called `{v}`."
    return swapped(host, pattern, rewrite, say, f"items() with {v}", K=k, D=a, G=g)


@family
def narrow_except(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    kind = d.pick(["ValueError", "KeyError", "TypeError", "OSError", "IndexError"])
    host = around_statement(d, f, a, b)
    call, v = f"{b} = {d.function()}({a})", d.number()
    say = f"Catch only {kind} in `{f}`."
    pattern = "try:\n    $$$A\nexcept:\n    $$$B"
    rewrite = f"try:\n    $$$A\nexcept {kind}:\n    $$$B"
    return swapped(host, pattern, rewrite, say, f"except {kind}", A=call, B=f"{b} = {v}")


@family
def raise_from(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    kind, caught = d.pick(["ValueError", "RuntimeError", "TypeError"]), d.pick(["KeyError", "OSError", "IndexError"])
    e = d.pick(["e", "err", "exc", "error"])
    text = d.phrase()
    before = f'def {f}({a}, {b}):\n    try:\n        return {a}[{b}]\n    except {caught} as {e}:\n        raise {kind}("{text}")'
    rule = swap("raise $E($$$A)", f"raise $E($$$A) from {e}")
    say = f"Let the {kind} of `{f}` name its cause."
    return Draft(before, f"{before} from {e}", say, f"raise from {e}", (rule,))


@family
def assert_to_raise(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    test, text = d.test(a), d.phrase()
    kind = d.pick(["ValueError", "TypeError", "RuntimeError"])
    host = around_statement(d, f, a, b)
    say = f"Raise {kind} in `{f}` in place of the assertion."
    pattern = "assert $C, $M"
    rewrite = f"if not $C:\n    raise {kind}($M)"
    return swapped(host, pattern, rewrite, say, f"{kind}, no assert", C=test, M=f'"{text}"')


@family
def open_with(d: Draw) -> Draft:
    f, a, h, t = d.function(), *d.variables(3)
    method = d.pick(["read", "readlines", "readline"])
    pattern = "def $F($P):\n    $H = open($P)\n    $T = $E\n    $H.close()\n    return $T"
    rewrite = "def $F($P):\n    with open($P) as $H:\n        return $E"
    say = f"Open the file of `{f}` in a `with` block."
    return rewritten(pattern, rewrite, say, "use with", F=f, P=a, H=h, T=t, E=f"{h}.{method}()")


@family
def remove_print(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    v = d.variable()
    rest = d.pick([f"    return {d.value(a, b)}", f"    {v} = {d.value(a, b)}\n    return {v}"])
    shown = d.pick([a, f'"{d.word()}", {a}', f"{a}, {b}"])
    pattern = "def $F($$$P):\n    print($$$X)\n    $$$B"
    rewrite = "def $F($$$P):\n    $$$B"
    say = f"Remove the print from `{f}`."
    return rewritten(pattern, rewrite, say, "no print", F=f, P=f"{a}, {b}", X=shown, B=rest)


@family
def remove_dead_branch(d: Draw) -> Draft:
    f, a = d.function(), d.variable()
    v = d.variable()
    dead = d.pick([f"return {d.number()}", f"{a} = {d.number()}", f"print({a})"])
    rest = d.pick([f"    return {d.value(a)}", f"    {v} = {d.value(a)}\n    return {v}"])
    pattern = "def $F($$$P):\n    if False:\n        $D\n    $$$B"
    rewrite = "def $F($$$P):\n    $$$B"
    say = f"Remove the branch of `{f}` that never runs."
    return rewritten(pattern, rewrite, say, "no dead code", F=f, P=a, D=dead, B=rest)


@family
def print_to_log(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    log = d.pick(["log.info", "logging.info", "logger.debug", "log.warning"])
    shown = d.pick([a, f'"{d.word()}"', f"{a}.{d.attribute()}"])
    host = around_statement(d, f, a, b)
    say = f"Log in `{f}` by `{log}`, do not print."
    return swapped(host, "print($$$A)", f"{log}($$$A)", say, f"{log}, not print", A=shown)
