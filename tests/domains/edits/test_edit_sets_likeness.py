"""Signatures of edits, the headers that are stripped, the names of licences and languages."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvr_exp.domains.edits.ingest.alike import PERMUTATIONS, WIDTH, bands_of, likeness, signature
from rlvr_exp.domains.edits.ingest.normalize import Dropped, canonical, forbids_training, spdx, without_header

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
