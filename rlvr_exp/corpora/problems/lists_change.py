"""Problems on lists of numbers that become others, or one number."""

from rlvr_exp.corpora.problems.draw import Draw
from rlvr_exp.corpora.problems.family import Draft, family, loop, on_list
from rlvr_exp.corpora.problems.lists_where import EMPTY, GIVE_N, GIVE_OUT, ZERO


@family
def change_all(d: Draw) -> Draft:
    (xs, x), c = d.list_names(), d.change()
    return on_list(
        xs,
        d,
        c.near,
        f"the list of each number in {xs} {c.words}",
        f"Change each number of {xs} by itself.",
        loop(xs, x, EMPTY, [(f"add it {c.words}", f"add {c.of(x)} to out")], GIVE_OUT),
        [f"len(result) == len({xs})"],
        [f"return [{c.of(x)} for {x} in {xs}]"],
    )


@family
def sum_changed(d: Draw) -> Draft:
    (xs, x), c = d.list_names(), d.change()
    return on_list(
        xs,
        d,
        c.near,
        f"the sum of each number in {xs} {c.words}",
        f"Change each number of {xs} and add it up.",
        loop(xs, x, ZERO, [(f"add it {c.words}", f"total += {c.of(x)}")], GIVE_N),
        [f"result == 0 or len({xs}) > 0"],
        [f"return sum({c.of(x)} for {x} in {xs})"],
    )


@family
def changed_sum(d: Draw) -> Draft:
    (xs, _), c = d.list_names(), d.change()
    return on_list(
        xs,
        d,
        c.near,
        f"the sum of {xs}, {c.words}",
        f"Add up {xs} first, then change the sum.",
        [("add up the list", f"total = sum({xs})"), (f"return it {c.words}", f"return {c.of('total')}")],
        ["type(result) is int"],
        [f"total = sum({xs})", f"return {c.of('total')}"],
    )


@family
def largest_changed(d: Draw) -> Draft:
    (xs, x), c = d.list_names(), d.change()
    return on_list(
        xs,
        d,
        c.near,
        f"the largest of the numbers in {xs} {c.words}",
        f"Change each number of {xs}, then take the largest.",
        [
            ("change each number", f"out = [{c.of(x)} for {x} in {xs}]"),
            ("return the largest", "return max(out)"),
        ],
        [f"len({xs}) > 0"],
        [f"return max({c.of(x)} for {x} in {xs})"],
        least=1,
    )


@family
def changed_largest(d: Draw) -> Draft:
    (xs, _), c = d.list_names(), d.change()
    return on_list(
        xs,
        d,
        c.near,
        f"the largest number in {xs}, {c.words}",
        f"Take the largest number of {xs}, then change it.",
        [("take the largest", f"best = max({xs})"), (f"return it {c.words}", f"return {c.of('best')}")],
        [f"len({xs}) > 0"],
        [f"best = max({xs})", f"return {c.of('best')}"],
        least=1,
    )


@family
def smallest_changed(d: Draw) -> Draft:
    (xs, x), c = d.list_names(), d.change()
    return on_list(
        xs,
        d,
        c.near,
        f"the smallest of the numbers in {xs} {c.words}",
        f"Change each number of {xs}, then take the smallest.",
        [("change each number", f"out = [{c.of(x)} for {x} in {xs}]"), ("return the smallest", "return min(out)")],
        [f"len({xs}) > 0"],
        [f"return min({c.of(x)} for {x} in {xs})"],
        least=1,
    )


@family
def change_places(d: Draw) -> Draft:
    (xs, x), c, k = d.list_names(), d.change(), d.number(2, 3)
    return on_list(
        xs,
        d,
        c.near,
        f"{xs} with each number at an index that is a multiple of {k} {c.words}",
        f"Change the numbers of {xs} at every index that is a multiple of {k}.",
        [
            EMPTY,
            ("go through indices and numbers", f"for i, {x} in enumerate({xs})"),
            (f"add it, {c.words} at a multiple of {k}", f"  add {c.of(x)} if i % {k} == 0 else {x} to out"),
            GIVE_OUT,
        ],
        [f"len(result) == len({xs})"],
        [f"return [{c.of(x)} if i % {k} == 0 else {x} for i, {x} in enumerate({xs})]"],
    )


@family
def running_sums(d: Draw) -> Draft:
    (xs, x), k = d.list_names(), d.number(0, 9)
    return on_list(
        xs,
        d,
        (0, 1),
        f"the running sums of {xs}, each plus {k}",
        f"Add the numbers of {xs} to {k} one by one and keep each sum.",
        [
            (f"start with an empty list and {k}", f"out, total = [], {k}"),
            (f"go through {xs}", f"for {x} in {xs}"),
            ("add it to the sum", f"  total += {x}"),
            ("keep the sum", "  add total to out"),
            GIVE_OUT,
        ],
        [f"len(result) == len({xs})"],
        [f"out, total = [], {k}", f"for {x} in {xs}:", f"    total += {x}", "    out.append(total)", "return out"],
    )


@family
def differences(d: Draw) -> Draft:
    (xs, _), k = d.list_names(), d.number(1, 3)
    return on_list(
        xs,
        d,
        (0, 1, 4),
        f"each number of {xs} minus the one {k} before it",
        f"Subtract from each number of {xs} the one {k} places before it.",
        [
            EMPTY,
            (f"go through the indices from {k} on", f"for i in range({k}, len({xs}))"),
            ("add the difference", f"  add {xs}[i] - {xs}[i - {k}] to out"),
            GIVE_OUT,
        ],
        [f"len(result) == max(0, len({xs}) - {k})"],
        [f"return [{xs}[i] - {xs}[i - {k}] for i in range({k}, len({xs}))]"],
    )


@family
def clamped(d: Draw) -> Draft:
    (xs, x), low, more = d.list_names(), d.number(-2, 4), d.number(3, 6)
    high = low + more
    return on_list(
        xs,
        d,
        (low - 1, low, high, high + 1),
        f"{xs} with numbers below {low} raised to {low} and those above {high} lowered to {high}",
        f"Hold each number of {xs} between {low} and {high}.",
        loop(xs, x, EMPTY, [("add it, held between both", f"add max({low}, min({high}, {x})) to out")], GIVE_OUT),
        [f"len(result) == len({xs})", f"all({low} <= {x} <= {high} for {x} in result)"],
        [f"return [max({low}, min({high}, {x})) for {x} in {xs}]"],
    )


@family
def alternating_sum(d: Draw) -> Draft:
    (xs, x), k = d.list_names(), d.number(2, 3)
    return on_list(
        xs,
        d,
        (1, 2),
        f"the sum of {xs}, where numbers at an index that is a multiple of {k} are subtracted",
        f"Add the numbers of {xs}, but subtract those at a multiple of {k}.",
        [
            ZERO,
            ("go through indices and numbers", f"for i, {x} in enumerate({xs})"),
            (f"subtract it at a multiple of {k}, else add it", f"  total += -{x} if i % {k} == 0 else {x}"),
            GIVE_N,
        ],
        [f"abs(result) <= sum(abs({x}) for {x} in {xs})"],
        [f"return sum(-{x} if i % {k} == 0 else {x} for i, {x} in enumerate({xs}))"],
    )


@family
def weighted_sum(d: Draw) -> Draft:
    (xs, x), k = d.list_names(), d.number(0, 4)
    return on_list(
        xs,
        d,
        (1, 2),
        f"the sum of each number in {xs} times its index plus {k}",
        f"Multiply each number of {xs} by its index plus {k} and add up.",
        [
            ZERO,
            ("go through indices and numbers", f"for i, {x} in enumerate({xs})"),
            ("add the product", f"  total += {x} * (i + {k})"),
            GIVE_N,
        ],
        [f"result == 0 or len({xs}) > 0"],
        [f"return sum({x} * (i + {k}) for i, {x} in enumerate({xs}))"],
    )


@family
def spread(d: Draw) -> Draft:
    (xs, _), c = d.list_names(), d.change()
    return on_list(
        xs,
        d,
        c.near,
        f"the largest minus the smallest number in {xs}, {c.words}",
        f"Subtract the smallest number of {xs} from the largest and change the difference.",
        [
            ("take the difference", f"gap = max({xs}) - min({xs})"),
            (f"return it {c.words}", f"return {c.of('gap')}"),
        ],
        [f"len({xs}) > 0"],
        [f"gap = max({xs}) - min({xs})", f"return {c.of('gap')}"],
        least=1,
    )


@family
def counted_above_before(d: Draw) -> Draft:
    (xs, _), k = d.list_names(), d.number(1, 5)
    return on_list(
        xs,
        d,
        (0, k, k + 1),
        f"how many numbers in {xs} are at least {k} more than the one before",
        f"Compare each number of {xs} with the one before it.",
        [
            ZERO,
            ("go through the indices from 1 on", f"for i in range(1, len({xs}))"),
            (f"if it is at least {k} more, add 1", f"  if {xs}[i] - {xs}[i - 1] >= {k}: total += 1"),
            GIVE_N,
        ],
        [f"0 <= result <= max(0, len({xs}) - 1)"],
        [
            "total = 0",
            f"for i in range(1, len({xs})):",
            f"    if {xs}[i] - {xs}[i - 1] >= {k}:",
            "        total += 1",
            "return total",
        ],
    )


@family
def steps_to_sum(d: Draw) -> Draft:
    (xs, x), k = d.list_names(), d.number(5, 15)
    return on_list(
        xs,
        d,
        (1, 5, k),
        f"how many numbers from the front of {xs} add up to at least {k}, or -1",
        f"Add numbers of {xs} until the sum is at least {k}.",
        [
            ("start at 0", "total = 0"),
            ("go through indices and numbers", f"for i, {x} in enumerate({xs})"),
            ("add it", f"  total += {x}"),
            (f"if the sum is at least {k}, return the count", f"  if total >= {k}: return i + 1"),
            ("else return -1", "return -1"),
        ],
        [f"result == -1 or 1 <= result <= len({xs})"],
        [
            "total = 0",
            f"for i, {x} in enumerate({xs}):",
            f"    total += {x}",
            f"    if total >= {k}:",
            "        return i + 1",
            "return -1",
        ],
    )
