"""The command lines that the pages show, with the words that differ from place to place filled in."""

import re
import shlex
from pathlib import Path

import rlvr_exp

PACKAGE = Path(rlvr_exp.__file__).parent
ROOT = PACKAGE.parent
PAGES = [ROOT / "README.md", ROOT / "conf" / "README.md", *sorted((PACKAGE / "docs").rglob("*.md"))]
SHOWN = re.compile(r"(?:^|\| )(?:bash )?(?:\.venv/bin/)?(?:python -m rlvr_exp|launchers/local\.sh) (.*)$")
COMMENT = re.compile(r"\s{2,}.*| #.*| then\b.*| \| .*")
CHOICE = re.compile(r"\b(?:prepare|verifier|algorithm|stage|chain|collection|study)=NAME\b")
"""Forms: what is named is up to the reader."""
OUTSIDE = re.compile(r"[=\[{][^ ]*[A-Z/]|qwen|jsonl|input=-|stage=(?:verify|prepare)|environment=review|DafnyBench")


def shown(page: Path) -> list[str]:
    """The command lines in a page's indented blocks, without comments; optional words count as given, forms are left out."""
    text = re.sub(r" \\\n\s*", " ", page.read_text(encoding="utf-8"))
    lines = (SHOWN.search(line.strip()) for line in text.splitlines() if line.startswith("    "))
    found = [COMMENT.sub("", match[1]).strip() for match in lines if match]
    commands = [re.sub(r" \[([^\]]*)\]", r" \1", one).replace(" ...", "") for one in found]
    return [re.sub(r"=N\b", "=2", one) for one in commands if "+stage=" in one and not CHOICE.search(one)]


def single(command: str) -> list[str]:
    """The words of the first run of a command."""
    words = [word for word in shlex.split(command) if not word.startswith("--")]
    return [re.sub(r"^([^\[=]+=[^,\[{]+),.*", r"\1", word) for word in words]


def stands_alone(command: str) -> bool:
    """Whether a command needs nothing that is not in the repository: no file, other run, large model or answer at a prompt."""
    return not OUTSIDE.search(command)


COMMANDS = [(page.name, one) for page in PAGES for one in dict.fromkeys(shown(page))]
