"""Families about loops, branches and exceptions."""

from rlvr_exp.corpora.edits.draw import Draw
from rlvr_exp.corpora.edits.family import Draft, family, swap
from rlvr_exp.corpora.edits.hosts import around_statement, by_rules, replaced


@family
def loop_to_comprehension(d: Draw) -> Draft:
    f, a, t, i = d.function(), *d.variables(3)
    value = d.value(i)
    before = f"def {f}({a}):\n    {t} = []\n    for {i} in {a}:\n        {t}.append({value})\n    return {t}"
    rule = swap(
        "def $F($X):\n    $T = []\n    for $I in $X:\n        $T.append($E)\n    return $T",
        "def $F($X):\n    return [$E for $I in $X]",
    )
    after = f"def {f}({a}):\n    return [{value} for {i} in {a}]"
    return Draft(before, after, f"Write the loop of `{f}` as a list comprehension.", "use a comprehension", (rule,))


@family
def comprehension_to_loop(d: Draw) -> Draft:
    f, a, i = d.function(), *d.variables(2)
    t = d.pick(["found", "result", "made", "items"])
    value = d.value(i)
    before = f"def {f}({a}):\n    return [{value} for {i} in {a}]"
    after = f"def {f}({a}):\n    {t} = []\n    for {i} in {a}:\n        {t}.append({value})\n    return {t}"
    rule = swap(
        "def $F($X):\n    return [$E for $I in $X]",
        f"def $F($X):\n    {t} = []\n    for $I in $X:\n        {t}.append($E)\n    return {t}",
    )
    say = f"Write the comprehension of `{f}` as a loop that fills `{t}`."
    return Draft(before, after, say, f"a loop that fills {t}", (rule,))


@family
def filtered_comprehension(d: Draw) -> Draft:
    f, a, t, i = d.function(), *d.variables(3)
    test = d.test(i)
    before = f"def {f}({a}):\n    {t} = []\n    for {i} in {a}:\n        if {test}:\n            {t}.append({i})\n    return {t}"
    rule = swap(
        "def $F($X):\n    $T = []\n    for $I in $X:\n        if $C:\n            $T.append($I)\n    return $T",
        "def $F($X):\n    return [$I for $I in $X if $C]",
    )
    after = f"def {f}({a}):\n    return [{i} for {i} in {a} if {test}]"
    say = f"Filter in `{f}` by a list comprehension."
    return Draft(before, after, say, "filter by comprehension", (rule,))


@family
def loop_to_sum(d: Draw) -> Draft:
    f, a, t, i = d.function(), *d.variables(3)
    value = d.pick([i, d.value(i)])
    before = f"def {f}({a}):\n    {t} = 0\n    for {i} in {a}:\n        {t} += {value}\n    return {t}"
    rule = swap(
        "def $F($X):\n    $T = 0\n    for $I in $X:\n        $T += $E\n    return $T",
        "def $F($X):\n    return sum($E for $I in $X)",
    )
    after = f"def {f}({a}):\n    return sum({value} for {i} in {a})"
    return Draft(before, after, f"Add up in `{f}` by `sum`.", "use sum", (rule,))


@family
def loop_to_any(d: Draw) -> Draft:
    f, a, i = d.function(), *d.variables(2)
    test = d.test(i)
    one, two, name = d.pick([("True", "False", "any"), ("False", "True", "all")])
    before = f"def {f}({a}):\n    for {i} in {a}:\n        if {test}:\n            return {one}\n    return {two}"
    inner = test if name == "any" else f"not {test}"
    rule = swap(
        f"def $F($X):\n    for $I in $X:\n        if $C:\n            return {one}\n    return {two}",
        f"def $F($X):\n    return {name}({'$C' if name == 'any' else 'not $C'} for $I in $X)",
    )
    after = f"def {f}({a}):\n    return {name}({inner} for {i} in {a})"
    return Draft(before, after, f"Replace the loop of `{f}` by `{name}`.", f"use {name}", (rule,))


@family
def early_return(d: Draw) -> Draft:
    f, a, b, t = d.function(), *d.variables(3)
    test, one, two = d.test(a), d.value(a, b), d.value(b)
    before = f"def {f}({a}, {b}):\n    if {test}:\n        {t} = {one}\n    else:\n        {t} = {two}\n    return {t}"
    after = f"def {f}({a}, {b}):\n    if {test}:\n        return {one}\n    return {two}"
    rule = swap(
        "def $F($$$P):\n    if $C:\n        $T = $A\n    else:\n        $T = $B\n    return $T",
        "def $F($$$P):\n    if $C:\n        return $A\n    return $B",
    )
    return Draft(before, after, f"Return early in `{f}`, without `{t}`.", "return early", (rule,))


@family
def drop_else(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    test, one, two = d.test(a), d.value(a, b), d.value(b)
    before = f"def {f}({a}, {b}):\n    if {test}:\n        return {one}\n    else:\n        return {two}"
    after = f"def {f}({a}, {b}):\n    if {test}:\n        return {one}\n    return {two}"
    rule = swap(
        "def $F($$$P):\n    if $C:\n        return $A\n    else:\n        return $B",
        "def $F($$$P):\n    if $C:\n        return $A\n    return $B",
    )
    return Draft(before, after, f"Drop the `else` after the return in `{f}`.", "no else after return", (rule,))


@family
def if_to_ternary(d: Draw) -> Draft:
    f, a, b, t = d.function(), *d.variables(3)
    test, one, two = d.test(a), d.number(), d.number()
    host = around_statement(d, f, a, b)
    old = f"if {test}:\n    {t} = {one}\nelse:\n    {t} = {two}"
    rule = swap("if $C:\n    $T = $A\nelse:\n    $T = $B", "$T = $A if $C else $B")
    say = f"Assign `{t}` in `{f}` by a conditional expression."
    return by_rules(host, old, f"{t} = {one} if {test} else {two}", (rule,), say, "one line for the if")


@family
def ternary_to_if(d: Draw) -> Draft:
    f, a, b, t = d.function(), *d.variables(3)
    test, one, two = d.test(a), d.number(), d.number()
    host = around_statement(d, f, a, b)
    new = f"if {test}:\n    {t} = {one}\nelse:\n    {t} = {two}"
    rule = swap("$T = $A if $C else $B", "if $C:\n    $T = $A\nelse:\n    $T = $B")
    say = f"Assign `{t}` in `{f}` by an if statement."
    return by_rules(host, f"{t} = {one} if {test} else {two}", new, (rule,), say, "spell out the if")


@family
def use_enumerate(d: Draw) -> Draft:
    f, a, i, v = d.function(), *d.variables(3)
    g = d.pick(["print", "use", "send", d.function()])
    before = f"def {f}({a}):\n    for {i} in range(len({a})):\n        {g}({i}, {a}[{i}])"
    after = f"def {f}({a}):\n    for {i}, {v} in enumerate({a}):\n        {g}({i}, {v})"
    rule = swap(
        "for $I in range(len($X)):\n    $G($I, $X[$I])",
        f"for $I, {v} in enumerate($X):\n    $G($I, {v})",
    )
    return Draft(before, after, f"Loop in `{f}` by `enumerate`, the item called `{v}`.", f"enumerate with {v}", (rule,))


@family
def use_items(d: Draw) -> Draft:
    f, a, k, v = d.function(), *d.variables(3)
    g = d.pick(["print", "use", "send", d.function()])
    before = f"def {f}({a}):\n    for {k} in {a}:\n        {g}({k}, {a}[{k}])"
    after = f"def {f}({a}):\n    for {k}, {v} in {a}.items():\n        {g}({k}, {v})"
    rule = swap("for $K in $D:\n    $G($K, $D[$K])", f"for $K, {v} in $D.items():\n    $G($K, {v})")
    return Draft(before, after, f"Loop in `{f}` over `items`, the value called `{v}`.", f"items() with {v}", (rule,))


@family
def narrow_except(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    kind = d.pick(["ValueError", "KeyError", "TypeError", "OSError", "IndexError"])
    host = around_statement(d, f, a, b)
    call, v = f"{b} = {d.function()}({a})", d.number()
    old = f"try:\n    {call}\nexcept:\n    {b} = {v}"
    rule = swap("try:\n    $$$A\nexcept:\n    $$$B", f"try:\n    $$$A\nexcept {kind}:\n    $$$B")
    say = f"Catch only {kind} in `{f}`."
    return by_rules(host, old, old.replace("except:", f"except {kind}:"), (rule,), say, f"except {kind}")


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
    rule = swap("assert $C, $M", f"if not $C:\n    raise {kind}($M)")
    new = f'if not {test}:\n    raise {kind}("{text}")'
    say = f"Raise {kind} in `{f}` in place of the assertion."
    return by_rules(host, f'assert {test}, "{text}"', new, (rule,), say, f"{kind}, no assert")


@family
def open_with(d: Draw) -> Draft:
    f, a, h, t = d.function(), *d.variables(3)
    method = d.pick(["read", "readlines", "readline"])
    before = f"def {f}({a}):\n    {h} = open({a})\n    {t} = {h}.{method}()\n    {h}.close()\n    return {t}"
    after = f"def {f}({a}):\n    with open({a}) as {h}:\n        return {h}.{method}()"
    rule = swap(
        "def $F($P):\n    $H = open($P)\n    $T = $E\n    $H.close()\n    return $T",
        "def $F($P):\n    with open($P) as $H:\n        return $E",
    )
    return Draft(before, after, f"Open the file of `{f}` in a `with` block.", "use with", (rule,))


@family
def remove_print(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    v = d.variable()
    rest = d.pick([f"    return {d.value(a, b)}", f"    {v} = {d.value(a, b)}\n    return {v}"])
    shown = d.pick([a, f'"{d.word()}", {a}', f"{a}, {b}"])
    rule = swap("def $F($$$P):\n    print($$$X)\n    $$$B", "def $F($$$P):\n    $$$B")
    before = f"def {f}({a}, {b}):\n    print({shown})\n{rest}"
    return Draft(before, f"def {f}({a}, {b}):\n{rest}", f"Remove the print from `{f}`.", "no print", (rule,))


@family
def remove_dead_branch(d: Draw) -> Draft:
    f, a = d.function(), d.variable()
    v = d.variable()
    dead = d.pick([f"return {d.number()}", f"{a} = {d.number()}", f"print({a})"])
    rest = d.pick([f"    return {d.value(a)}", f"    {v} = {d.value(a)}\n    return {v}"])
    rule = swap("def $F($$$P):\n    if False:\n        $D\n    $$$B", "def $F($$$P):\n    $$$B")
    before = f"def {f}({a}):\n    if False:\n        {dead}\n{rest}"
    return Draft(
        before, f"def {f}({a}):\n{rest}", f"Remove the branch of `{f}` that never runs.", "no dead code", (rule,)
    )


@family
def print_to_log(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    log = d.pick(["log.info", "logging.info", "logger.debug", "log.warning"])
    shown = d.pick([a, f'"{d.word()}"', f"{a}.{d.attribute()}"])
    host = around_statement(d, f, a, b)
    say = f"Log in `{f}` by `{log}`, do not print."
    return replaced(host, f"print({shown})", f"{log}({shown})", "print($$$A)", f"{log}($$$A)", say, f"{log}, not print")
