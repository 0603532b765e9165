"""Problems on texts: their characters and words."""

from rlvr_exp.corpora.problems.draw import TEXTS, Draw
from rlvr_exp.corpora.problems.family import Draft, family, loop, on_text
from rlvr_exp.corpora.problems.lists_where import EMPTY, GIVE_N, GIVE_OUT, ZERO

NOTHING, GIVE_TEXT = ("start with an empty text", "out = ''"), ("return the text", "return out")
MIXED = "aA1b "


@family
def keep_letters(d: Draw) -> Draft:
    (s, c), t = d.text_names(), d.letter_test()
    return on_text(
        s,
        d,
        MIXED,
        f"{s} with only the characters that are {t.words}",
        f"Keep each character of {s} that is {t.words}.",
        loop(s, c, NOTHING, [(f"if it is {t.words}, add it", f"if {t.of(c)}: out += {c}")], GIVE_TEXT),
        [f"all({t.of(c)} for {c} in result)", f"len(result) <= len({s})"],
        [f"return ''.join({c} for {c} in {s} if {t.of(c)})"],
    )


@family
def count_letters(d: Draw) -> Draft:
    (s, c), t = d.text_names(), d.letter_test()
    return on_text(
        s,
        d,
        MIXED,
        f"how many characters of {s} are {t.words}",
        f"Count the characters of {s} that are {t.words}.",
        loop(s, c, ZERO, [(f"if it is {t.words}, add 1", f"if {t.of(c)}: total += 1")], GIVE_N),
        [f"0 <= result <= len({s})"],
        [f"return sum(1 for {c} in {s} if {t.of(c)})"],
    )


@family
def mark_letters(d: Draw) -> Draft:
    (s, c), t, mark = d.text_names(), d.letter_test(), d.pick("*-#")
    return on_text(
        s,
        d,
        MIXED,
        f"{s} with '{mark}' for each character that is {t.words}",
        f"Put '{mark}' in the place of each character of {s} that is {t.words}.",
        loop(
            s,
            c,
            NOTHING,
            [(f"add '{mark}' if it is {t.words}, else it", f"out += '{mark}' if {t.of(c)} else {c}")],
            GIVE_TEXT,
        ),
        [f"len(result) == len({s})"],
        [f"return ''.join('{mark}' if {t.of(c)} else {c} for {c} in {s})"],
    )


@family
def double_letters(d: Draw) -> Draft:
    (s, c), t, k = d.text_names(), d.letter_test(), d.number(2, 3)
    return on_text(
        s,
        d,
        MIXED,
        f"{s} with each character that is {t.words} {k} times",
        f"Repeat the characters of {s} that are {t.words}.",
        loop(
            s,
            c,
            NOTHING,
            [(f"add it, {k} times if it is {t.words}", f"out += {c} * {k} if {t.of(c)} else {c}")],
            GIVE_TEXT,
        ),
        [f"len({s}) <= len(result) <= {k} * len({s})"],
        [f"return ''.join({c} * {k} if {t.of(c)} else {c} for {c} in {s})"],
    )


@family
def first_letter(d: Draw) -> Draft:
    (s, _), t = d.text_names(), d.letter_test()
    at = f"{s}[i]"
    return on_text(
        s,
        d,
        MIXED,
        f"the index of the first character of {s} that is {t.words}, or -1",
        f"Go through the indices of {s} and stop at a character that is {t.words}.",
        [
            ("go through the indices", f"for i in range(len({s}))"),
            (f"if the character there is {t.words}, return the index", f"  if {t.of(at)}: return i"),
            ("else return -1", "return -1"),
        ],
        [f"-1 <= result < max(1, len({s}))"],
        [f"for i in range(len({s})):", f"    if {t.of(at)}:", "        return i", "return -1"],
    )


@family
def before_letter(d: Draw) -> Draft:
    (s, c), t = d.text_names(), d.letter_test()
    return on_text(
        s,
        d,
        MIXED,
        f"the part of {s} before its first character that is {t.words}",
        f"Add characters of {s} until one is {t.words}.",
        loop(
            s, c, NOTHING, [(f"if it is {t.words}, stop", f"if {t.of(c)}: stop"), ("add it", f"out += {c}")], GIVE_TEXT
        ),
        [f"{s}.startswith(result)", f"not any({t.of(c)} for {c} in result)"],
        ["out = ''", f"for {c} in {s}:", f"    if {t.of(c)}:", "        break", f"    out += {c}", "return out"],
    )


@family
def split_letters(d: Draw) -> Draft:
    (s, c), t = d.text_names(), d.letter_test()
    return on_text(
        s,
        d,
        MIXED,
        f"the characters of {s} that are {t.words}, then the others",
        f"Make two texts of {s} and join them.",
        [
            (f"take those that are {t.words}", f"yes = {c} of {s} with {t.of(c)}"),
            ("take the others", f"no = the other {c} of {s}"),
            ("return both, joined", "return yes + no"),
        ],
        [f"sorted(result) == sorted({s})"],
        [
            f"yes = ''.join({c} for {c} in {s} if {t.of(c)})",
            f"no = ''.join({c} for {c} in {s} if not {t.of(c)})",
            "return yes + no",
        ],
    )


@family
def letters_in_row(d: Draw) -> Draft:
    (s, _), k = d.text_names(), d.number(1, 2)
    return on_text(
        s,
        d,
        "aab",
        f"how many characters of {s} are the same as the one {k} before",
        f"Compare each character of {s} with the one {k} places before it.",
        [
            ZERO,
            (f"go through the indices from {k} on", f"for i in range({k}, len({s}))"),
            ("if both are the same, add 1", f"  if {s}[i] == {s}[i - {k}]: total += 1"),
            GIVE_N,
        ],
        [f"0 <= result <= max(0, len({s}) - {k})"],
        [f"return sum(1 for i in range({k}, len({s})) if {s}[i] == {s}[i - {k}])"],
    )


@family
def letter_once(d: Draw) -> Draft:
    (s, c), (words, sign) = d.text_names(), d.pick([("once", "== 1"), ("more than once", "> 1")])
    return on_text(
        s,
        d,
        "aabbc",
        f"the characters of {s} that are in it {words}, in order",
        f"Count each character of {s} and keep those that are there {words}.",
        loop(s, c, NOTHING, [(f"if it is there {words}, add it", f"if {s}.count({c}) {sign}: out += {c}")], GIVE_TEXT),
        [f"len(result) <= len({s})", f"all({c} in {s} for {c} in result)"],
        [f"return ''.join({c} for {c} in {s} if {s}.count({c}) {sign})"],
    )


@family
def cut_text(d: Draw) -> Draft:
    s, k, end = d.name(TEXTS), d.number(3, 5), d.pick(["..", "~", "!"])
    return on_text(
        s,
        d,
        "abc",
        f"{s} if it has at most {k} characters, else its first {k} and '{end}'",
        f"Look at the length of {s}.",
        [
            (f"if it has at most {k} characters, return it", f"if len({s}) <= {k}: return {s}"),
            ("else cut it", f"return {s}[:{k}] + '{end}'"),
        ],
        [f"result == {s} or result.endswith('{end}')"],
        [f"if len({s}) <= {k}:", f"    return {s}", f"return {s}[:{k}] + '{end}'"],
    )


@family
def padded(d: Draw) -> Draft:
    s, k, mark, left = d.name(TEXTS), d.number(3, 6), d.pick("*-."), d.pick([True, False])
    where, code = ("left", f"{s} = '{mark}' + {s}") if left else ("right", f"{s} = {s} + '{mark}'")
    return on_text(
        s,
        d,
        "abc",
        f"{s} filled on the {where} with '{mark}' to at least {k} characters",
        f"Add '{mark}' on the {where} while {s} is too short.",
        [
            (f"while it has fewer than {k} characters", f"while len({s}) < {k}"),
            (f"add '{mark}' on the {where}", f"  {code}"),
            ("return it", f"return {s}"),
        ],
        [f"len(result) == max({k}, len({s}))", f"{s} in result"],
        [f"while len({s}) < {k}:", f"    {code}", f"return {s}"],
    )


@family
def mirrored(d: Draw) -> Draft:
    s, mark = d.name(TEXTS), d.pick(["", "|", "-"])
    joined = f" and '{mark}' between" if mark else ""
    code = f"{s} + '{mark}' + {s}[::-1]" if mark else f"{s} + {s}[::-1]"
    return on_text(
        s,
        d,
        "abc",
        f"{s} followed by its reverse{joined}",
        f"Reverse {s} and join both.",
        [
            ("reverse it", f"back = {s} from the end"),
            ("return both, joined", f"return {s} + {f'{mark!r} + ' if mark else ''}back"),
        ],
        ["result == result[::-1]", f"result.startswith({s})"],
        [f"return {code}"],
    )


@family
def is_mirrored(d: Draw) -> Draft:
    (s, c), t = d.text_names(), d.letter_test()
    return on_text(
        s,
        d,
        "aab",
        f"whether the characters of {s} that are {t.words} read the same from both ends",
        f"Keep the characters of {s} that are {t.words} and compare them with their reverse.",
        [
            (f"keep those that are {t.words}", f"kept = {c} of {s} with {t.of(c)}"),
            ("return whether it is its own reverse", "return kept == kept from the end"),
        ],
        [f"result or len({s}) > 1"],
        [f"kept = [{c} for {c} in {s} if {t.of(c)}]", "return kept == kept[::-1]"],
    )


@family
def long_words(d: Draw) -> Draft:
    s, k, (words, sign) = d.name(TEXTS), d.number(2, 4), d.pick([("more than", ">"), ("at most", "<=")])
    return on_text(
        s,
        d,
        "ab",
        f"the list of the words of {s} with {words} {k} characters",
        f"Split {s} at blanks and look at the length of each word.",
        [
            EMPTY,
            ("go through the words", f"for w in {s}.split()"),
            (f"if it has {words} {k} characters, add it", f"  if len(w) {sign} {k}: add w to out"),
            GIVE_OUT,
        ],
        [f"all(len(w) {sign} {k} for w in result)", f"all(w in {s} for w in result)"],
        [f"return [w for w in {s}.split() if len(w) {sign} {k}]"],
        words=True,
    )


@family
def word_letters(d: Draw) -> Draft:
    s, k, join = d.name(TEXTS), d.pick([0, -1]), d.pick(["", "-", "."])
    which = "first" if k == 0 else "last"
    between = f", with '{join}' between" if join else ""
    return on_text(
        s,
        d,
        "ab",
        f"the {which} characters of the words of {s}{between}",
        f"Split {s} at blanks and take the {which} character of each word.",
        [("take them", f"out = w[{k}] for w in {s}.split()"), ("return them joined", f"return {join!r}.join(out)")],
        [f"len(result) <= len({s}) + len({s}.split())"],
        [f"return {join!r}.join(w[{k}] for w in {s}.split())"],
        words=True,
    )


@family
def turned_words(d: Draw) -> Draft:
    s, k = d.name(TEXTS), d.number(2, 3)
    return on_text(
        s,
        d,
        "ab",
        f"{s} with each word of at least {k} characters reversed",
        f"Split {s} at blanks, reverse the long words and join.",
        [
            EMPTY,
            ("go through the words", f"for w in {s}.split()"),
            (f"reverse it if it has at least {k} characters", f"  add w[::-1] if len(w) >= {k} else w to out"),
            ("return them joined", "return ' '.join(out)"),
        ],
        [f"len(result) == len({s})"],
        [f"return ' '.join(w[::-1] if len(w) >= {k} else w for w in {s}.split())"],
        words=True,
    )


@family
def word_lengths(d: Draw) -> Draft:
    s, c = d.name(TEXTS), d.change()
    return on_text(
        s,
        d,
        "ab",
        f"the list of the length of each word of {s} {c.words}",
        f"Split {s} at blanks and change each length.",
        [
            EMPTY,
            ("go through the words", f"for w in {s}.split()"),
            (f"add its length {c.words}", f"  add {c.of('len(w)')} to out"),
            GIVE_OUT,
        ],
        [f"len(result) == len({s}.split())"],
        [f"return [{c.of('len(w)')} for w in {s}.split()]"],
        words=True,
    )


@family
def longest_word(d: Draw) -> Draft:
    s, (words, what) = d.name(TEXTS), d.pick([("longest", "max"), ("shortest", "min")])
    return on_text(
        s,
        d,
        "ab",
        f"the first of the {words} words of {s}",
        f"Split {s} at blanks and compare lengths.",
        [
            ("split it", f"found = {s}.split()"),
            (f"return the first of the {words}", f"return {what}(found, by length)"),
        ],
        [f"result in {s}.split()"],
        [f"return {what}({s}.split(), key=len)"],
        words=True,
    )


@family
def shared_letters(d: Draw) -> Draft:
    (s, c), k = d.text_names(), d.pick(["abc", "aeiou", "xyz1"])
    return on_text(
        s,
        d,
        k,
        f"how many different characters of {s} are in '{k}'",
        f"Take each character of {s} once and count those in '{k}'.",
        [
            ("take each once", f"seen = set({s})"),
            (f"count those in '{k}'", f"return the number of {c} in seen with {c} in '{k}'"),
        ],
        [f"0 <= result <= {len(k)}"],
        [f"return len({{{c} for {c} in {s} if {c} in '{k}'}})"],
    )
