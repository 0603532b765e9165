"""The store keeps what was committed, in the order of its metrics, without duplicates and within its bound."""

import sqlite3
from functools import cmp_to_key
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from solution_samples import solution, solutions
from thinning import tries

from rlvr_exp.config.solutions import QUALITY as ALLOWED
from rlvr_exp.core.errors import GuardStop, InputError
from rlvr_exp.sandbox.wire import Bag, Pairs
from rlvr_exp.solutions.record import Solution, from_row, output_hash, to_row
from rlvr_exp.solutions.store import Added, Keeping, Query, SolutionStore, create, distance, faults, kept

ROOMY = Keeping(per_task=1000)
MANY = st.lists(solutions(), max_size=12)
QUALITY = st.lists(st.sampled_from(ALLOWED), max_size=4)


def firsts(given: list[Solution]) -> list[Solution]:
    """Without duplicates, by the fields themselves."""
    seen: dict[tuple[object, ...], Solution] = {}
    for one in given:
        seen.setdefault((one.task, one.outputs, one.syntax.hash), one)
    return list(seen.values())


@given(MANY, QUALITY)
@pytest.mark.property(32)
def test_the_ranking_is_the_lexicographic_order_of_its_metrics(given: list[Solution], quality: list[str]) -> None:
    def value(one: Solution, name: str) -> float:
        """The smallest is the best."""
        verdict = one.verdict
        of_each = {
            "correct": -float(verdict.outcome == "passed"),
            "pairs_right": -(verdict.passed / verdict.total if verdict.total else 0.0),
            "size": float(one.syntax.size),
            "cpu_s": verdict.seconds,
            "step": -one.step,
            "difficulty": -one.difficulty,
        }
        return -of_each[name[1:]] if name[0] == "-" else of_each[name]

    def order(one: Solution, other: Solution) -> int:
        for name in quality:
            if (a := value(one, name)) != (b := value(other, name)):
                return -1 if a < b else 1
        return 0  # `sorted` leaves equals in their order, that of insertion.

    with TemporaryDirectory() as folder, SolutionStore(Path(folder) / "s", ROOMY) as store:
        store.add_many(given)
        assert store.find(Query(quality=quality)) == sorted(firsts(given), key=cmp_to_key(order))


@settings(max_examples=tries(60))
@given(st.lists(MANY, max_size=4), st.integers(1, 4), QUALITY)
@pytest.mark.property(33)
def test_no_duplicates_and_at_most_n_are_kept(parts: list[list[Solution]], most: int, quality: list[str]) -> None:
    with TemporaryDirectory() as folder, SolutionStore(Path(folder) / "s", Keeping(most, tuple(quality))) as store:
        for part in parts:
            before = store.find()
            added = store.add_many(part)
            kept_now = store.find()
            assert len({(one.task, one.behaviour, one.syntax.hash) for one in kept_now}) == len(kept_now)
            assert all(len([1 for one in kept_now if one.task == task]) <= most for task in "ab")
            assert len(kept_now) == len(before) + added.new - added.evicted
            assert added.new + added.duplicates == len(part)
            assert len(kept_now) == sum(
                min(most, len([1 for one in firsts(before + part) if one.task == task])) for task in "ab"
            )


@settings(max_examples=tries(40))  # Each commit waits for the disk.
@given(MANY)
@pytest.mark.property(31)
def test_what_was_committed_is_there_whole_after_closing_and_opening(given: list[Solution]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "deep" / "s"
        SolutionStore(path, ROOMY).close()
        for one in given:
            with SolutionStore(path) as store:
                store.add(one)
        with SolutionStore(path) as store:
            assert store.find() == firsts(given) and store.keeping == ROOMY
            assert [store.get(one.key) for one in firsts(given)] == firsts(given)


@given(solutions())
def test_a_row_reads_back(one: Solution) -> None:
    assert from_row(to_row(one)) == one


def test_the_best_half_stays_with_the_most_different() -> None:
    outputs = ["aaaa", "aaab", "aaaa", "aaac", "zzzz", "aazz", "zzzy"]
    assert kept(outputs, 4) == [0, 1, 4, 5] and kept(outputs, 7) == list(range(7)) and kept(outputs, 1) == [0]
    assert kept(outputs, 3) == [0, 1, 4], "the odd place is the best's"
    assert distance("abc", "abd") == 1 and distance("abc", "a") == 2


def test_eviction_keeps_the_best_and_the_most_different(tmp_path: Path) -> None:
    with SolutionStore(tmp_path / "s", Keeping(4)) as store:
        right = [solution(number=n, outputs=(1, 2)) for n in range(6)]
        strange, near = (solution(outputs=outputs, passed=n, total=2) for n, outputs in enumerate(((7, 8), (1, 8))))
        assert store.add_many([strange, near, *right]) == Added(8, 0, 4)
        assert store.find() == [strange, near, *right[:2]]
        assert store.add_many([right[5]]) == Added(1, 0, 1), "what left may come back, and leaves again"


def test_filters(tmp_path: Path) -> None:
    wrong = solution("b", family="fill", difficulty=0.5, passed=0, total=2, operator="refined")
    right = solution("a", family="flip", difficulty=0.1, operator="gold")
    with SolutionStore(tmp_path / "s") as store:
        store.add_many([wrong, right])
        for query, expected in [
            (Query(), [wrong, right]),
            (Query(task="a"), [right]),
            (Query(family="fill"), [wrong]),
            (Query(operator="gold"), [right]),
            (Query(correct=False), [wrong]),
            (Query(correct=True), [right]),
            (Query(difficulty=(0.2, 0.5)), [wrong]),
            (Query(quality=["correct"], limit=1), [right]),
            (Query(task="a", correct=False), []),
        ]:
            assert store.find(query) == expected
            assert store.count(query) == len(expected) if not query.limit else 2
        assert store.get("none") is None
        with pytest.raises(ValueError, match="allowed correct, -correct"):
            store.find(Query(quality=["beauty"]))


@pytest.mark.parametrize(
    "wrong",
    [
        {"outputs": []},
        {"operator": "dreamt"},
        {"passed": 3, "total": 2},
        {"difficulty": float("nan")},
        {"seconds": float("inf")},
        {"program": "\ud800"},
        {"task": ""},
    ],
)
def test_what_is_no_solution_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError):
        solution(**wrong)


def test_outputs_have_one_name_each() -> None:
    assert output_hash([[1, 2]]) == output_hash(((1, 2),))
    assert len({output_hash(one) for one in (1, 1.0, True, "1", None, [1], [])}) == 7
    odd = (1j, {1}, [[10**5000]], Bag(False, (1,)), Pairs(((1, 2),)))
    assert all(output_hash(one) == output_hash(one) for one in odd) and output_hash(1j) != output_hash({1})
    assert output_hash([[10**5000]]) != output_hash([[1]])


def test_a_batch_is_there_or_nothing_of_it(tmp_path: Path) -> None:
    with SolutionStore(tmp_path / "s") as store:
        with pytest.raises(OverflowError):
            store.add_many([solution(number=1), solution(number=2, step=1 << 70)])
        assert store.count() == 0 and store.add(solution(number=1)) and not store.add(solution(number=1))


def test_a_full_disk_is_a_stop_with_a_remedy(tmp_path: Path) -> None:
    with SolutionStore(tmp_path / "s") as store:
        store.add(solution(number=1))
        pages = store.rows("PRAGMA page_count")[0][0]
        store.rows(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(GuardStop, match="cannot be written: database or disk is full; make room"):
            store.add_many(solution(number=n) for n in range(2, 500))
        assert store.find() == [solution(number=1)]


def damaged(path: Path, kind: str) -> None:
    if kind == "text":
        path.write_text("a store of solutions, in words\n" * 100)
    elif kind == "empty":
        path.touch()
    elif kind == "folder":
        path.mkdir()
    elif kind != "absent":
        SolutionStore(path).close()
        with sqlite3.connect(path) as connection:
            connection.execute({"newer": "PRAGMA user_version = 2", "foreign": "PRAGMA application_id = 7"}[kind])


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("text", "is no store of solutions: file is not a database"),
        ("empty", "is no store of solutions"),
        ("folder", "is no file"),
        ("absent", "not there"),
        ("newer", "is of another version of rlvr_exp"),
        ("foreign", "is no store of solutions"),
    ],
)
def test_what_is_no_store_is_refused_and_left_alone(tmp_path: Path, kind: str, message: str) -> None:
    path = tmp_path / "s"
    damaged(path, kind)
    before = path.read_bytes() if path.is_file() else None
    for read_only in (True, False) if kind != "absent" else (True,):
        with pytest.raises(InputError, match=message):
            SolutionStore(path, read_only=read_only)
    assert (path.read_bytes() if path.is_file() else None) == before


def test_all_who_write_keep_alike(tmp_path: Path) -> None:
    SolutionStore(tmp_path / "s", Keeping(3, ("size",))).close()
    with SolutionStore(tmp_path / "s") as store:
        assert store.keeping == Keeping(3, ("size",))
    with pytest.raises(InputError, match="made to keep otherwise\n    got: 4 a task by size\n    allowed: 3 a task"):
        SolutionStore(tmp_path / "s", Keeping(4, ("size",)))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["s"], "nothing else is left beside it"


def test_who_makes_it_second_leaves_the_store_of_the_first(tmp_path: Path) -> None:
    """Two processes may both find that there is none."""
    with SolutionStore(tmp_path / "s") as store:
        store.add(solution())
        create(tmp_path / "s", Keeping(3), "solutions.path")
        assert store.find() == [solution()]
    with SolutionStore(tmp_path / "s") as store:
        assert store.find() == [solution()] and store.keeping == Keeping()
    assert [one.name for one in tmp_path.iterdir()] == ["s"]


def test_who_only_reads_cannot_write(tmp_path: Path) -> None:
    SolutionStore(tmp_path / "s").close()
    with SolutionStore(tmp_path / "s", read_only=True) as store, pytest.raises(GuardStop, match="readonly"):
        store.add(solution())


TWICE = "INSERT INTO solutions SELECT number + 100, 'other', task, family, difficulty, program, outcome, bucket, rule, "
TWICE += "passed, total, seconds, outputs, behaviour, syntax, size, operator, parent, run, step, policy FROM solutions"


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        ("UPDATE solutions SET program = 'x = 1 + 1' WHERE number = 1", "task t: key and syntax and size of "),
        ("UPDATE solutions SET behaviour = 'x' WHERE number = 1", "task t: behaviour of "),
        ("UPDATE solutions SET outputs = 'x'", "a row is no solution: Solution.outputs: a hash each"),
        ("UPDATE solutions SET passed = 9", "a row is no solution: Solution.verdict: 9 of 2 pairs right"),
        ('UPDATE keeping SET json = \'{"per_task": 1, "quality": []}\'', "task t: 2 solutions, at most 1 are kept"),
        (f"{TWICE} WHERE number = 1", "task t: 2 solutions of one behaviour and one syntax tree"),
    ],
)
def test_faults_are_named(tmp_path: Path, words: str, fault: str) -> None:
    with SolutionStore(tmp_path / "s", Keeping(5)) as store:
        store.add_many([solution(number=1), solution(number=2)])
        assert faults(store) == []
        with sqlite3.connect(tmp_path / "s") as connection:
            connection.execute(words)
    with SolutionStore(tmp_path / "s") as store:
        found = faults(store)
        assert found and any(one.startswith(fault) for one in found), found


def test_a_damaged_page_is_a_fault(tmp_path: Path) -> None:
    with SolutionStore(tmp_path / "s", Keeping(1000)) as store:
        store.add_many(solution(number=n) for n in range(300))
    content = bytearray((tmp_path / "s").read_bytes())
    middle = len(content) // 2 // 4096 * 4096
    content[middle : middle + 4096] = b"\xff" * 4096
    (tmp_path / "s").write_bytes(content)
    with SolutionStore(tmp_path / "s") as store:
        assert faults(store)[0].startswith(("file: ", "a row is no solution: "))
