"""Problems on a list of numbers, some of which satisfy a condition."""

from rlvr_exp.corpora.problems.draw import Draw
from rlvr_exp.corpora.problems.family import Draft, family, loop, on_list

EMPTY, GIVE_OUT = ("start with an empty list", "out = []"), ("return the list", "return out")
ZERO, GIVE_N = ("start at 0", "total = 0"), ("return the total", "return total")


@family
def keep_if(d: Draw) -> Draft:
    (xs, x), t = d.list_names(), d.test()
    return on_list(
        xs,
        d,
        t.near,
        f"the list of the numbers in {xs} that are {t.words}",
        f"Keep each number of {xs} that is {t.words}, in order.",
        loop(xs, x, EMPTY, [(f"if it is {t.words}, add it", f"if {t.of(x)}: add {x} to out")], GIVE_OUT),
        [f"all({t.of(x)} for {x} in result)", f"len(result) <= len({xs})"],
        [f"return [{x} for {x} in {xs} if {t.of(x)}]"],
    )


@family
def drop_if(d: Draw) -> Draft:
    (xs, x), t = d.list_names(), d.test()
    return on_list(
        xs,
        d,
        t.near,
        f"{xs} without the numbers that are {t.words}",
        f"Leave out each number of {xs} that is {t.words}.",
        loop(xs, x, EMPTY, [(f"unless it is {t.words}, add it", f"if not {t.of(x)}: add {x} to out")], GIVE_OUT),
        [f"not any({t.of(x)} for {x} in result)", f"len(result) <= len({xs})"],
        [f"return [{x} for {x} in {xs} if not {t.of(x)}]"],
    )


@family
def count_if(d: Draw) -> Draft:
    (xs, x), t = d.list_names(), d.test()
    return on_list(
        xs,
        d,
        t.near,
        f"how many numbers in {xs} are {t.words}",
        f"Count the numbers of {xs} that are {t.words}.",
        loop(xs, x, ZERO, [(f"if it is {t.words}, add 1", f"if {t.of(x)}: total += 1")], GIVE_N),
        [f"0 <= result <= len({xs})"],
        ["total = 0", f"for {x} in {xs}:", f"    if {t.of(x)}:", "        total += 1", "return total"],
    )


@family
def sum_if(d: Draw) -> Draft:
    (xs, x), t = d.list_names(), d.test()
    return on_list(
        xs,
        d,
        t.near,
        f"the sum of the numbers in {xs} that are {t.words}",
        f"Add up the numbers of {xs} that are {t.words}.",
        loop(xs, x, ZERO, [(f"if it is {t.words}, add it", f"if {t.of(x)}: total += {x}")], GIVE_N),
        [f"result == 0 or any({t.of(x)} for {x} in {xs})"],
        [f"return sum({x} for {x} in {xs} if {t.of(x)})"],
    )


@family
def product_if(d: Draw) -> Draft:
    (xs, x), t = d.list_names(), d.test()
    return on_list(
        xs,
        d,
        t.near,
        f"the product of the numbers in {xs} that are {t.words}, 1 if there are none",
        f"Multiply the numbers of {xs} that are {t.words}, from 1 on.",
        loop(
            xs,
            x,
            ("start at 1", "total = 1"),
            [(f"if it is {t.words}, multiply", f"if {t.of(x)}: total *= {x}")],
            GIVE_N,
        ),
        [f"result == 1 or any({t.of(x)} for {x} in {xs})"],
        ["total = 1", f"for {x} in {xs}:", f"    if {t.of(x)}:", f"        total *= {x}", "return total"],
    )


@family
def first_if(d: Draw) -> Draft:
    (xs, x), t, k = d.list_names(), d.test(), d.pick([-1, 0])
    return on_list(
        xs,
        d,
        t.near,
        f"the first number in {xs} that is {t.words}, or {k}",
        f"Go through {xs} and stop at a number that is {t.words}.",
        [
            (f"go through {xs}", f"for {x} in {xs}"),
            (f"if it is {t.words}, return it", f"  if {t.of(x)}: return {x}"),
            (f"else return {k}", f"return {k}"),
        ],
        [f"result == {k} or result in {xs}"],
        [f"for {x} in {xs}:", f"    if {t.of(x)}:", f"        return {x}", f"return {k}"],
    )


@family
def last_if(d: Draw) -> Draft:
    (xs, x), t, k = d.list_names(), d.test(), d.pick([-1, 0])
    return on_list(
        xs,
        d,
        t.near,
        f"the last number in {xs} that is {t.words}, or {k}",
        f"Remember each number of {xs} that is {t.words}; the last one stays.",
        loop(
            xs,
            x,
            (f"start with {k}", f"out = {k}"),
            [(f"if it is {t.words}, remember it", f"if {t.of(x)}: out = {x}")],
            ("return it", "return out"),
        ),
        [f"result == {k} or result in {xs}"],
        [f"out = {k}", f"for {x} in {xs}:", f"    if {t.of(x)}:", f"        out = {x}", "return out"],
    )


@family
def place_if(d: Draw) -> Draft:
    (xs, _), t = d.list_names(), d.test()
    at = f"{xs}[i]"
    return on_list(
        xs,
        d,
        t.near,
        f"the index of the first number in {xs} that is {t.words}, or -1",
        f"Go through the indices of {xs} and stop where the number is {t.words}.",
        [
            ("go through the indices", f"for i in range(len({xs}))"),
            (f"if the number there is {t.words}, return the index", f"  if {t.of(at)}: return i"),
            ("else return -1", "return -1"),
        ],
        [f"-1 <= result < len({xs})"],
        [f"for i in range(len({xs})):", f"    if {t.of(at)}:", "        return i", "return -1"],
    )


@family
def any_if(d: Draw) -> Draft:
    (xs, x), t = d.list_names(), d.test()
    return on_list(
        xs,
        d,
        t.near,
        f"whether some number in {xs} is {t.words}",
        f"One number of {xs} that is {t.words} is enough.",
        [
            (f"go through {xs}", f"for {x} in {xs}"),
            (f"if it is {t.words}, return True", f"  if {t.of(x)}: return True"),
            ("else return False", "return False"),
        ],
        [f"not result or len({xs}) > 0"],
        [f"return any({t.of(x)} for {x} in {xs})"],
    )


@family
def all_if(d: Draw) -> Draft:
    (xs, x), t = d.list_names(), d.test()
    return on_list(
        xs,
        d,
        t.near,
        f"whether all numbers in {xs} are {t.words}",
        f"One number of {xs} that is not {t.words} decides.",
        [
            (f"go through {xs}", f"for {x} in {xs}"),
            (f"unless it is {t.words}, return False", f"  if not {t.of(x)}: return False"),
            ("else return True", "return True"),
        ],
        [f"result or len({xs}) > 0"],
        [f"return all({t.of(x)} for {x} in {xs})"],
    )


@family
def take_while(d: Draw) -> Draft:
    (xs, x), t = d.list_names(), d.test()
    return on_list(
        xs,
        d,
        t.near,
        f"the numbers of {xs} before the first that is not {t.words}",
        f"Take numbers from the front of {xs} while they are {t.words}.",
        loop(
            xs,
            x,
            EMPTY,
            [(f"unless it is {t.words}, stop", f"if not {t.of(x)}: stop"), ("add it", f"add {x} to out")],
            GIVE_OUT,
        ),
        [f"result == {xs}[:len(result)]", f"all({t.of(x)} for {x} in result)"],
        [
            "out = []",
            f"for {x} in {xs}:",
            f"    if not {t.of(x)}:",
            "        break",
            f"    out.append({x})",
            "return out",
        ],
    )


@family
def drop_while(d: Draw) -> Draft:
    (xs, _), t = d.list_names(), d.test()
    at = f"{xs}[i]"
    return on_list(
        xs,
        d,
        t.near,
        f"{xs} from the first number on that is not {t.words}",
        f"Pass numbers at the front of {xs} while they are {t.words}.",
        [
            ("start at index 0", "i = 0"),
            (f"while the number there is {t.words}, go on", f"while i < len({xs}) and {t.of(at)}: i += 1"),
            ("return the rest", f"return {xs}[i:]"),
        ],
        [f"result == {xs}[len({xs}) - len(result):]"],
        ["i = 0", f"while i < len({xs}) and {t.of(at)}:", "    i += 1", f"return {xs}[i:]"],
    )


@family
def change_if(d: Draw) -> Draft:
    (xs, x), t, c = d.list_names(), d.test(), d.change()
    return on_list(
        xs,
        d,
        (*t.near, *c.near),
        f"{xs} with each number that is {t.words} {c.words}",
        f"Change the numbers of {xs} that are {t.words}, leave the others.",
        loop(
            xs,
            x,
            EMPTY,
            [(f"add it, {c.words} if it is {t.words}", f"add {c.of(x)} if {t.of(x)} else {x} to out")],
            GIVE_OUT,
        ),
        [f"len(result) == len({xs})"],
        [f"return [{c.of(x)} if {t.of(x)} else {x} for {x} in {xs}]"],
    )


@family
def replace_if(d: Draw) -> Draft:
    (xs, x), t, k = d.list_names(), d.test(), d.number(-1, 1)
    return on_list(
        xs,
        d,
        t.near,
        f"{xs} with {k} for each number that is {t.words}",
        f"Put {k} in the place of each number of {xs} that is {t.words}.",
        loop(
            xs, x, EMPTY, [(f"add {k} if it is {t.words}, else it", f"add {k} if {t.of(x)} else {x} to out")], GIVE_OUT
        ),
        [f"len(result) == len({xs})"],
        [f"return [{k} if {t.of(x)} else {x} for {x} in {xs}]"],
    )


@family
def split_if(d: Draw) -> Draft:
    (xs, x), t = d.list_names(), d.test()
    return on_list(
        xs,
        d,
        t.near,
        f"the numbers of {xs} that are {t.words}, then the others",
        f"Make two lists of {xs} and join them.",
        [
            ("start with two empty lists", "yes, no = [], []"),
            (f"go through {xs}", f"for {x} in {xs}"),
            (f"add it to the first if it is {t.words}, else to the second", f"  add {x} to yes if {t.of(x)} else no"),
            ("return both, joined", "return yes + no"),
        ],
        [f"sorted(result) == sorted({xs})"],
        [
            f"yes = [{x} for {x} in {xs} if {t.of(x)}]",
            f"no = [{x} for {x} in {xs} if not {t.of(x)}]",
            "return yes + no",
        ],
    )


@family
def longest_run_if(d: Draw) -> Draft:
    (xs, x), t = d.list_names(), d.test()
    return on_list(
        xs,
        d,
        t.near,
        f"the length of the longest run of numbers in {xs} that are {t.words}",
        f"Count numbers of {xs} in a row that are {t.words} and keep the largest count.",
        [
            ("start both counts at 0", "best = run = 0"),
            (f"go through {xs}", f"for {x} in {xs}"),
            (f"add 1 to the run if it is {t.words}, else begin at 0", f"  run = run + 1 if {t.of(x)} else 0"),
            ("keep the larger", "  best = max(best, run)"),
            ("return it", "return best"),
        ],
        [f"0 <= result <= len({xs})"],
        [
            "best = run = 0",
            f"for {x} in {xs}:",
            f"    run = run + 1 if {t.of(x)} else 0",
            "    best = max(best, run)",
            "return best",
        ],
    )


@family
def largest_if(d: Draw) -> Draft:
    (xs, x), t, k = d.list_names(), d.test(), d.pick([-9, 0])
    return on_list(
        xs,
        d,
        t.near,
        f"the largest number in {xs} that is {t.words}, or {k}",
        f"Compare the numbers of {xs} that are {t.words}.",
        [
            (f"take those that are {t.words}", f"found = [{x} for {x} in {xs} if {t.of(x)}]"),
            (f"return the largest, or {k}", f"return max(found) if found else {k}"),
        ],
        [f"result == {k} or result in {xs}"],
        [f"return max([{x} for {x} in {xs} if {t.of(x)}], default={k})"],
    )


@family
def places_if(d: Draw) -> Draft:
    (xs, x), t = d.list_names(), d.test()
    return on_list(
        xs,
        d,
        t.near,
        f"the indices in {xs} of the numbers that are {t.words}",
        f"Keep the index of each number of {xs} that is {t.words}.",
        [
            EMPTY,
            ("go through indices and numbers", f"for i, {x} in enumerate({xs})"),
            (f"if it is {t.words}, add the index", f"  if {t.of(x)}: add i to out"),
            GIVE_OUT,
        ],
        ["result == sorted(result)", f"len(result) <= len({xs})"],
        [f"return [i for i, {x} in enumerate({xs}) if {t.of(x)}]"],
    )
