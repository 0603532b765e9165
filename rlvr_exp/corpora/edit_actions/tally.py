"""Counts of what was read and kept, and the page `stats.md` of them."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rlvr_exp.core.statistics import wilson
from rlvr_exp.corpora.edit_sets.stats import table
from rlvr_exp.tasks.edits.action import DONE, parse_action
from rlvr_exp.tasks.edits.rows import EditRow

UNPLACED = "unplaced"
"""Rows whose split nothing names: data=edits draws it."""


@dataclass
class Tally:
    lines: int = 0
    edits: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Edits with a text after, by source and language."""
    kept: Counter[tuple[str, str]] = field(default_factory=Counter)
    splits: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Rows by split and source."""
    licences: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)
    rules: Counter[int] = field(default_factory=Counter)
    """Actions by their number of rules."""
    characters: int = 0
    """Of all actions."""

    def read(self, edit: EditRow | None) -> None:
        self.lines += 1
        if edit is not None and edit.after is not None:
            self.edits[edit.source, edit.language] += 1

    def keep(self, edit: EditRow, split: str, row: Mapping[str, Any]) -> None:
        self.kept[edit.source, edit.language] += 1
        self.splits[split or UNPLACED, edit.source] += 1
        self.licences[edit.licence] += 1
        self.rules[len(parse_action(row["action"], edit.language).rules)] += 1
        self.characters += len(row["action"])

    def counts(self) -> dict[str, Any]:
        """All counts, in values of JSON."""
        return {
            "lines": self.lines,
            "records": self.kept.total(),
            "splits": [
                {"split": split, "source": source, "records": count}
                for (split, source), count in sorted(self.splits.items())
            ],
            "edits": {"/".join(key): count for key, count in sorted(self.edits.items())},
            "dropped": dict(self.dropped.most_common()),
            "rules": {str(count): rows for count, rows in sorted(self.rules.items())},
        }

    def languages(self) -> dict[str, int]:
        return dict(_by(self.kept, 1).most_common())

    def page(self) -> str:
        """The page, in Markdown."""
        kept = self.kept.total()
        rules = ((count or f"0, `{DONE}`", rows, _share(rows, kept)) for count, rows in sorted(self.rules.items()))
        head = f"{self.lines} lines read, {kept} records kept. ast-grep makes the text after of every record by its action."
        return "\n".join(
            [
                "# Edits with ast-grep actions",
                "",
                head,
                f"An action has {self.characters / max(kept, 1):.0f} characters on average. Shares are with 95% intervals.",
                "",
                *_rates("source", _by(self.edits, 0), _by(self.kept, 0)),
                "",
                *_rates("language", _by(self.edits, 1), _by(self.kept, 1)),
                "",
                *table(("rules of an action", "records", "share"), rules),
                "",
                *table(("split", "source", "records"), ((*key, rows) for key, rows in sorted(self.splits.items()))),
                "",
                *table(("dropped because of", "lines"), self.dropped.most_common()),
            ]
        )


def _by(counts: Mapping[tuple[str, str], int], place: int) -> Counter[str]:
    found: Counter[str] = Counter()
    for key, count in counts.items():
        found[key[place]] += count
    return found


def _rates(name: str, edits: Counter[str], kept: Counter[str]) -> Iterable[str]:
    rows = [(value, count, kept[value], _share(kept[value], count)) for value, count in edits.most_common()]
    rows.append(("all", edits.total(), kept.total(), _share(kept.total(), edits.total())))
    return table((name, "edits with a text after", "records", "share"), rows)


def _share(count: int, of: int) -> str:
    if not of:
        return ""
    found = wilson(count, of)
    return f"{count / of:.1%} [{found.low:.1%}, {found.high:.1%}]"
