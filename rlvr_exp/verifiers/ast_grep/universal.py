"""Fixed actions: rules that know nothing of the wanted edit, only its language."""

import json
from collections.abc import Callable
from typing import Any


def _action(**parts: Any) -> Callable[[str], str]:
    return lambda language: json.dumps({"language": language, **parts})


_EVERYTHING = {"regex": "(?s).*", "not": {"inside": {"regex": "(?s).*"}}}
ANSWERS: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("no_text", lambda _: ""),
    ("no_rule", lambda _: "[]"),
    ("empty_object", lambda _: "{}"),
    ("null", lambda _: "null"),
    ("changes_nothing", _action(pattern="$X", rewrite="$X")),
    ("matches_nothing", _action(pattern="nobody_writes_this_name", rewrite="x")),
    ("without_a_fix", _action(rule={"regex": "(?s).*"})),
    ("deletes_everything", _action(rule=_EVERYTHING, fix="")),
    ("deletes_every_node", _action(rule={"regex": "(?s).*"}, fix="")),
    ("leaves_what_no_parser_reads", _action(rule=_EVERYTHING, fix="<?php ((( }}} $ ' \" <<< '")),
    ("opens_a_comment", _action(rule=_EVERYTHING, fix="/*")),
    ("reads_a_file", _action(cli="ast-grep run -p '$X' -r '$X' /etc/passwd")),
)
