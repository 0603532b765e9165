"""Problems on whole numbers: digits, divisors, sums of ranges."""

from random import Random
from typing import Any

from rlvr_exp.corpora.problems.draw import NUMBERS, Draw
from rlvr_exp.corpora.problems.family import Draft, family, on_number
from rlvr_exp.corpora.problems.lists_where import EMPTY, GIVE_N, GIVE_OUT, ZERO


@family
def digit_sum(d: Draw) -> Draft:
    n, t = d.name(NUMBERS), d.test()
    return on_number(
        n,
        0,
        9999,
        f"the sum of the digits of {n} that are {t.words}",
        f"Go through the digits of {n} and add up those that are {t.words}.",
        [
            ZERO,
            ("go through the digits", f"for each digit x of {n}"),
            (f"if it is {t.words}, add it", f"  if {t.of('x')}: total += x"),
            GIVE_N,
        ],
        [f"0 <= result <= 9 * len(str({n}))"],
        [f"return sum(x for x in map(int, str({n})) if {t.of('x')})"],
    )


@family
def digit_count(d: Draw) -> Draft:
    n, t = d.name(NUMBERS), d.test()
    return on_number(
        n,
        0,
        9999,
        f"how many digits of {n} are {t.words}",
        f"Go through the digits of {n} and count those that are {t.words}.",
        [
            ZERO,
            ("go through the digits", f"for each digit x of {n}"),
            (f"if it is {t.words}, add 1", f"  if {t.of('x')}: total += 1"),
            GIVE_N,
        ],
        [f"0 <= result <= len(str({n}))"],
        [f"return sum(1 for x in map(int, str({n})) if {t.of('x')})"],
    )


@family
def digits_changed(d: Draw) -> Draft:
    n, c = d.name(NUMBERS), d.change()
    return on_number(
        n,
        0,
        9999,
        f"the list of each digit of {n} {c.words}",
        f"Go through the digits of {n} and change each.",
        [
            EMPTY,
            ("go through the digits", f"for each digit x of {n}"),
            (f"add it {c.words}", f"  add {c.of('x')} to out"),
            GIVE_OUT,
        ],
        [f"len(result) == len(str({n}))"],
        [f"return [{c.of('x')} for x in map(int, str({n}))]"],
    )


@family
def reversed_number(d: Draw) -> Draft:
    n, c = d.name(NUMBERS), d.change()
    return on_number(
        n,
        0,
        999,
        f"{n} with its digits in reverse, {c.words}",
        f"Reverse the digits of {n}, then change the number.",
        [
            ("reverse the digits", f"back = the digits of {n} from the end"),
            (f"return it {c.words}", f"return {c.of('back')}"),
        ],
        ["type(result) is int"],
        [f"back = int(str({n})[::-1])", f"return {c.of('back')}"],
    )


@family
def extreme_digit(d: Draw) -> Draft:
    n, c, what = d.name(NUMBERS), d.change(), d.pick(["max", "min"])
    words = {"max": "largest", "min": "smallest"}[what]
    return on_number(
        n,
        0,
        9999,
        f"the {words} digit of {n}, {c.words}",
        f"Compare the digits of {n} and change the {words}.",
        [
            (f"take the {words} digit", f"best = {what} of the digits of {n}"),
            (f"return it {c.words}", f"return {c.of('best')}"),
        ],
        ["type(result) is int"],
        [f"best = {what}(map(int, str({n})))", f"return {c.of('best')}"],
    )


@family
def sum_below(d: Draw) -> Draft:
    n, t = d.name(NUMBERS), d.test()
    return on_number(
        n,
        0,
        30,
        f"the sum of the numbers from 1 to {n} that are {t.words}",
        f"Go from 1 to {n} and add up the numbers that are {t.words}.",
        [
            ZERO,
            (f"go from 1 to {n}", f"for x in range(1, {n} + 1)"),
            (f"if it is {t.words}, add it", f"  if {t.of('x')}: total += x"),
            GIVE_N,
        ],
        [f"0 <= result <= {n} * ({n} + 1) // 2"],
        [f"return sum(x for x in range(1, {n} + 1) if {t.of('x')})"],
    )


@family
def changed_below(d: Draw) -> Draft:
    n, c = d.name(NUMBERS), d.change()
    return on_number(
        n,
        0,
        12,
        f"the list of the numbers from 1 to {n}, each {c.words}",
        f"Go from 1 to {n} and change each number.",
        [
            EMPTY,
            (f"go from 1 to {n}", f"for x in range(1, {n} + 1)"),
            (f"add it {c.words}", f"  add {c.of('x')} to out"),
            GIVE_OUT,
        ],
        [f"len(result) == {n}"],
        [f"return [{c.of('x')} for x in range(1, {n} + 1)]"],
    )


@family
def divisors(d: Draw) -> Draft:
    n, t = d.name(NUMBERS), d.test()
    return on_number(
        n,
        1,
        60,
        f"the list of the divisors of {n} that are {t.words}",
        f"Try the numbers from 1 to {n}.",
        [
            EMPTY,
            (f"go from 1 to {n}", f"for x in range(1, {n} + 1)"),
            (f"if it divides {n} and is {t.words}, add it", f"  if {n} % x == 0 and {t.of('x')}: add x to out"),
            GIVE_OUT,
        ],
        [f"all({n} % x == 0 for x in result)", "result == sorted(result)"],
        [f"return [x for x in range(1, {n} + 1) if {n} % x == 0 and {t.of('x')}]"],
    )


@family
def times_divided(d: Draw) -> Draft:
    n, k = d.name(NUMBERS), d.number(2, 5)
    return on_number(
        n,
        1,
        300,
        f"how often {n} can be divided by {k} without rest",
        f"Divide {n} by {k} while there is no rest and count.",
        [
            ZERO,
            (f"while {k} divides it", f"while {n} % {k} == 0"),
            ("divide, add 1", f"  {n} //= {k}; total += 1"),
            GIVE_N,
        ],
        ["result >= 0"],
        ["total = 0", f"while {n} % {k} == 0:", f"    {n} //= {k}", "    total += 1", "return total"],
    )


@family
def steps_down(d: Draw) -> Draft:
    n, k, last = d.name(NUMBERS), d.number(2, 5), d.number(0, 4)
    return on_number(
        n,
        0,
        300,
        f"how many times {n} is divided by {k}, rounded down, until it is at most {last}",
        f"Divide {n} by {k} while it is greater than {last} and count.",
        [
            ZERO,
            (f"while it is greater than {last}", f"while {n} > {last}"),
            ("divide, add 1", f"  {n} //= {k}; total += 1"),
            GIVE_N,
        ],
        ["result >= 0"],
        ["total = 0", f"while {n} > {last}:", f"    {n} //= {k}", "    total += 1", "return total"],
    )


@family
def halved_or_grown(d: Draw) -> Draft:
    n, a, b = d.name(NUMBERS), d.number(2, 5), d.number(1, 7)
    return on_number(
        n,
        0,
        40,
        f"{n} halved if it is even, else times {a} plus {b}",
        f"Look at whether {n} is even.",
        [
            (f"if {n} is even, return half", f"if {n} % 2 == 0: return {n} // 2"),
            (f"else return it times {a} plus {b}", f"return {n} * {a} + {b}"),
        ],
        ["type(result) is int"],
        [f"if {n} % 2 == 0:", f"    return {n} // 2", f"return {n} * {a} + {b}"],
    )


@family
def series(d: Draw) -> Draft:
    n, a, b = d.name(NUMBERS), d.number(0, 3), d.number(1, 4)
    return on_number(
        n,
        0,
        11,
        f"the first {n} numbers of the series {a}, {b}, ... where each is the sum of the two before",
        f"Start with {a} and {b} and add the last two again and again.",
        [
            (f"start with {a} and {b}", f"out, x, y = [], {a}, {b}"),
            (f"repeat {n} times", f"for _ in range({n})"),
            ("add the first", "  add x to out"),
            ("go on with the second and the sum", "  x, y = y, x + y"),
            GIVE_OUT,
        ],
        [f"len(result) == {n}"],
        [
            f"out, x, y = [], {a}, {b}",
            f"for _ in range({n}):",
            "    out.append(x)",
            "    x, y = y, x + y",
            "return out",
        ],
    )


@family
def countdown(d: Draw) -> Draft:
    n, k, last = d.name(NUMBERS), d.number(2, 4), d.number(0, 3)
    return on_number(
        n,
        0,
        15,
        f"the list of the numbers from {n} down in steps of {k}, as long as they are at least {last}",
        f"Begin at {n} and subtract {k}.",
        [
            EMPTY,
            (f"while it is at least {last}", f"while {n} >= {last}"),
            (f"add it, subtract {k}", f"  add {n} to out; {n} -= {k}"),
            GIVE_OUT,
        ],
        [f"all(x >= {last} for x in result)", "result == sorted(result, reverse=True)"],
        ["out = []", f"while {n} >= {last}:", f"    out.append({n})", f"    {n} -= {k}", "return out"],
    )


@family
def price(d: Draw) -> Draft:
    n, k, one, less = d.name(NUMBERS), d.number(3, 8), d.number(5, 9), d.number(1, 4)
    return on_number(
        n,
        0,
        20,
        f"the price of {n} pieces at {one} each, and {less} each for those after the first {k}",
        f"Count the pieces up to {k} and those after it apart.",
        [
            (f"take those up to {k}", f"full = min({n}, {k})"),
            (
                f"return {one} for each of them and {less} for each other",
                f"return full * {one} + ({n} - full) * {less}",
            ),
        ],
        [f"{less} * {n} <= result <= {one} * {n}"],
        [f"full = min({n}, {k})", f"return full * {one} + ({n} - full) * {less}"],
    )


@family
def in_range(d: Draw) -> Draft:
    a, b = d.name(NUMBERS), d.name(NUMBERS)
    t = d.test()

    def inputs(rng: Random) -> tuple[Any, ...]:
        low = rng.randint(-4, 10)
        return low, low + rng.randint(-2, 9)

    return Draft(
        (a, b),
        f"how many numbers from {a} to {b} are {t.words}, both ends among them",
        f"Go from {a} to {b} and count.",
        (
            ZERO,
            (f"go from {a} to {b}", f"for x in range({a}, {b} + 1)"),
            (f"if it is {t.words}, add 1", f"  if {t.of('x')}: total += 1"),
            GIVE_N,
        ),
        (f"0 <= result <= max(0, {b} - {a} + 1)",),
        (f"return sum(1 for x in range({a}, {b} + 1) if {t.of('x')})",),
        inputs,
        ((0, 0), (1, 0), (2, 3)),
    )
