"""Problems on the order of a list, its parts, its doubles, and on two lists."""

from collections.abc import Sequence
from random import Random
from typing import Any

from rlvr_exp.corpora.problems.draw import LISTS, Draw, numbers
from rlvr_exp.corpora.problems.family import Args, Draft, draft, family, loop, on_list
from rlvr_exp.corpora.problems.lists_where import EMPTY, GIVE_N, GIVE_OUT, ZERO

DOUBLES = (1, 1, 2, 5)


def on_two(names: Sequence[str], *parts: Any) -> Draft:
    """A problem on two lists of numbers."""

    def inputs(rng: Random) -> Args:
        return numbers(rng, (1, 2, 3)), numbers(rng, (1, 2, 3))

    return draft(names, parts, inputs, [([], []), ([1], []), ([], [2]), ([1, 2], [2]), ([3], [1, 2, 3])])


@family
def rotated(d: Draw) -> Draft:
    (xs, _), k = d.list_names(), d.number(1, 3)
    return on_list(
        xs,
        d,
        (1, 2, 3, 4),
        f"{xs} with its first {k} numbers moved to the end",
        f"Cut {xs} after {k} numbers and swap both parts.",
        [
            (f"cut after {k}", f"head, tail = {xs}[:{k}], {xs}[{k}:]"),
            ("return the tail, then the head", "return tail + head"),
        ],
        [f"sorted(result) == sorted({xs})"],
        [f"return {xs}[{k}:] + {xs}[:{k}]"],
    )


@family
def reversed_front(d: Draw) -> Draft:
    (xs, _), k = d.list_names(), d.number(2, 4)
    return on_list(
        xs,
        d,
        (1, 2, 3, 4),
        f"{xs} with its first {k} numbers reversed",
        f"Reverse the first {k} numbers of {xs} and leave the rest.",
        [
            (f"reverse the first {k}", f"head = reversed({xs}[:{k}])"),
            ("return it with the rest", f"return head + {xs}[{k}:]"),
        ],
        [f"sorted(result) == sorted({xs})", f"result[{k}:] == {xs}[{k}:]"],
        [f"return {xs}[:{k}][::-1] + {xs}[{k}:]"],
    )


@family
def every_step(d: Draw) -> Draft:
    (xs, _), k, first = d.list_names(), d.number(2, 3), d.number(0, 2)
    return on_list(
        xs,
        d,
        (1, 2, 3, 4, 5),
        f"every {['', '', 'second', 'third'][k]} number of {xs}, from index {first} on",
        f"Go through {xs} from index {first} in steps of {k}.",
        [
            EMPTY,
            (f"go through the indices from {first} in steps of {k}", f"for i in range({first}, len({xs}), {k})"),
            ("add the number there", f"  add {xs}[i] to out"),
            GIVE_OUT,
        ],
        [f"len(result) <= len({xs})"],
        [f"return {xs}[{first}::{k}]"],
    )


@family
def without_doubles(d: Draw) -> Draft:
    (xs, x), k = d.list_names(), d.number(1, 2)
    most = "once" if k == 1 else "twice"
    return on_list(
        xs,
        d,
        DOUBLES,
        f"{xs} with each number kept at most {most}",
        f"Add a number of {xs} while it is there fewer than {k} times.",
        loop(
            xs,
            x,
            EMPTY,
            [(f"if it is there fewer than {k} times, add it", f"if out.count({x}) < {k}: add {x} to out")],
            GIVE_OUT,
        ),
        [f"set(result) == set({xs})", f"all(result.count({x}) <= {k} for {x} in result)"],
        ["out = []", f"for {x} in {xs}:", f"    if out.count({x}) < {k}:", f"        out.append({x})", "return out"],
    )


@family
def without_repeats(d: Draw) -> Draft:
    (xs, x), gap = d.list_names(), d.number(0, 1)
    near = "equal to" if gap == 0 else "within 1 of"
    same = f"out[-1] == {x}" if gap == 0 else f"abs(out[-1] - {x}) <= 1"
    return on_list(
        xs,
        d,
        DOUBLES,
        f"{xs} without each number that is {near} the last one kept",
        f"Compare each number of {xs} with the last one kept.",
        loop(
            xs,
            x,
            EMPTY,
            [(f"unless it is {near} the last one kept, add it", f"if not (out and {same}): add {x} to out")],
            GIVE_OUT,
        ),
        [f"len(result) <= len({xs})", f"result[:1] == {xs}[:1]"],
        ["out = []", f"for {x} in {xs}:", f"    if not (out and {same}):", f"        out.append({x})", "return out"],
    )


@family
def counted_distinct(d: Draw) -> Draft:
    (xs, x), t = d.list_names(), d.test()
    return on_list(
        xs,
        d,
        (*t.near, *t.near),
        f"how many different numbers in {xs} are {t.words}",
        f"Take each number of {xs} once and count those that are {t.words}.",
        [
            ("take each number once", f"seen = set({xs})"),
            (f"count those that are {t.words}", f"return the number of {x} in seen with {t.of(x)}"),
        ],
        [f"0 <= result <= len(set({xs}))"],
        [f"return len({{{x} for {x} in {xs} if {t.of(x)}}})"],
    )


@family
def repeated(d: Draw) -> Draft:
    (xs, x), k = d.list_names(), d.number(2, 3)
    return on_list(
        xs,
        d,
        (1, 2),
        f"the list with each number of {xs} {k} times in a row",
        f"Add each number of {xs} {k} times.",
        loop(xs, x, EMPTY, [(f"add it {k} times", f"add {x} to out, {k} times")], GIVE_OUT),
        [f"len(result) == {k} * len({xs})"],
        [f"return [{x} for {x} in {xs} for _ in range({k})]"],
    )


@family
def in_parts(d: Draw) -> Draft:
    (xs, _), k = d.list_names(), d.number(2, 3)
    return on_list(
        xs,
        d,
        (1, 2, 3, 4, 5),
        f"{xs} cut into lists of {k} numbers, the last one with the rest",
        f"Cut {xs} at every multiple of {k}.",
        [
            EMPTY,
            (f"go through the indices in steps of {k}", f"for i in range(0, len({xs}), {k})"),
            ("add the part", f"  add {xs}[i:i + {k}] to out"),
            GIVE_OUT,
        ],
        [f"sum(result, []) == {xs}", f"all(0 < len(part) <= {k} for part in result)"],
        [f"return [{xs}[i:i + {k}] for i in range(0, len({xs}), {k})]"],
    )


@family
def window_best(d: Draw) -> Draft:
    (xs, _), k, what = d.list_names(), d.number(2, 3), d.pick(["max", "min", "sum"])
    words = {"max": "the largest number", "min": "the smallest number", "sum": "the sum"}[what]
    return on_list(
        xs,
        d,
        (1, 2, 3, 9),
        f"the list of {words} of each {k} numbers in a row in {xs}",
        f"Go through the windows of {k} numbers of {xs}.",
        [
            EMPTY,
            ("go through the starts", f"for i in range(len({xs}) - {k - 1})"),
            (f"add {words} of the window", f"  add {what}({xs}[i:i + {k}]) to out"),
            GIVE_OUT,
        ],
        [f"len(result) == max(0, len({xs}) - {k - 1})"],
        [f"return [{what}({xs}[i:i + {k}]) for i in range(len({xs}) - {k - 1})]"],
    )


@family
def best_sum(d: Draw) -> Draft:
    (xs, _), k, most = d.list_names(), d.number(2, 3), d.pick([True, False])
    words, more = ("largest", ", reverse=True") if most else ("smallest", "")
    return on_list(
        xs,
        d,
        (1, 2, 9),
        f"the sum of the {k} {words} numbers in {xs}",
        f"Sort {xs} and add up {k} numbers.",
        [
            (f"sort, {words} first", f"found = sorted({xs}{more})"),
            (f"return the sum of {k}", f"return sum(found[:{k}])"),
        ],
        [f"result == sum({xs}) or len({xs}) > {k}"],
        [f"return sum(sorted({xs}{more})[:{k}])"],
    )


@family
def ranked(d: Draw) -> Draft:
    (xs, _), k, most = d.list_names(), d.number(2, 3), d.pick([True, False])
    rank, words = ["", "", "second", "third"][k], "largest" if most else "smallest"
    more = ", reverse=True" if most else ""
    return on_list(
        xs,
        d,
        (1, 1, 9),
        f"the {rank} {words} different number in {xs}, or 0",
        f"Take each number of {xs} once, sort and take the {rank}.",
        [
            (f"take each number once, {words} first", f"found = sorted(set({xs}){more})"),
            (f"return the {rank}, or 0", f"return found[{k - 1}] if len(found) >= {k} else 0"),
        ],
        [f"result == 0 or result in {xs}"],
        [f"found = sorted(set({xs}){more})", f"return found[{k - 1}] if len(found) >= {k} else 0"],
    )


@family
def sorted_by(d: Draw) -> Draft:
    (xs, x), k = d.list_names(), d.number(2, 6)
    words, key = d.pick(
        [
            ("without their signs", f"abs({x})"),
            (f"modulo {k}", f"{x} % {k}"),
            (f"by distance to {k}", f"abs({x} - {k})"),
        ]
    )
    return on_list(
        xs,
        d,
        (-2, 1, k, k + 1),
        f"{xs} sorted {words}, equal ones in their order",
        f"Sort {xs} by a key.",
        [("sort by the key", f"out = sorted({xs}, key={key})"), GIVE_OUT],
        [f"sorted(result) == sorted({xs})"],
        [f"return sorted({xs}, key=lambda {x}: {key})"],
    )


@family
def moved_to_end(d: Draw) -> Draft:
    (xs, x), k = d.list_names(), d.number(0, 3)
    return on_list(
        xs,
        d,
        (k, k, k + 1),
        f"{xs} with each {k} moved to the end",
        f"Keep the numbers of {xs} that are not {k}, then add as many {k}s as there were.",
        [
            (f"keep what is not {k}", f"out = [{x} for {x} in {xs} if {x} != {k}]"),
            (f"add each {k}", f"return out + [{k}] * {xs}.count({k})"),
        ],
        [f"sorted(result) == sorted({xs})"],
        [f"return [{x} for {x} in {xs} if {x} != {k}] + [{k}] * {xs}.count({k})"],
    )


@family
def is_ordered(d: Draw) -> Draft:
    (xs, _), (words, sign) = (
        d.list_names(),
        d.pick([("less than", "<"), ("at most", "<="), ("greater than", ">"), ("different from", "!=")]),
    )
    return on_list(
        xs,
        d,
        (1, 1, 2),
        f"whether each number in {xs} is {words} the next",
        f"Compare neighbours in {xs}; one pair decides.",
        [
            ("go through the indices but the last", f"for i in range(len({xs}) - 1)"),
            (f"unless it is {words} the next, return False", f"  if not {xs}[i] {sign} {xs}[i + 1]: return False"),
            ("else return True", "return True"),
        ],
        [f"result or len({xs}) > 1"],
        [f"return all({xs}[i] {sign} {xs}[i + 1] for i in range(len({xs}) - 1))"],
    )


@family
def pairwise(d: Draw) -> Draft:
    a, b = d.name(LISTS), d.name(LISTS)
    words, sign = d.pick([("sum", "+"), ("difference", "-"), ("product", "*")])
    return on_two(
        (a, b),
        f"the list of the {words} of each two numbers at one index in {a} and {b}, as far as both go",
        f"Go through {a} and {b} together.",
        [
            EMPTY,
            ("go through both", f"for x, y in zip({a}, {b})"),
            (f"add the {words}", f"  add x {sign} y to out"),
            GIVE_OUT,
        ],
        [f"len(result) == min(len({a}), len({b}))"],
        [f"return [x {sign} y for x, y in zip({a}, {b})]"],
    )


@family
def in_both(d: Draw) -> Draft:
    a, b = d.name(LISTS), d.name(LISTS)
    words, word = d.pick([("also", "in"), ("not", "not in")])
    return on_two(
        (a, b),
        f"the numbers of {a} that are {words} in {b}",
        f"Keep each number of {a} that is {words} in {b}.",
        loop(a, "x", EMPTY, [(f"if it is {words} in {b}, add it", f"if x {word} {b}: add x to out")], GIVE_OUT),
        [f"all(x {word} {b} for x in result)", f"len(result) <= len({a})"],
        [f"return [x for x in {a} if x {word} {b}]"],
    )


@family
def counted_equal(d: Draw) -> Draft:
    a, b = d.name(LISTS), d.name(LISTS)
    words, sign = d.pick([("equal to", "=="), ("less than", "<"), ("greater than", ">"), ("different from", "!=")])
    return on_two(
        (a, b),
        f"at how many indices the number in {a} is {words} the one in {b}",
        f"Go through {a} and {b} together and count.",
        [
            ZERO,
            ("go through both", f"for x, y in zip({a}, {b})"),
            (f"if it is {words} the other, add 1", f"  if x {sign} y: total += 1"),
            GIVE_N,
        ],
        [f"0 <= result <= min(len({a}), len({b}))"],
        [f"return sum(x {sign} y for x, y in zip({a}, {b}))"],
    )


@family
def in_turn(d: Draw) -> Draft:
    a, b = d.name(LISTS), d.name(LISTS)
    return on_two(
        (a, b),
        f"the numbers of {a} and {b} in turn, as far as both go",
        f"Go through {a} and {b} together and add both numbers.",
        [
            EMPTY,
            ("go through both", f"for x, y in zip({a}, {b})"),
            ("add the first, then the second", "  add x, y to out"),
            GIVE_OUT,
        ],
        [f"len(result) == 2 * min(len({a}), len({b}))"],
        ["out = []", f"for x, y in zip({a}, {b}):", "    out += [x, y]", "return out"],
    )


@family
def dot_product(d: Draw) -> Draft:
    a, b, k = d.name(LISTS), d.name(LISTS), d.number(0, 5)
    return on_two(
        (a, b),
        f"{k} plus the products of the numbers at one index in {a} and {b}, as far as both go",
        f"Multiply the numbers of {a} and {b} in pairs and add up from {k} on.",
        [
            (f"start at {k}", f"total = {k}"),
            ("go through both", f"for x, y in zip({a}, {b})"),
            ("add the product", "  total += x * y"),
            GIVE_N,
        ],
        [f"result == {k} or min(len({a}), len({b})) > 0"],
        [f"return {k} + sum(x * y for x, y in zip({a}, {b}))"],
    )
