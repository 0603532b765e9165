"""What the book of mistakes keeps of a problem."""

from hypothesis import given
from hypothesis import strategies as st

from rlvr_exp.domains.problems.adversarial import Book

TESTS = st.dictionaries(st.sampled_from("abcdef"), st.booleans())
PROGRAMS = st.lists(st.sampled_from("pqrstu"), unique=True)


def test_the_tests_that_fail_most_often_are_kept_and_go_once_all_pass_them() -> None:
    book = Book(2)
    book.note("x", {"a": True, "b": True, "c": True}, ["p", "q"])
    book.note("x", {"c": True, "a": False, "new": False}, ["r"])
    assert book.tests("x") == ("b", "c")
    assert book.programs("x") == ("q", "r"), "the newest ones"
    assert book.tests("other") == () and book.programs("other") == ()
    for _ in range(3):
        book.note("x", dict.fromkeys("abc", False), [])
    assert book.tests("x") == () and book.metrics() == {"tests": 0.0, "programs": 2.0}


@given(st.lists(st.tuples(st.sampled_from("xy"), TESTS, PROGRAMS)), st.integers(1, 4))
def test_it_never_grows_past_its_size_and_comes_back_from_its_state(notes, size) -> None:
    book, other = Book(size), Book(size)
    for problem, failed, wrong in notes:
        book.note(problem, failed, wrong)
        assert len(book.tests(problem)) <= size and len(book.programs(problem)) <= size
        assert set(wrong[-size:]) <= set(book.programs(problem))
    other.load_state_dict(book.state_dict())
    assert other.state_dict() == book.state_dict()
    other.note("x", {"a": True}, ["p"])
    book.note("x", {"a": True}, ["p"])
    assert other.state_dict() == book.state_dict()
