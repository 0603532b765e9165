"""SmellyCode: programs written with bad smells, and a table of labels. A label is a task without an answer.

The table repeats its header between the labels.
"""

import re
from pathlib import Path

from rlvr_exp.corpora.edit_sets.draft import Draft, Dropped, Place
from rlvr_exp.corpora.edit_sets.lines import nothing_there
from rlvr_exp.tasks.rows import Row

NAME = "smelly_code"
TABLE = Path("Analysis", "GroundTruthLevel", "GroundTruth.csv")
ENDINGS = (".py", ".java", ".js", ".cpp", ".h")
"""Of a class with a header file and another, the other is what is edited."""
ENTIRE = "Entire Class"
HEADER, NO_SOURCE = "the table's header again", "no source of that class"
LICENCE = "MIT"


def files(root: Path) -> list[Path]:
    """The table of labels. Raises InputError where it is not there."""
    if not (root / TABLE).is_file():
        raise nothing_there(root, str(TABLE))
    return [root / TABLE]


def sources(root: Path) -> list[Path]:
    """All files that decide the records."""
    return files(root) + sorted(file for file in root.glob("*/*") if file.suffix in ENDINGS)


def read(row: Row, place: Place) -> Draft:
    language, owner, smell = row.text("Language"), row.text("Class"), row.text("Code Smell")
    if (language, owner) == ("Language", "Class"):
        raise Dropped(HEADER)
    method, number = row.text("Method"), row.text("Code Smell #")
    where = f"class {owner}" if method in ("", ENTIRE) else f"`{method}` of class {owner}"
    detail = row.text("Type").strip()
    return Draft(
        f"{language}/{owner}/{number}/{row.where.rpartition(' ')[2]}",
        language,
        f"Remove the code smell {smell} in {where}." + (f" {detail}" if detail else ""),
        _source(place.root / language, owner),
        None,
        licence=LICENCE,
        metadata={"class": owner, "method": method, "smell": smell, "category": row.text("Category")},
    )


def _source(folder: Path, owner: str) -> str:
    """The file of a class: the one of its name, else the first that defines it."""
    found = sorted((file for file in folder.glob("*") if file.suffix in ENDINGS), key=_order)
    named = [file for file in found if file.stem.lower() == owner.lower()]
    for text in (file.read_text(encoding="utf-8-sig") for file in named or found):
        if named or re.search(rf"^\s*(?:export |public |abstract )*class {re.escape(owner)}\b", text, re.MULTILINE):
            return text
    raise Dropped(NO_SOURCE, f"{folder.name}/{owner}")


def _order(file: Path) -> tuple[int, str]:
    return ENDINGS.index(file.suffix), file.name
