"""Draws the corpus of edits and writes its splits. Equal code gives equal bytes.

A row is kept where the real ast-grep turns its program before into exactly its program after, both are Python, its tests fail
before and hold after, and no wrong answer is right. No program before, and no edit but for its names, is in two splits.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, cycle, islice
from pathlib import Path
from typing import Any

from rlvr_exp.config.schema import Config
from rlvr_exp.core import seeds
from rlvr_exp.corpora.edits import mixture
from rlvr_exp.corpora.edits.catalogue import FAMILIES
from rlvr_exp.corpora.edits.compose import COMPOSITIONS, composed, drafted
from rlvr_exp.corpora.edits.draw import Draw
from rlvr_exp.corpora.edits.program import Edit, applied, holds, programs, wrong_answers
from rlvr_exp.corpora.splits import Row, sizes, tally, write
from rlvr_exp.records.context import RunContext
from rlvr_exp.tasks.completion import syntax_fault
from rlvr_exp.tasks.content import program_key

ATTEMPTS = 400
Keys = dict[str, str]
"""The split of every text and edit so far."""


def make(config: Config, context: RunContext) -> tuple[str, dict[str, int]]:
    """Draw the splits and write them."""
    folder = Path(config.prepare.output or context.directory / "edits")
    splits = build_splits(sizes(config.prepare, mixture.SPLITS), context)
    return write(folder, splits, _counts, preset=9, seed=mixture.SEED)


def build_splits(sizes: Mapping[str, int], context: RunContext | None = None) -> dict[str, list[Row]]:
    """The splits by name, as rows; `sizes` gives the rows of each, in the order of drawing."""
    used: Keys = {}
    splits = {}
    for split, size in sizes.items():
        rows = []
        for family, number in _order(split, size):
            rows.append(_row(family, _drawn(split, family, number, used)))
            if context is not None and len(rows) % 100 == 0:
                context.progress(kind="phase", name=f"draw {split}", done=len(rows), total=size)
        seeds.stream("edits", mixture.SEED, split, "order").shuffle(rows)
        splits[split] = [{"id": f"{split}-{place:05d}", **row} for place, row in enumerate(rows)]
    return splits


def draft_of(family: str, *key: str | int) -> Edit:
    """One edit of a family, as drawn: not yet proved."""
    d = Draw(seeds.stream("edits", mixture.SEED, family, *key))
    if family in COMPOSITIONS:
        return programs(d, composed(d, COMPOSITIONS[family], sorted(chain(*families(str(key[0]))))))
    return programs(d, drafted(d, family))


def families(split: str) -> list[list[str]]:
    """The families that a split has, in groups of equally many edits."""
    if split == "test_unseen":
        return [list(mixture.UNSEEN_FAMILIES)]
    imitated = sorted(set(FAMILIES) - {*mixture.UNSEEN_FAMILIES, *mixture.PRACTISED_FAMILIES})
    return [imitated] if split == "train" else [imitated, list(mixture.PRACTISED_FAMILIES)]


def fault_of(edit: Edit) -> str:
    """Why an edit is no row; empty where it is one."""
    if max(len(edit.before), len(edit.after)) > mixture.MOST_CHARACTERS or len(edit.action) > mixture.MOST_OF_ACTION:
        return "too long"
    if len(edit.draft.rules) > mixture.MOST_RULES:
        return "too many rules"
    if edit.before == edit.after or syntax_fault(edit.before) or syntax_fault(edit.after):
        return "no edit of a program"
    if applied(edit.before, edit.action) != edit.after:
        return "its action makes another text"
    if edit.draft.tests and (holds(edit.before, edit.draft.tests) or not holds(edit.after, edit.draft.tests)):
        return "its tests do not tell the programs apart"
    return ""


def _order(split: str, size: int) -> Iterator[tuple[str, int]]:
    """Each row's family and its number in the family: families of a group balanced, by their weights, to within one row."""
    joined = [name for name, share in mixture.COMPOSED.items() for _ in range(round(share * size))]
    groups = [cycle(_weighted(split, names)) for names in families(split)]
    singles = (next(group) for group in cycle(groups))
    counts: Counter[str] = Counter()
    for name in [*islice(singles, size - len(joined)), *joined]:
        yield name, counts[name]
        counts[name] += 1


def _weighted(split: str, names: Sequence[str]) -> list[str]:
    ordered = sorted(names, key=lambda name: seeds.uniform("edits", split, name))
    return [name for name in ordered for _ in range(mixture.WEIGHTS.get(name, 1))]


def _drawn(split: str, family: str, number: int, used: Keys) -> Edit:
    for attempt in range(ATTEMPTS):
        edit = draft_of(family, split, number, attempt)
        if fault_of(edit):
            continue
        keys = [edit.before, program_key(edit.before) + program_key(edit.after)]
        if keys[0] not in used and used.get(keys[1], split) == split:
            used.update(dict.fromkeys(keys, split))
            return edit
    raise RuntimeError(f"{split}: no row of {family} in {ATTEMPTS} draws; give the family more forms")


def _row(family: str, edit: Edit) -> Row:
    draft = edit.draft
    return {
        "source": "embedded",
        "language": "python",
        "family": family,
        "difficulty": round(min(1.0, len(edit.action) / mixture.MOST_OF_ACTION), 3),
        "instruction": draft.descriptive,
        "lazy_instruction": draft.lazy,
        "before": edit.before,
        "after": edit.after,
        "action": edit.action,
        **({"tests": tests} if (tests := edit.tests()) else {}),
        "wrong": wrong_answers(edit),
    }


def _counts(rows: Sequence[Row]) -> dict[str, Any]:
    rules = [json.loads(row["action"]) for row in rows]
    return {
        "rows": len(rows),
        "with_tests": sum("tests" in row for row in rows),
        "quoting": sum(row["instruction"].startswith("Replace `") for row in rows),
        "rules": tally([{"n": str(len(one) if isinstance(one, list) else 1)} for one in rules], "n"),
        "families": tally(rows, "family"),
    }
