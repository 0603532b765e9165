"""The lexer: it cuts where Dafny cuts, and never loses a character."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvr_exp.domains.dafny.tokens import ERROR, has_directive, pieces, plain, printed, tokens

PARTS = st.sampled_from([*"/* */ // \" ' @ \\ { } : = assume x' 'a' 1.5 é #if".split(), "\n", " ", "\t"])
TEXTS = st.one_of(st.text(), st.lists(PARTS).map("".join))


@given(TEXTS)
def test_printed_anew_the_tokens_stand_where_they_stood(text: str) -> None:
    shown = printed(text)
    assert tokens(shown) == tokens(text) and len(shown) == len(text)
    assert [at for at, one in enumerate(shown) if one == "\n"] == [at for at, one in enumerate(text) if one == "\n"]
    assert printed(shown) == shown


def test_comments_are_blanks_and_strings_stay() -> None:
    text = 'a /* b\n c */ "/* d */" // e\n@"// f" /* /* */ g'
    assert printed(text) == 'a     \n      "/* d */"     \n@"// f"           '


@pytest.mark.parametrize(
    "before", ["", " \t", "\ufeff", "\u200b", "\f", "\v", "\u00a0", "\x00", "\u2028", "\u3164", "x\r", "x\x85"]
)
@pytest.mark.parametrize("around", ["%s", "a\n%s", "/*\n%s\n*/", '@"\n%s"'])
def test_a_line_that_begins_with_a_number_sign_is_found_wherever_it_stands(before: str, around: str) -> None:
    assert all(has_directive(around % (before + word)) for word in ("#line 1 x", "#if X", "#else", "#elsif", "#endif"))


@pytest.mark.parametrize(
    "text", ["D#[k](x)", "assert P#[k](x);\n x #[k]", "a ==#[k] b", "// a # b", "x\n  y #line", "", "é#"]
)
def test_a_number_sign_inside_a_line_is_no_directive(text: str) -> None:
    assert not has_directive(text)


@given(TEXTS)
def test_pieces_rebuild_the_text(text: str) -> None:
    assert "".join(piece.text for piece in pieces(text)) == text


@given(TEXTS)
def test_tokens_are_the_pieces_that_are_tokens(text: str) -> None:
    cut = [piece.text for piece in pieces(text) if piece.token]
    assert [token.lstrip(ERROR) or token for token in tokens(text)] == [
        piece.lstrip(ERROR) or piece for piece in cut
    ] or (ERROR in text)


WORDS = ["x", "<==>", "==>", "'{'", '"a b"', '@"a""b"', "0x1F", ":=", "{", "!in", "::"]


@given(st.lists(st.sampled_from(WORDS), max_size=30))
def test_tokens_set_apart_come_back(words: list[str]) -> None:
    wanted = [part for word in words for part in (["!", "in"] if word == "!in" else [word])]
    assert tokens(" ".join(words)) == tokens("\n/* x /* y */ */".join(words)) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a /* b /* c */ d */ e", ["a", "e"]),
        ("a /*/ b */ c", ["a", "c"]),
        ("a /* never closed b", ["a"]),
        ("a // b */ c \r d\ne", ["a", "e"]),
        ("// /* \n a // */", ["a"]),
        ("'{' '\"' '\\''", ["'{'", "'\"'", "'\\''"]),
        ("x' y'' == 'a'", ["x'", "y''", "==", "'a'"]),
        ('@"\\" x', ['@"\\"', "x"]),
        ('"/*" x "*/"', ['"/*"', "x", '"*/"']),
        ("{:verify false}", ["{", ":", "verify", "false", "}"]),
        ("s[0..1] 1.5", ["s", "[", "0", "..", "1", "]", "1.5"]),
    ],
)
def test_cuts_as_dafny_does(text: str, wanted: list[str]) -> None:
    assert tokens(text) == wanted


@pytest.mark.parametrize("text", ["\u0441", "x\u200b", "'a", "'a'b", '"a', '"\\q"', "\\", "$", "\x00", "\ufeff", "«"])
def test_what_scanners_could_disagree_on_is_an_error(text: str) -> None:
    assert any(token[0] == ERROR for token in tokens(text))


def test_line_ends_and_byte_order_mark_are_made_plain() -> None:
    assert plain("\ufeffa\r\nb\rc") == "a\nb\nc"


def test_many_blanks_before_a_number_sign_take_no_time() -> None:
    text = "lemma L() {}" + "\n" * 200_000 + "x #"
    begun = time.process_time()
    assert not has_directive(text) and has_directive("\n" * 200_000 + "#")
    assert time.process_time() - begun < 5, "where a search from every blank would take minutes"
