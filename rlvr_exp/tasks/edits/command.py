"""The command-line form of an action: `ast-grep run -p PATTERN -r FIX -l LANG` and `ast-grep scan --inline-rules YAML`.

The words are parsed, never run. Only flags that say what to match and how to rewrite are supported; whatever reaches
for files, a project or a shell is a cheat. `.` alone is allowed: it is where ast-grep searches by default, and here
that is the text. A line that ends in a backslash continues in the next line, as in a shell.
"""

import shlex
from typing import Any

from rlvr_exp.tasks.edits.faults import ActionFault, cheat, short, unknown
from rlvr_exp.tasks.edits.reading import read_yaml

PROGRAMS = ("ast-grep", "sg")
_RUN = {
    "-p": "pattern",
    "--pattern": "pattern",
    "-r": "rewrite",
    "--rewrite": "rewrite",
    "-l": "language",
    "--lang": "language",
    "-k": "kind",
    "--kind": "kind",
    "--selector": "selector",
    "--strictness": "strictness",
}
_SCAN = {"--inline-rules": "rules"}
_BARE = ("-U", "--update-all")
_REACHING = {
    "-c": "project-file",
    "--config": "project-file",
    "--custom-languages": "custom-language",
    "--globs": "file-access",
    "--no-ignore": "file-access",
    "--follow": "file-access",
    "--stdin": "file-access",
    "--rule": "file-access",
}


def is_command(text: str) -> bool:
    return text.split(maxsplit=1)[:1] in [[name] for name in PROGRAMS]


def read_command(text: str) -> list[dict[str, Any]]:
    """The rules that the command stands for; without `language` where it names none. Raises ActionFault."""
    try:
        words = [word.lstrip("\n") if word.startswith("\n-") else word for word in shlex.split(text) if word != "\n"]
    except ValueError as fault:
        raise ActionFault(f"cli: {fault}") from fault
    if not words or words[0] not in PROGRAMS:
        raise ActionFault(f"cli: the command is {short(words[0] if words else '')}, allowed {' or '.join(PROGRAMS)}")
    words = words[1:]
    if words and words[0] == "scan":
        given = _flags(words[1:], _SCAN, {"-r": "file-access"})
        if "rules" not in given:
            raise ActionFault("cli: scan without --inline-rules")
        return read_yaml(given["rules"])
    if words and not words[0].startswith("-") and words[0] != "run":
        raise unknown("cli: command", words[0], ("run", "scan"))
    return [_inline(_flags(words[1:] if words[:1] == ["run"] else words, _RUN, {}))]


def inline_rule(given: dict[str, Any]) -> dict[str, Any]:
    """Pattern and rewrite, with `selector` and `strictness`, as a rule."""
    extra = {key: given[key] for key in ("selector", "strictness") if given.get(key) is not None}
    pattern = {"context": given["pattern"], **extra} if extra else given["pattern"]
    config = {"rule": {"pattern": pattern}, "fix": given["rewrite"]}
    return config | ({"language": given["language"]} if given.get("language") is not None else {})


def _inline(given: dict[str, str]) -> dict[str, Any]:
    if "rewrite" not in given:
        raise ActionFault("cli: no -r/--rewrite, so nothing would change")
    if ("pattern" in given) == ("kind" in given):
        raise ActionFault("cli: one of -p/--pattern and -k/--kind is needed")
    if "pattern" in given:
        return inline_rule(given)
    language = {"language": given["language"]} if "language" in given else {}
    return {"rule": {"kind": given["kind"]}, "fix": given["rewrite"]} | language


def _flags(words: list[str], known: dict[str, str], reaching: dict[str, str]) -> dict[str, str]:
    given: dict[str, str] = {}
    ahead = iter(words)
    for word in ahead:
        if word in _BARE or word == ".":
            continue
        flag, value = _split(word, known)
        rule = (_REACHING | reaching).get(flag)
        if rule is not None:
            raise cheat(rule, f"cli: {flag} reaches beyond the given text")
        if not word.startswith("-"):
            raise _stray(word)
        if flag not in known:
            raise unknown("cli: flag", flag, (*known, *_BARE))
        value = next(ahead, None) if value is None else value
        if value is None or known[flag] in given:
            raise ActionFault(f"cli: {flag} " + ("without its value" if value is None else "given twice"))
        given[known[flag]] = value
    return given


def _stray(word: str) -> ActionFault:
    """The fault of a word that no flag takes."""
    if set(word) & set(";|&<>`") or word.startswith("$("):
        return cheat("shell-syntax", f"cli: {short(word)} asks a shell; the words are read, never run")
    if word.startswith(("/", "~", "\\")) or ".." in word.split("/"):
        return cheat("file-access", f"cli: the path {short(word)} leads out of the given text")
    return ActionFault(f"cli: {short(word)} is a path; an action edits one text, so leave it out")


def _split(word: str, known: dict[str, str]) -> tuple[str, str | None]:
    """(flag, its joined value): `--lang=py`, `-lpy`, `-l=py`."""
    if word.startswith("--"):
        flag, equals, value = word.partition("=")
        return flag, value if equals else None
    if word.startswith("-") and len(word) > 2:
        value = word[2:]
        return word[:2], value.removeprefix("=") if word[:2] in known else value
    return word, None
