"""Splits of rows: alike rows stay together, whatever the order of lines and files; nothing held out, nothing forbidden. Signatures of
edits, stripped headers, names of licences and languages."""

import json
import random
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from makers import made
from raw_edits import commit, dropped, edit, ingest, program, reasons, records, write_lines

from rlvr_exp.core.errors import InputError
from rlvr_exp.domains.edits import alike as groups
from rlvr_exp.domains.edits.alike import (
    ALIKE,
    HELD_OUT,
    PERMUTATIONS,
    SAME_EDIT,
    SAME_ID,
    WIDTH,
    bands_of,
    drawn,
    likeness,
    signature,
)
from rlvr_exp.domains.edits.normalize import NO_TRAINING, Dropped, canonical, forbids_training, spdx, without_header

HALVES = ("prepare.test_fraction=0.4", "prepare.dev_fraction=0.3")
CANITEDIT = {
    "id": 1,
    "name": "a",
    "full_name": "1_a",
    "before": program("secret").rstrip("\n"),
    "after": program("secret").rstrip("\n") + " + 7",
    "tests": "### START TESTS ###\nassert secret(1)",
    "instruction_descriptive": "Add seven.",
    "instruction_lazy": "seven",
    "taxonomy": {"change_kind": "corrective"},
}


def variant(word: str, number: int) -> str:
    """A long program that differs from another variant in one line."""
    return program(word, 60).replace(f"{word}_7 =", f"other_{number} =")


def alike(word: str, count: int) -> list[dict]:
    return [
        edit(word, id=f"{word}/{n}", before=variant(word, n), after=variant(word, n) + "# end\n") for n in range(count)
    ]


@settings(max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.randoms(use_true_random=False))
def test_order_of_lines_and_files_decides_nothing(
    tmp_path_factory: pytest.TempPathFactory, draw: random.Random
) -> None:
    tmp_path = tmp_path_factory.mktemp("order")
    rows = [row for at in range(12) for row in alike(f"w{at}", 1 + at % 3)] + [edit("w3", id="w3/again")] * 2
    write_lines(tmp_path / "set/a.jsonl", rows)
    draw.shuffle(rows)
    cut = draw.randrange(len(rows))
    write_lines(tmp_path / "other/z.jsonl", rows[:cut])
    write_lines(tmp_path / "other/a/b.jsonl", rows[cut:])
    one = records(ingest(tmp_path, "rows", tmp_path / "set", *HALVES, output="one_out"))
    other = records(ingest(tmp_path, "rows", tmp_path / "other", *HALVES, output="other_out"))
    assert one == other and len({row["split"] for row in one.values()}) == 3


def test_alike_rows_are_on_one_side(tmp_path: Path) -> None:
    write_lines(tmp_path / "set/a.jsonl", [row for at in range(30) for row in alike(f"w{at}", 4)])
    found = records(ingest(tmp_path, "rows", tmp_path / "set", *HALVES))
    sides = {
        name: {row["split"] for key, row in found.items() if key.startswith(f"rows/{name}/")}
        for name in (f"w{at}" for at in range(30))
    }
    assert all(len(splits) == 1 for splits in sides.values()) and len(found) == 120
    assert {split for splits in sides.values() for split in splits} == {"train", "dev", "test"}


def test_alike_rows_are_on_one_side_across_sets(tmp_path: Path) -> None:
    """EditPackFT is a part of CommitPackFT."""
    rows = [commit(f"w{at}", old_contents=variant(f"w{at}", 1)) for at in range(20)]
    write_lines(tmp_path / "all/data.jsonl", rows)
    write_lines(tmp_path / "part/data.jsonl", [row | {"old_contents": "# -*-\n" + row["old_contents"]} for row in rows])
    words = (f"prepare.also={{editpackft: {tmp_path}/part}}", *HALVES)
    found = records(ingest(tmp_path, "commitpackft", tmp_path / "all", *words))
    pairs = [
        (row["split"], found[name.replace("commitpackft", "editpackft")]["split"])
        for name, row in found.items()
        if name.startswith("commitpackft")
    ]
    assert len(pairs) == 20 and all(one == other for one, other in pairs) and len({one for one, _ in pairs}) == 3


def test_only_one_of_alike_rows_is_kept_on_request(tmp_path: Path) -> None:
    write_lines(tmp_path / "set/a.jsonl", [*alike("w", 4), edit("other")])
    output = ingest(tmp_path, "rows", tmp_path / "set", "prepare.near_duplicates=drop")
    assert len(records(output)) == 2 and reasons(output) == [ALIKE] * 3


def test_a_row_and_an_id_are_kept_once(tmp_path: Path) -> None:
    lines = [edit("one", id="b"), edit("one", id="a"), edit("two", id="a"), edit("three", id="c")]
    write_lines(tmp_path / "set/a.jsonl", lines)
    output = ingest(tmp_path, "rows", tmp_path / "set")
    assert sorted(records(output)) == ["rows/a", "rows/c"]
    assert sorted(reasons(output)) == sorted([SAME_EDIT, SAME_ID])


def test_a_group_goes_where_its_strictest_row_has_to_be(tmp_path: Path) -> None:
    rows = alike("w", 4)
    rows[0]["split"], rows[1]["split"], rows[2]["split"] = "train", "test", "dev"
    write_lines(tmp_path / "set/a.jsonl", rows)
    assert {row["split"] for row in records(ingest(tmp_path, "rows", tmp_path / "set")).values()} == {"test"}


def test_a_band_with_more_heads_than_are_held_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "HEADS", 1)
    write_lines(tmp_path / "set/a.jsonl", [row for at in range(3) for row in alike(f"w{at}", 3)])
    assert len(records(ingest(tmp_path, "rows", tmp_path / "set", *HALVES))) == 9


@given(st.lists(st.tuples(st.integers(0, 29), st.integers(0, 29)), max_size=40))
def test_groups_are_the_connected_components(
    tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[int, int]]
) -> None:
    found = groups.DisjointSets(tmp_path_factory.mktemp("groups") / "g.npy", 30)
    component = {number: {number} for number in range(30)}
    for one, other in pairs:
        found.join(one, other)
        both = component[one] | component[other]
        component |= dict.fromkeys(both, both)
    assert dict(found.roots()) == {number: min(component[number]) for number in range(30)}


def test_shares_are_those_requested() -> None:
    parts = [drawn(number.to_bytes(16, "big"), 0.2, 0.1, 0) for number in range(20_000)]
    assert abs(parts.count("test") / 20_000 - 0.2) < 0.01 and abs(parts.count("dev") / 20_000 - 0.1) < 0.01


LONG = program("secret", 60)
SCRIPT = "secret = print(1)\nsecret_0 = secret(2) + 3\nprint(secret_0 * secret)\n"


def renamed(text: str) -> str:
    return re.sub(r"\bsecret\b", "told", text.replace("secret_", "t"))


@pytest.mark.parametrize(
    ("held", "before"),
    [
        (LONG, LONG),
        (LONG, LONG.replace("+ 3\n", "+ 3  # three\n")),
        (LONG, program("other", 200) + renamed(LONG)),  # A definition of it.
        (SCRIPT, renamed(SCRIPT)),  # All of it, without any definition.
        (LONG, LONG.replace("+ 3\n", "+ 333\n")),  # Only alike.
    ],
)
def test_what_shares_content_with_a_held_out_task_is_dropped(tmp_path: Path, held: str, before: str) -> None:
    write_lines(tmp_path / "held/canitedit.jsonl", [CANITEDIT | {"before": held, "after": f"{held}# end"}])
    rows = [edit("fine"), edit("bad", before=before, after=f"{before}# end\n")]
    write_lines(tmp_path / "set/a.jsonl", rows)
    assert len(records(ingest(tmp_path, "rows", tmp_path / "set", output="without"))) == 2
    output = ingest(tmp_path, "rows", tmp_path / "set", f"prepare.held_out=[{tmp_path}/held]")
    assert dropped(output) == [("a.jsonl", 2, HELD_OUT)] and len(records(output)) == 1
    assert "1_a" in (output / "dropped.csv").read_text()


def test_an_earlier_output_may_be_held_out(tmp_path: Path) -> None:
    rows = [edit(f"w{at}", id=f"{at}") for at in range(20)]
    write_lines(tmp_path / "set/a.jsonl", rows)
    first = ingest(tmp_path, "rows", tmp_path / "set", *HALVES, output="first")
    kept = {name for name, row in records(first).items() if row["split"] == "train"}
    assert 0 < len(kept) < 20
    output = ingest(tmp_path, "rows", tmp_path / "set", f"prepare.held_out=[{first}]", "prepare.test_fraction=0")
    assert set(records(output)) == kept


def test_canitedit_never_reaches_a_split(tmp_path: Path) -> None:
    write_lines(tmp_path / "set/canitedit.jsonl", [CANITEDIT])
    with pytest.raises(InputError, match="licence forbids its use as training data"):
        ingest(tmp_path, "rows", tmp_path / "set")
    write_lines(tmp_path / "set/canitedit.jsonl", [edit("fine"), CANITEDIT])
    output = ingest(tmp_path, "rows", tmp_path / "set", output="mixed")
    assert reasons(output) == [NO_TRAINING] and len(records(output)) == 1


@pytest.mark.parametrize("keys", [{"source": "CanItEdit"}, {"licence": "BSD-3-Clause-No-Training"}])
def test_a_row_that_may_not_be_trained_on_is_dropped(tmp_path: Path, keys: dict[str, str]) -> None:
    write_lines(tmp_path / "set/a.jsonl", [edit("fine", licence="MIT"), edit("bad", **keys)])
    output = ingest(tmp_path, "rows", tmp_path / "set")
    assert reasons(output) == [NO_TRAINING] and [row["licence"] for row in records(output).values()] == ["MIT"]


def test_licences_may_be_chosen(tmp_path: Path) -> None:
    write_lines(
        tmp_path / "set/a.jsonl",
        [edit("one", licence="MIT"), edit("two", licence="gpl-3.0"), edit("three", licence="unknown")],
    )
    found = records(ingest(tmp_path, "rows", tmp_path / "set", "prepare.licences=[mit]"))
    assert [row["licence"] for row in found.values()] == ["MIT"]


def test_the_published_filters(tmp_path: Path) -> None:
    head = '#!/usr/bin/python\n# By someone\n\n"""\nWhat it does.\n"""\n'
    body = program("kept")
    rows = [
        commit("kept", old_contents=head + body, new_contents=head + body.replace("_0\n", "_1 + kept_2\n")),
        commit("todo", new_contents=program("todo") + "# toDo not, but todo\n"),
        commit("small", new_contents=program("small") + "# 23\n"),
        commit("broken", new_contents=program("broken") + "print 'a statement of Python 2'\n"),
        commit("head", old_contents=head + body, new_contents=head.replace("someone", "another") + body),
        commit("go", lang="Go", new_contents=program("go") + "# todo"),
    ]
    write_lines(tmp_path / "set/data.jsonl", rows)
    words = (f"prepare.path={tmp_path / 'set'}", f"prepare.output={tmp_path / 'out'}", "prepare.count_tokens=false")
    made(tmp_path / "run", "edits_filtered", *words)
    found = records(tmp_path / "out")
    assert sorted(row["language"] for row in found.values()) == ["go", "python"]
    assert found["commitpackft/kept1:kept.py"]["before"] == body
    assert reasons(tmp_path / "out") == [
        "a forbidden word in the text after",
        "too small an edit",
        "the text after is no Python",
        "nothing changes",
    ]
    options = json.loads((tmp_path / "out/metadata.json").read_text())["options"]
    assert options["strip_header"] and options["min_distance"] == 10 and "FIX ME" in options["forbidden"]


TEXTS = st.text(st.sampled_from("ab \n=(é_1"), max_size=60)


@given(TEXTS, TEXTS)
def test_a_signature_is_of_a_set(one: str, other: str) -> None:
    found = signature(one, other)
    assert found.shape == (PERMUTATIONS,) and found.dtype == np.uint32
    assert (found == signature(other, one)).all() and (found == signature(one, other, one)).all()
    assert (signature(one.replace(" ", "\t\n")) == signature(one)).all()  # Blanks between tokens say nothing.
    assert bands_of(found, 0.7) == bands_of(signature(other, one), 0.7)
    assert likeness(found, np.stack([found])) == [1.0]


@pytest.mark.parametrize("shared", [0.3, 0.6, 0.8, 0.95])
def test_likeness_estimates_the_jaccard_similarity(shared: float) -> None:
    draw, errors = random.Random(0), []
    for _ in range(20):
        words = [f"w{draw.getrandbits(40)}" for _ in range(600)]
        cut = int(600 * shared)
        one, other = " ".join(words[:cut]), " ".join(words)
        runs = [max(1, len(text.split()) - WIDTH + 1) for text in (one, other)]
        errors.append(float(likeness(signature(one), signature(other)[None])[0]) - runs[0] / runs[1])
    assert abs(sum(errors) / 20) < 0.03 and max(map(abs, errors)) < 0.2


def test_bands_find_nearly_all_pairs_above_the_bound() -> None:
    draw, found = random.Random(1), 0
    for _ in range(100):
        words = [f"w{draw.getrandbits(40)}" for _ in range(400)]
        numbers = [bands_of(signature(" ".join(part)), 0.7) for part in (words, words[:330])]
        found += bool(set(numbers[0]) & set(numbers[1]))
    assert found >= 97


def test_a_band_is_of_its_place() -> None:
    keys = bands_of(np.zeros(PERMUTATIONS, np.uint32), 0.7)
    assert len(set(keys)) == len(keys) and all(-(1 << 63) <= key < 1 << 63 for key in keys)


@pytest.mark.parametrize(
    ("program", "left"),
    [
        ("x = 1\n# no header\n", "x = 1\n# no header\n"),
        ("# one\n\n# two\n\nx = 1\n", "\nx = 1\n"),
        ('"""\ntext\n"""\nx = 1\n', "\nx = 1\n"[1:]),
        ('# one\n"""text\nmore"""\n\nx = 1\n', "\nx = 1\n"),
        ('"""one line"""\nx = 1\n', '"""one line"""\nx = 1\n'),
        ("", ""),
    ],
)
def test_a_header_is_stripped_as_published(program: str, left: str) -> None:
    assert without_header(program) == left


def test_names_of_languages_and_licences() -> None:
    assert [canonical(name) for name in ("Python", "C++", "c#", "JSX", " TypeScript")] == [
        *("python", "cpp", "csharp", "javascript", "typescript")
    ]
    with pytest.raises(Dropped):
        canonical("Brainfuck")
    assert [spdx(name) for name in ("mit", "Apache-2.0", "unknown", "Own")] == ["MIT", "Apache-2.0", "", "Own"]
    assert forbids_training("a", "not for training") and forbids_training("CanItEdit", "")
    assert not forbids_training("training", "MIT")
