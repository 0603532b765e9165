"""The frozen splits: which methods are drawn, which of their bodies the prover checks, and what is kept.

`rlvr_exp.corpora.dafny.proving` provides the prover. Equal code and an equal prover give equal bytes. A method that is
not proved is dropped, counted and redrawn. The small splits are drawn first.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlvr_exp.core import seeds
from rlvr_exp.corpora.dafny import mixture
from rlvr_exp.corpora.dafny.catalogue import FAMILIES
from rlvr_exp.corpora.dafny.mutate import mutant
from rlvr_exp.corpora.dafny.row import Built, build
from rlvr_exp.corpora.splits import Row, tally, write

ATTEMPTS = 2000
Judge = Callable[[Sequence[tuple[Built, str]]], Sequence[str]]
"""The result for each (method, annotated body): `proved`, `refused` (an obligation does not hold), or a reason."""


@dataclass
class ProverCounts:
    """The prover's results, for the manifest."""

    dropped: Counter[str] = field(default_factory=Counter)
    """Drawn methods that were not proved, by family and by the prover's result."""
    mutants: dict[str, Counter[str]] = field(default_factory=dict)
    """The prover's results on mutants by kind of change; only `refused` mutants are kept."""


@dataclass
class _Used:
    """What is already drawn: no program twice, no specification (apart from names) in two splits, nor in a split more
    often than it allows."""

    programs: set[str] = field(default_factory=set)
    keys: Counter[str] = field(default_factory=Counter)
    splits: dict[str, str] = field(default_factory=dict)
    """The split of each specification."""

    def add(self, built: Built, split: str) -> None:
        self.programs.add(built.program())
        self.keys[built.key] += 1
        self.splits[built.key] = split

    def takes(self, built: Built, split: str) -> bool:
        alone = self.splits.get(built.key, split) == split
        few = self.keys[built.key] < mixture.ROWS_OF_ONE_KEY[split]
        return alone and few and built.program() not in self.programs


@dataclass
class _Slot:
    """A pending row: the draws of its family continue where the last draw stopped."""

    split: str
    family: str
    number: int
    attempt: int = 0


def build_splits(sizes: Mapping[str, int], judge: Judge) -> tuple[dict[str, list[Row]], ProverCounts]:
    """The splits by name, as rows; `sizes` gives the number of rows of each, in the order of drawing."""
    used, counts = _Used(), ProverCounts()
    splits = {}
    for split, size in sizes.items():
        built = _proved(list(_slots(split, size)), used, judge, counts)
        seeds.stream("dafny", mixture.SEED, split, "order").shuffle(built)
        wrong = _mutants(split, built, judge, counts)
        splits[split] = [one.row(f"{split}-{i:05d}", wrong[i]) for i, one in enumerate(built)]
    return splits, counts


def _slots(split: str, size: int) -> Iterator[_Slot]:
    """A slot for each row: families balanced to within one row."""
    unseen = split == "test_unseen"
    names = [name for name in FAMILIES if (name in mixture.UNSEEN_FAMILIES) == unseen]
    names.sort(key=lambda name: seeds.uniform("dafny", split, name))
    yield from (_Slot(split, names[i % len(names)], i // len(names)) for i in range(size))


def _proved(slots: list[_Slot], used: _Used, judge: Judge, counts: ProverCounts) -> list[Built]:
    done: dict[int, Built] = {}
    while len(done) < len(slots):
        open_slots = [i for i in range(len(slots)) if i not in done]
        drawn = [_draw(slots[i], used) for i in open_slots]
        for i, built, result in zip(open_slots, drawn, judge([(one, one.annotated) for one in drawn]), strict=True):
            if result == "proved":
                done[i] = built
            else:
                counts.dropped[f"{built.family}: {result}"] += 1
    return [done[i] for i in range(len(slots))]


def _draw(slot: _Slot, used: _Used) -> Built:
    family = FAMILIES[slot.family]
    sides = mixture.LEFTOVER_SIDES.get(slot.split, (slot.split,))
    while slot.attempt < ATTEMPTS:
        slot.attempt += 1
        built = build(family, slot.split, slot.number, slot.attempt)
        fits = slot.split == "test_unseen" or side(built.key) in sides
        if fits and used.takes(built, slot.split):
            used.add(built, slot.split)
            return built
    raise RuntimeError(
        f"{slot.split}: no new method of {slot.family} in {ATTEMPTS} draws; give the family more to draw"
    )


def side(key: str) -> str:
    """The split that a specification may be drawn for, by its key alone."""
    at = seeds.uniform("dafny", mixture.SEED, "side", key)
    for split, share in mixture.SIDES.items():
        if at < share:
            return split
        at -= share
    return "train"


def _mutants(split: str, built: Sequence[Built], judge: Judge, counts: ProverCounts) -> list[list[str]]:
    """For each method its refused mutants, at most one of a kind."""
    found: list[list[str]] = [[] for _ in built]
    kinds = [(i, kind) for i, one in enumerate(built) for kind in _kinds(split, i, one)]
    for attempt in range(mixture.MUTANT_ATTEMPTS):
        requests = []
        for i, kind in kinds:
            text = mutant(built[i].lines, kind, seeds.stream("dafny", split, i, kind, attempt))
            if text is not None:
                requests.append((i, kind, text))
        results = judge([(built[i], text) for i, _, text in requests])
        kinds = []
        for (i, kind, text), word in zip(requests, results, strict=True):
            counts.mutants.setdefault(kind, Counter())[word] += 1
            if word == "refused":
                found[i].append(text)
            else:
                kinds.append((i, kind))
    return found


def _kinds(split: str, number: int, built: Built) -> list[str]:
    """The kinds of a method's mutants: those that its lines allow, in random order, as many as its split takes."""
    rng = seeds.stream("dafny", split, number, "kinds")
    able = [kind for kind in mixture.MUTANT_KINDS if mutant(built.lines, kind, rng) is not None]
    rng.shuffle(able)
    return able[: mixture.MUTANTS[split]]


def written(
    folder: Path, splits: Mapping[str, Sequence[Row]], counts: ProverCounts, tool: Mapping[str, str]
) -> tuple[str, dict[str, int]]:
    """Write each split, and the manifest with the prover's results; returns a report and the rows of each split."""
    words = {kind: dict(sorted(count.items())) for kind, count in sorted(counts.mutants.items())}
    head = {"seed": mixture.SEED, "tool": dict(tool), "dropped": dict(sorted(counts.dropped.items())), "mutants": words}
    return write(folder, splits, _counts, preset=9, **head)


def _counts(rows: Sequence[Row]) -> dict[str, Any]:
    mutants = sum(len(row["mutants"]) for row in rows)
    tallied = {f"{name}s": tally(rows, name) for name in ("kind", "style")}
    return {"rows": len(rows), "mutants": mutants, **tallied, "families": tally(rows, "family")}
