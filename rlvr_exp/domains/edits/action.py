"""An edit as data: the ast-grep action in a completion, in one canonical form for all its input forms.

Forms: `{"rule_yaml": TEXT}`, `{"rule": {...}}` (a rule, a list of rules, or with a rule's further parts next to it),
`{"pattern", "rewrite"}` with optional `language`, `selector`, `strictness`, `constraints`, `transform`, `utils`,
`rewriters`, and `{"cli": "ast-grep run ..."}`; as JSON or YAML text. A bare stream of rule documents, or a bare
command, is accepted as well. The documents of one YAML text are one step, matched together against one text, as
ast-grep scans with them; the items of a list (of actions, or under `rule_yaml`, `rule` or `cli`) are separate steps,
each applied to the result of the previous step. `done` alone is the action without rules. Nothing is run here, and no file is
read.

Commands are `ast-grep run -p PATTERN -r FIX -l LANG` and `ast-grep scan --inline-rules YAML`. Only flags of matching and
rewriting are supported; a flag or path that reaches for files, a project or a shell is a cheat. `.` alone is allowed: it is
ast-grep's default place to search, which is the text here. A line that ends in a backslash continues in the next line, as
in a shell.

An edited text keeps the line ends of the text before it: neither a completion nor a rule's fix means to change them.
"""

import json
import re
import shlex
from dataclasses import dataclass, field
from typing import Any

from rlvr_exp.domains.edits.schema import (
    ACTING,
    SILENT,
    ActionFault,
    NotJson,
    cheat,
    check_value,
    normal_rule,
    read_json,
    read_yaml,
    short,
    unknown,
)

FORMS = ("rule_yaml", "rule", "pattern", "cli")
DONE = "done"
"""The action that changes nothing: nothing is left to do."""
MAX_RULES = 50
_INLINE = ("pattern", "rewrite", "fix", "language", "selector", "strictness", *ACTING[1:5])


@dataclass(frozen=True)
class EditRule:
    """One rule in normal form. `config`: canonical JSON of its acting parts."""

    language: str
    config: str
    suppressible: bool = field(default=True, compare=False)
    """Whether `ast-grep-ignore` comments suppress its matches. `ast-grep run` does not read them."""

    def parts(self) -> dict[str, Any]:
        """`rule` and, if given, `constraints`, `utils`, `transform`, `rewriters`, `fix`."""
        return json.loads(self.config)


@dataclass(frozen=True)
class Action:
    """An edit, step by step. Equal actions are equal in whatever form they were written."""

    steps: tuple[tuple[EditRule, ...], ...]
    """The rules of a step are matched together and have one language. None: `done`."""

    @property
    def rules(self) -> tuple[EditRule, ...]:
        return tuple(rule for step in self.steps for rule in step)

    @property
    def edits(self) -> bool:
        """Whether any rule has a `fix`: without one an action only searches."""
        return any("fix" in rule.parts() for rule in self.rules)

    @property
    def canonical(self) -> str:
        """One line of JSON, or `done`, that `parse_action` parses to this action."""
        if not self.steps:
            return DONE
        steps = [[{"language": rule.language} | rule.parts() for rule in step] for step in self.steps]
        return dumps({"rule": steps})


def parse_action(text: str, language: str) -> Action:
    """Parse an action. `language`: that of the text to edit, in any spelling, for rules that name none.

    Raises:
        ActionFault: it is no action; the message says why.
    """
    text = text.removeprefix("\ufeff").strip()
    if not text:
        raise ActionFault("the action is empty")
    if is_done(text):
        return Action(())
    if is_command(text):
        return _action([read_command(text)], language)
    documents = _documents(text)
    if len(documents) == 1 and isinstance(documents[0], list):
        return _action([step for item in documents[0] for step in _steps(item)], language)
    if len(documents) == 1:
        return _action(_steps(documents[0]), language)
    return _action([documents], language)


def is_done(text: str) -> bool:
    """Whether an action says that nothing is left to do."""
    return text.strip(' \t\n"`.').lower() == DONE


def dumps(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _action(configs: list[list[Any]], language: str) -> Action:
    count = sum(map(len, configs))
    if not 0 < count <= MAX_RULES:
        raise ActionFault(f"{count} rules; an action has 1 to {MAX_RULES}")
    steps = []
    for step in configs:
        rules = []
        for config in step:
            check_value(config)
            own, parts = normal_rule(config, language)
            rules.append(EditRule(own, dumps(parts), not isinstance(config, _RunRule)))
        languages = sorted({rule.language for rule in rules})
        if len(languages) != 1:
            what = f"the languages {', '.join(languages)}" if languages else "no rule"
            raise ActionFault(f"rules that are matched together name {what}; one is needed", "resolve")
        steps.append(tuple(rules))
    return Action(tuple(steps))


def _documents(text: str) -> list[Any]:
    """One JSON value, or the documents of a YAML stream; YAML's braces look like JSON's."""
    if text[0] in "{[":
        try:
            return [read_json(text)]
        except NotJson:
            pass
    return read_yaml(text)


def _steps(given: Any) -> list[list[Any]]:
    if not isinstance(given, dict):
        raise ActionFault(f"an action is a mapping with one of {', '.join(FORMS)}, got {short(given)}")
    forms = [form for form in FORMS if form in given]
    if len(forms) != 1:
        raise ActionFault(f"one of {', '.join(FORMS)} is needed, got {' and '.join(forms) or 'none'}")
    (form,) = forms
    value = given[form]
    if form == "rule" and not isinstance(value, list) and not (isinstance(value, dict) and "rule" in value):
        return [[given]]
    allowed = (*_INLINE, *SILENT) if form == "pattern" else (form, "language")
    for key in given:
        if key not in allowed:
            raise unknown("action", key, allowed)
    if form == "pattern":
        fixes = [key for key in ("rewrite", "fix") if key in given]
        if len(fixes) != 1:
            raise ActionFault("pattern: it needs one `rewrite`")
        extra = {key: given[key] for key in ACTING[1:5] if key in given}
        return [[inline_rule({**given, "rewrite": given[fixes[0]]}) | extra]]
    items = value if isinstance(value, list) else [value]
    if form == "cli" and not all(isinstance(command, str) for command in items):
        raise ActionFault("cli: a string, or a list of strings, is needed")
    read = {"cli": read_command, "rule_yaml": _from_yaml, "rule": _as_list}[form]
    return [[_with_language(rule, given.get("language")) for rule in read(item)] for item in items]


def _from_yaml(item: Any) -> list[Any]:
    return read_yaml(item) if isinstance(item, str) else [item]


def _as_list(item: Any) -> list[Any]:
    return item if isinstance(item, list) else [item]


def _with_language(config: Any, language: Any) -> Any:
    """The rule with the language of its surrounding object if it names none."""
    if isinstance(config, dict) and config.get("language") is None and language is not None:
        return type(config)(config, language=language)
    return config


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


class _RunRule(dict[str, Any]):
    """A rule that `ast-grep run` applies."""


def is_command(text: str) -> bool:
    return text.split(maxsplit=1)[:1] in [[name] for name in PROGRAMS]


def read_command(text: str) -> list[dict[str, Any]]:
    """The rules that the command stands for; without `language` if it names none. Raises ActionFault."""
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
    given = _flags(words[1:] if words[:1] == ["run"] else words, _RUN, {})
    if "rewrite" not in given:
        raise ActionFault("cli: no -r/--rewrite, so nothing would change")
    if ("pattern" in given) == ("kind" in given):
        raise ActionFault("cli: one of -p/--pattern and -k/--kind is needed")
    if "pattern" in given:
        return [_RunRule(inline_rule(given))]
    language = {"language": given["language"]} if "language" in given else {}
    return [_RunRule({"rule": {"kind": given["kind"]}, "fix": given["rewrite"]} | language)]


def inline_rule(given: dict[str, Any]) -> dict[str, Any]:
    """Pattern and rewrite, with `selector` and `strictness`, as a rule."""
    extra = {key: given[key] for key in ("selector", "strictness") if given.get(key) is not None}
    pattern = {"context": given["pattern"], **extra} if extra else given["pattern"]
    config = {"rule": {"pattern": pattern}, "fix": given["rewrite"]}
    return config | ({"language": given["language"]} if given.get("language") is not None else {})


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
            if set(word) & set(";|&<>`") or word.startswith("$("):
                raise cheat("shell-syntax", f"cli: {short(word)} asks a shell; the words are read, never run")
            if word.startswith(("/", "~", "\\")) or ".." in word.split("/"):
                raise cheat("file-access", f"cli: the path {short(word)} leads out of the given text")
            raise ActionFault(f"cli: {short(word)} is a path; an action edits one text, so leave it out")
        if flag not in known:
            raise unknown("cli: flag", flag, (*known, *_BARE))
        value = next(ahead, None) if value is None else value
        if value is None or known[flag] in given:
            raise ActionFault(f"cli: {flag} " + ("without its value" if value is None else "given twice"))
        given[known[flag]] = value
    return given


def _split(word: str, known: dict[str, str]) -> tuple[str, str | None]:
    """(flag, its joined value): `--lang=py`, `-lpy`, `-l=py`."""
    if word.startswith("--"):
        flag, equals, value = word.partition("=")
        return flag, value if equals else None
    if word.startswith("-") and len(word) > 2:
        value = word[2:]
        return word[:2], value.removeprefix("=") if word[:2] in known else value
    return word, None


_ALONE = re.compile(r"(?<!\r)\n")


def ended_as(text: str, before: str) -> str:
    """The text with the line ends at its end that the text before it has."""
    return text.rstrip("\r\n") + _end(before)


def lines_as(text: str, before: str) -> str:
    """The text with `\\r\\n` for every line end if the text before it has no other."""
    return _ALONE.sub("\r\n", text) if _has_windows_ends(before) else text


def edited_line_ends(text: str, before: str, after: str) -> str:
    """The text that rules made of `before`, with its line ends if `after` has them, too: a fix is written with any."""
    if _has_windows_ends(before) and _has_windows_ends(after):
        text = lines_as(text, before)
    return ended_as(text, before) if _end(before) == _end(after) else text


def _end(text: str) -> str:
    return text[len(text.rstrip("\r\n")) :]


def _has_windows_ends(text: str) -> bool:
    return "\r\n" in text and not _ALONE.search(text)
