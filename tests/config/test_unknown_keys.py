"""Mistyped keys in every node are rejected with the intended name, whatever the slip."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from thinning import tries

from rlvr_exp.config.compose import compose, compose_lenient

COMPOSED = {stage: compose([f"+stage={stage}"]).config for stage in ("sft", "grpo", "evaluate")}


def nodes(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], frozenset[str]]]:
    """Every node with the names of its keys; not those of mappings whose names are free."""
    if isinstance(value, dict):
        for name, below in value.items():
            yield from nodes(below, (*path, name))
    if dataclasses.is_dataclass(value):
        names = frozenset(spec.name for spec in dataclasses.fields(value)) - {"_target_"}
        if names:
            yield path, names
        for name in names:
            yield from nodes(getattr(value, name), (*path, name))


STAGE_NODES = {"evaluate", "compare"}
GROUPS = {folder.name for folder in (Path(__file__).parents[2] / "conf").iterdir() if folder.is_dir()}
KEYS = sorted(
    (stage, path, key)
    for stage, config in COMPOSED.items()
    for path, names in nodes(config)
    for key in names
    if not (path[:1] and path[0] in STAGE_NODES) and key not in STAGE_NODES
)
NAMES = {(stage, path): names for stage, config in COMPOSED.items() for path, names in nodes(config)}

ANYWHERE = {name for names in NAMES.values() for name in names}


@st.composite
def slips(draw: st.DrawFn, key: str) -> str:
    """The key with one letter dropped, doubled, swapped with the next, or replaced."""
    at = draw(st.integers(0, len(key) - 1))
    letter = draw(st.sampled_from("abcdefghijklmnopqrstuvwxyz_"))
    return draw(
        st.sampled_from(
            [
                key[:at] + key[at + 1 :],
                key[:at] + key[at] + key[at:],
                key[:at] + key[at + 1 : at + 2] + key[at] + key[at + 2 :],
                key[:at] + letter + key[at + 1 :],
            ]
        )
    )


@settings(max_examples=tries(25), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_a_slip_in_any_key_is_refused_with_a_near_name(data: st.DataObject) -> None:
    stage, path, key = data.draw(st.sampled_from(KEYS))
    mistyped = data.draw(slips(key))
    assume(path or mistyped not in GROUPS)  # the name of a group is told otherwise
    assume(mistyped not in NAMES[stage, path] | STAGE_NODES and mistyped[:1].isalpha() and mistyped.isidentifier())
    where = ".".join((*path, mistyped))
    found = {problem.where: problem for problem in compose_lenient([f"+stage={stage}", f"{where}=1"]).problems}
    assert found[where].what == "unknown key"
    if len(key) >= 5 and (path or mistyped not in ANYWHERE):
        names = NAMES[stage, path]
        assert found[where].suggestion.rpartition(".")[2] in names, (key, mistyped, found[where].suggestion)


def test_all_nodes_are_covered() -> None:
    covered = {path for _, path, _ in KEYS}
    assert {(), ("model",), ("data", "prompt"), ("reward", "terms", "length"), ("run", "checkpoint")} < covered
