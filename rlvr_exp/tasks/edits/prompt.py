"""The wording of edit prompts and of their gold answers, and the answer inside a completion.

`bare` is for small models trained here: the instruction, the text, and a line that says what the answer is: `=>` the edited
text, `->` an action. `instruct` says the same in words.
"""

import json

import yaml

from rlvr_exp.config.edits import EditPrompt as Wording
from rlvr_exp.tasks.base import Candidate
from rlvr_exp.tasks.completion import answer_text, fenced, without_thoughts
from rlvr_exp.tasks.edits.action import ended_as, is_done, lines_as
from rlvr_exp.tasks.edits.rows import EditRow

MARKS = {"text": "=>", "action": "->"}
"""The line after which a bare answer starts."""
ASKS = {
    "text": "Answer with the full edited text in one code block.",
    "action": (
        "Answer with ast-grep rules that make this edit and no other, as one JSON object or YAML text in one code block, such"
        " as\n"
        '```json\n{"pattern": "print($X)", "rewrite": "log($X)"}\n```\n'
        "A list of such objects is applied one after the other. Where nothing is left to edit, answer `done`."
    ),
    "tags": (
        "Reason inside <think> and </think>. Then write ast-grep rules that make this edit and no other inside <action> and"
        " </action>,\nas one JSON object or YAML text, such as\n"
        '<action>\n{"pattern": "print($X)", "rewrite": "log($X)"}\n</action>\n'
        "and what is known and done after it inside <state_update> and </state_update>. Where nothing is left to edit, the\n"
        "action is `done`."
    ),
}
_ACTION = ("<action>", "</action>")


def write(row: EditRow, instruction: str, target: str, options: Wording) -> str:
    """The prompt of a row by one of its instructions."""
    state = f"<state>\n{row.state.strip(chr(10))}\n</state>\n" if row.state else ""
    before = row.before.rstrip("\n")
    if options.style == "bare":
        return f"{instruction.strip()}\n{state}{before}\n{MARKS[target]}\n"
    ask = ASKS["tags" if target == "action" and options.answer == "tags" else target]
    known = f"{state}\n" if state else ""
    return (
        f"Edit a text in {row.language}.\n\n{instruction.strip()}\n\n{known}{fenced(before, row.language)}\n\n{ask}\n"
    )


def gold_of(row: EditRow, target: str, options: Wording) -> str | None:
    """The gold as a completion; None where the row has none."""
    if target == "text":
        return None if row.after is None else _shown(row.after.rstrip("\n"), row.language, options)
    if not row.action:
        return None
    action = (
        row.action
        if options.form == "json" or is_done(row.action)
        else yaml.safe_dump(json.loads(row.action), sort_keys=False).strip()
    )
    if options.answer == "plain":
        return _shown(action, options.form, options)
    parts = {"think": row.think, "action": action, "state_update": row.state_update}
    return "\n".join(f"<{name}>\n{text.strip(chr(10))}\n</{name}>" for name, text in parts.items() if text)


def answer_in(completion: str, target: str, options: Wording, before: str, language: str = "") -> Candidate:
    """The action or the text in a completion: of tags the last action; in words the last fenced block, else all of it.
    Thoughts are no part of an answer of any style.

    Args:
        language: of the text; empty if it is not known.
    """
    text = without_thoughts(completion)
    tags = ("json", "yaml", "yml") if target == "action" else (language,)
    if target == "action" and (tagged := _last_action(text)) is not None:
        return _found(answer_text(tagged, tags), target)
    if options.style == "bare" or (target == "action" and options.answer == "tags"):
        return _found(text, target, before)
    return _found(answer_text(text, tags), target, before)


def _shown(text: str, language: str, options: Wording) -> str:
    return text if options.style == "bare" else f"```{language}\n{text}\n```"


def _last_action(text: str) -> str | None:
    end = text.rfind(_ACTION[1])
    start = text.rfind(_ACTION[0], 0, max(0, end))
    return None if start < 0 else text[start + len(_ACTION[0]) : end]


def _found(text: str, target: str, before: str = "") -> Candidate:
    """An edited text has the line ends of the text before it, and as many at its end: a completion says nothing of these."""
    if not text.strip():
        return Candidate(None, f"no {target} in the answer")
    if target == "action":
        return Candidate(text.strip("\n"))
    return Candidate(ended_as(lines_as(text, before), before))
