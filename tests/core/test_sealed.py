"""A sealed folder reports every kind of damage, and names the file."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thinning import tries

from rlvr_exp.core.errors import InputError
from rlvr_exp.core.sealed import CARD, NAME, READ_AT, OtherFormat, check_if_ours, check_sound, seal

FILES = {"config.json": b'{"a": 1}\n', "model.safetensors": bytes(range(256)) * 8, "training/rank_0.pt": b"state " * 50}
EVERY = [*FILES, NAME]


def made(folder: Path, step: int = 3, files: dict[str, bytes] = FILES) -> Path:
    """A checkpoint in the place of ours."""
    place = folder / "checkpoints" / f"step_{step:06d}"
    for name, content in files.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(content)
    seal(place, {"step": step})
    return place


def flip(path: Path, bit: int) -> None:
    content = bytearray(path.read_bytes())
    content[bit // 8] ^= 1 << bit % 8
    path.write_bytes(content)


ATTACKS: dict[str, Callable[[Path], object]] = {
    "cut short": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "one bit": lambda path: flip(path, 8 * (path.stat().st_size // 2)),
    "emptied": lambda path: path.write_bytes(b""),
    "missing": lambda path: path.unlink(),
    "longer": lambda path: path.write_bytes(path.read_bytes() + b"\n"),
    "a link": lambda path: (path.rename(path.with_name("away")), path.symlink_to("away")),
}


def test_a_sound_folder_says_what_it_is(tmp_path: Path) -> None:
    said = check_sound(made(tmp_path))
    assert said["step"] == 3 and set(said["sha256"]) == set(FILES) and said["bytes"]["config.json"] == 9


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("attack", ATTACKS)
def test_no_damaged_file_passes_and_it_is_named(tmp_path: Path, name: str, attack: str) -> None:
    folder = made(tmp_path)
    ATTACKS[attack](folder / name)
    for check in (check_sound, check_if_ours):
        with pytest.raises(InputError) as caught:
            check(folder)
        named = "away" if attack == "a link" and name != NAME else name
        assert Path(caught.value.problems[0].where).name in (Path(named).name, "away")


@settings(deadline=None, max_examples=tries(60))
@given(name=st.sampled_from(EVERY), place=st.integers(0, 10**6))
def test_no_flipped_bit_passes(tmp_path_factory, name: str, place: int) -> None:
    folder = made(tmp_path_factory.mktemp("flip"))
    flip(folder / name, place % (8 * (folder / name).stat().st_size))
    with pytest.raises(InputError):
        check_sound(folder)


@pytest.mark.parametrize("name", EVERY)
def test_a_file_of_another_checkpoint_does_not_pass(tmp_path: Path, name: str) -> None:
    folder = made(tmp_path / "one")
    other = made(tmp_path / "other", step=4, files={key: bytes(reversed(value)) for key, value in FILES.items()})
    shutil.copyfile(other / name, folder / name)
    with pytest.raises(InputError):
        check_sound(folder)


def test_a_file_that_was_not_there_does_not_pass(tmp_path: Path) -> None:
    folder = made(tmp_path)
    (folder / "training" / "more.pt").write_bytes(b"x")
    with pytest.raises(InputError, match="more.pt: was not there"):
        check_sound(folder)


def test_the_model_card_may_change(tmp_path: Path) -> None:
    folder = made(tmp_path, files={**FILES, CARD: b"during training"})
    assert CARD not in check_sound(folder)["sha256"]
    (folder / CARD).write_bytes(b"after training")
    check_sound(folder)
    (folder / "training" / CARD).write_bytes(b"x")
    with pytest.raises(InputError, match="README.md: was not there"):
        check_sound(folder)


@pytest.mark.parametrize("name", EVERY)
def test_a_copy_elsewhere_is_still_known_for_ours(tmp_path: Path, name: str) -> None:
    copied = shutil.copytree(made(tmp_path), tmp_path / "copied")
    check_if_ours(copied)
    (copied / name).unlink()
    with pytest.raises(InputError):
        check_if_ours(copied)


def test_a_roles_folder_is_checked_with_its_checkpoint(tmp_path: Path) -> None:
    folder = made(tmp_path, files={"writer/adapter_model.safetensors": b"w" * 99, "state.json": b"{}"})
    check_if_ours(folder / "writer")
    (folder / "state.json").write_bytes(b"{ ")
    with pytest.raises(InputError, match="state.json"):
        check_if_ours(folder / "writer")


def test_a_folder_of_others_passes(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"anything")
    check_if_ours(tmp_path)
    check_if_ours(tmp_path / "not there")
    (tmp_path / "checkpoint.json").write_text("{}")
    with pytest.raises(InputError):
        check_if_ours(tmp_path)


def test_another_format_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = made(tmp_path)
    monkeypatch.setattr("rlvr_exp.core.sealed.FORMAT", 99)
    for check in (check_sound, check_if_ours):
        with pytest.raises(OtherFormat, match="another format"):
            check(folder)


@pytest.mark.parametrize("number", READ_AT)
def test_of_an_earlier_format_the_weights_are_read_and_a_line_names_who_reads_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    with monkeypatch.context() as earlier:
        earlier.setattr("rlvr_exp.core.sealed.FORMAT", number)
        folder = made(tmp_path)
    check_if_ours(folder)
    with pytest.raises(OtherFormat) as caught:
        check_sound(folder)
    said = str(caught.value)
    assert caught.value.exit_code == 2 and "\n" not in said
    assert str(folder) in said and f"commit {READ_AT[number]}" in said and "model.path" in said
    flip(folder / "model.safetensors", 9)
    with pytest.raises(InputError, match="checksum"):
        check_if_ours(folder)
