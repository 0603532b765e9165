"""The words of a command line, parsed by Hydra's grammar; a word that cannot be read is answered with the word that can."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException

from rlvr_exp.core.errors import InputProblem

EXPERIMENT = "+experiment="
EMPTY = "\"''\""
"""An empty text as a shell passes it on to the grammar."""


@dataclass
class ParsedOverrides:
    """A parsed command line."""

    overrides: list[Override] = field(default_factory=list)
    searchpath: list[Path] = field(default_factory=list)
    problems: list[InputProblem] = field(default_factory=list)


def parse(words: Sequence[str]) -> ParsedOverrides:
    """Parse each word by Hydra's parser; a word that cannot be read is a problem, and the rest is still parsed."""
    parsed, parser, before = ParsedOverrides(), OverridesParser.create(), ""
    for word in words:
        try:
            override = parser.parse_override(word)
        except HydraException as fault:
            parsed.problems.append(unreadable(word, fault, before))
            continue
        finally:
            before = word
        if problem := nothing_given(word):
            parsed.problems.append(problem)
        elif override.is_hydra_override():
            _hydra(parsed, override)
        elif override.is_sweep_override():
            remedy = f"--multirun to sweep over the values, key=[a,b] for a list, {quoted(word)} for text"
            parsed.problems.append(InputProblem(word, "several values for one run", "", "", "", remedy))
        else:
            parsed.overrides.append(override)
    return parsed


def unreadable(word: str, fault: Exception, before: str) -> InputProblem:
    """The problem of a word that the grammar refuses. `before`: the word before it, whose value may have had a blank."""
    remedy = "key=value, +group=option or ~key"
    if "=" in word.lstrip("="):
        remedy = f"{quoted(word)}: a value with special characters is quoted"
    elif "=" in before:
        remedy += f"; a value with blanks is quoted: {quoted(f'{before} {word}')}"
    return InputProblem(word, f"cannot be read: {str(fault).splitlines()[0]}", "", "", "", remedy)


def quoted(word: str) -> str:
    """A `key=value` as it is typed where its value is one text: quoted for the grammar, and the whole for the shell."""
    key, _, value = word.partition("=")
    opens, closes = ("[", "]") if value[:1] == "[" and value[-1:] == "]" else ("", "")
    inner = value.strip("[]") if opens else value
    inner = inner.strip("\"'").replace('"', '\\"').replace("'", "'\"'\"'")
    return f"'{key}={opens}\"{inner}\"{closes}'"


def nothing_given(word: str) -> InputProblem | None:
    """The problem of `key=` without a value, as a shell leaves it where a variable is not set."""
    if not word.endswith("=") or word.count("=") > 1:
        return None
    remedy = f"give a value, or set the shell's variable; {word}{EMPTY} where an empty text is meant"
    return InputProblem(word.strip("+~="), "nothing is given", word, "", "", remedy)


def _hydra(parsed: ParsedOverrides, override: Override) -> None:
    if override.key_or_group != "hydra.searchpath":
        remedy = "drop it; run.dir and run.* decide what a run writes"
        parsed.problems.append(
            InputProblem(
                override.input_line or "",
                "Hydra's own options are not used",
                "",
                "hydra.searchpath=[DIR,...]",
                "",
                remedy,
            )
        )
        return
    folders = override.value()
    for folder in folders if isinstance(folders, list) else [folders]:
        path = Path(str(folder).removeprefix("file://")).expanduser().resolve()
        if not path.is_dir():
            parsed.problems.append(
                InputProblem("hydra.searchpath", "no such folder", str(folder), "an existing folder")
            )
            continue
        parsed.searchpath.append(path)
        if str(path) not in sys.path:
            sys.path.append(str(path))


def one_experiment(words: Sequence[str]) -> tuple[str, ...]:
    """The words with one choice of experiments, in their order: a part and the whole may each have one."""
    chosen = [word.removeprefix(EXPERIMENT) for word in words if word.startswith(EXPERIMENT)]
    if len(chosen) < 2:
        return tuple(words)
    return (*(word for word in words if not word.startswith(EXPERIMENT)), f"{EXPERIMENT}[{','.join(chosen)}]")
