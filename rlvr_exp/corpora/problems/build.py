"""Draws the corpus of problems and writes its splits. Equal code gives equal bytes.

No program, but for its names, is in two splits, and no text. Calls are chosen for the mutants that they catch: those that decide
catch every mutant that any call of the pool does.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, cycle, islice
from pathlib import Path
from typing import Any

from rlvr_exp.config.schema import Config
from rlvr_exp.core import seeds
from rlvr_exp.corpora.problems import mixture
from rlvr_exp.corpora.problems.catalogue import FAMILIES
from rlvr_exp.corpora.problems.draw import Draw
from rlvr_exp.corpora.problems.family import Args, Draft
from rlvr_exp.corpora.problems.finish import finished
from rlvr_exp.corpora.problems.running import function_of, returned
from rlvr_exp.corpora.splits import Row, sizes, tally, write
from rlvr_exp.records.context import RunContext
from rlvr_exp.tasks.content import program_key
from rlvr_exp.tasks.mutants import chosen

ATTEMPTS = 2000
WITH_WRONG = ("dev", "test", "test_unseen")


@dataclass(frozen=True)
class Problem:
    family: str
    name: str
    """Of the function."""
    draft: Draft

    @property
    def code(self) -> str:
        return self.draft.code(self.name)

    @property
    def key(self) -> str:
        return program_key(self.code)


def make(config: Config, context: RunContext) -> tuple[str, dict[str, int]]:
    """Draw the splits and write them."""
    folder = Path(config.prepare.output or context.directory / "problems")
    splits = build_splits(sizes(config.prepare, mixture.SPLITS), context)
    return write(folder, splits, _counts, preset=9, seed=mixture.SEED)


def build_splits(sizes: Mapping[str, int], context: RunContext | None = None) -> dict[str, list[Row]]:
    """The splits by name, as rows; `sizes` gives the rows of each, in the order of drawing."""
    texts: set[str] = set()
    splits = {}
    for split, size in sizes.items():
        rows = []
        for number, family in enumerate(_order(split, size)):
            rows.append(_row(_drawn(split, family, number, texts), split))
            if context is not None and len(rows) % 100 == 0:
                context.progress(kind="phase", name=f"draw {split}", done=len(rows), total=size)
        seeds.stream("problems", mixture.SEED, split, "order").shuffle(rows)
        splits[split] = [{"id": f"{split}-{place:05d}", **row} for place, row in enumerate(rows)]
    return splits


def families(split: str) -> list[list[str]]:
    """The families that a split has, in groups of equally many problems."""
    if split == "test_unseen":
        return [list(mixture.UNSEEN_FAMILIES)]
    imitated = sorted(set(FAMILIES) - {*mixture.UNSEEN_FAMILIES, *mixture.PRACTISED_FAMILIES})
    return [imitated] if split in ("train", "dev") else [imitated, list(mixture.PRACTISED_FAMILIES)]


def problem_of(family: str, *key: str | int) -> Problem:
    """One problem of a family, as drawn."""
    rng = seeds.stream("problems", mixture.SEED, family, *key)
    d = Draw(rng)
    draft = FAMILIES[family](d)
    if rng.random() < mixture.FINISHED_SHARE:
        draft = finished(d, draft)
    return Problem(family, d.function(), draft)


@cache
def split_of_programs(family: str) -> Mapping[str, str]:
    """The split of each different program of a family, by its key."""
    if family in mixture.UNSEEN_FAMILIES:
        return {}
    found = dict.fromkeys(problem_of(family, "programs", number).key for number in range(mixture.DRAWS))
    keys = sorted(found, key=lambda key: seeds.uniform("problems", mixture.SEED, family, key))
    places: dict[str, str] = {}
    practised = family in mixture.PRACTISED_FAMILIES
    rest = "practice" if practised else "train"
    for split, share in mixture.SHARES.items():
        if practised and split == "dev":
            continue
        count = max(1, round(share * len(keys)))
        places |= dict.fromkeys([key for key in keys if key not in places][:count], split)
    return dict.fromkeys(keys, rest) | places


def _order(split: str, size: int) -> Iterator[str]:
    """Each row's family: groups and the families of a group balanced to within one row."""
    groups = [
        cycle(sorted(names, key=lambda name: seeds.uniform("problems", split, name))) for names in families(split)
    ]
    return islice((next(group) for group in cycle(groups)), size)


def _drawn(split: str, family: str, number: int, texts: set[str]) -> Problem:
    for attempt in range(ATTEMPTS):
        problem = problem_of(family, split, number, attempt)
        text = text_of(problem)
        if split != "test_unseen" and split_of_programs(family).get(problem.key) != split:
            continue
        if text not in texts:
            texts.add(text)
            return problem
    raise RuntimeError(f"{split}: no row of {family} in {ATTEMPTS} draws; give the family more forms")


def text_of(problem: Problem) -> str:
    return f"Write {problem.name}({', '.join(problem.draft.arguments)}). It returns {problem.draft.text}."


def _row(problem: Problem, split: str) -> Row:
    draft, name, code = problem.draft, problem.name, problem.code
    calls = _pool(problem)
    right = returned(code, name, calls)
    wrong = [one.code for one in chosen(code, mixture.MUTANTS, content_key(problem))]
    catches = {text: _caught(text, name, calls, right) for text in wrong}
    hidden = _covering(catches, calls, mixture.HIDDEN)
    others = [place for place in range(len(calls)) if place not in hidden]
    shown = _shown([place for place in others if place >= len(draft.edges)], right)
    good = _covering(catches, calls, mixture.GOOD, without=shown)
    caught = [text for text in wrong if any(place in catches[text] for place in hidden)]

    def cases(places: Sequence[int]) -> list[dict[str, Any]]:
        run = function_of(code, name)
        return [{"args": list(calls[place]), "expected": run(*calls[place])} for place in places]

    example = cases(good[-1:])[0]
    stages = {
        "reasoning": draft.idea,
        "plan": "\n".join(f"{number}. {words}" for number, (words, _) in enumerate(draft.steps, 1)),
        "pseudocode": "\n".join(line for _, line in draft.steps),
        "constraints": "\n".join([*draft.holds, call_text(name, example)]),
    }
    return {
        "family": problem.family,
        "difficulty": round(min(1.0, len(code) / 200), 3),
        "text": text_of(problem),
        "entry_point": name,
        "solution": code,
        "shown": cases(shown),
        "tests": cases(hidden),
        "stages": stages,
        "good_tests": cases(good),
        **({"wrong": caught[: mixture.WRONG]} if split in WITH_WRONG else {}),
    }


def call_text(name: str, case: Mapping[str, Any]) -> str:
    return f"{name}({', '.join(map(repr, case['args']))}) == {case['expected']!r}"


def content_key(problem: Problem) -> str:
    return f"{problem.family} {problem.key}"


def _pool(problem: Problem) -> list[Args]:
    """Different calls, the careful ones first."""
    rng = seeds.stream("problems", mixture.SEED, "calls", problem.family, text_of(problem))
    drawn = [problem.draft.inputs(rng) for _ in range(mixture.POOL)]
    return list({repr(args): args for args in chain(problem.draft.edges, drawn)}.values())


def _caught(code: str, name: str, calls: Sequence[Args], right: Sequence[str]) -> frozenset[int]:
    """The calls that tell a wrong program from the right one."""
    found = returned(code, name, calls)
    return frozenset(place for place, (one, other) in enumerate(zip(found, right, strict=True)) if one != other)


def _covering(
    catches: Mapping[str, frozenset[int]], calls: Sequence[Args], count: int, without: Sequence[int] = ()
) -> list[int]:
    """As many calls, each the one that catches most of what is left; the first of equals."""
    left, found = [one for one in catches.values() if one], []
    for _ in range(count):
        free = [place for place in range(len(calls)) if place not in found and place not in without]
        best = max(free, key=lambda place: (sum(place in one for one in left), -place))
        found.append(best)
        left = [one for one in left if best not in one]
    return found


def _shown(places: Sequence[int], right: Sequence[str]) -> list[int]:
    """Calls with different results, as far as there are any."""
    different = {right[place]: place for place in reversed(places)}
    first = sorted(different.values())[: mixture.SHOWN]
    return [*first, *(place for place in places if place not in first)][: mixture.SHOWN]


def _counts(rows: Sequence[Row]) -> dict[str, Any]:
    return {
        "rows": len(rows),
        "programs": len({program_key(row["solution"]) for row in rows}),
        "wrong": sum(len(row.get("wrong", ())) for row in rows),
        "longest": max(len(json.dumps(row["stages"])) for row in rows),
        "families": tally(rows, "family"),
    }
