"""OpenCodeEdit: edits of Python that models wrote. Two layouts: the triplets of its pipeline (OCEData), and its data for
fine-tuning (OCEDataFT), chats with the two programs next to them.
"""

import re
from typing import Any

from rlvr_exp.core.hashing import content_hash
from rlvr_exp.corpora.edit_sets.draft import INCOMPLETE, Draft, Dropped, Place
from rlvr_exp.corpora.edit_sets.lines import row_files as files
from rlvr_exp.tasks.rows import Row

__all__ = ["NAME", "files", "read"]

NAME = "opencodeedit"
BEFORE, INSTRUCTION, AFTER = "code_before_purify", "instruct_purify", "code_after_purify"
_REQUEST = re.compile(r".*^## Instruction:\n(.*?)\n## Code After:\s*(?:/no_think)?\s*\Z", re.DOTALL | re.MULTILINE)
"""The last instruction of a chat's request: the program before it may have such a heading, too."""


def read(row: Row, place: Place) -> Draft:
    chat = "messages" in row.values
    instruction = _instruction_of(row.values["messages"]) if chat else row.text(INSTRUCTION)
    before, after = (row.text("old_code"), row.text("new_code")) if chat else (row.text(BEFORE), row.text(AFTER))
    commit = row.values.get("commit", "")
    metadata = {"commit": commit, "style": row.text("instr_type", "")}
    name = content_hash([instruction, before, after])[:16]
    return Draft(name, "python", instruction.strip(), before, after, metadata=metadata)


def _instruction_of(messages: Any) -> str:
    """The instruction of a chat's request."""
    for one in messages if isinstance(messages, list) else ():
        request = one.get("content") if isinstance(one, dict) and one.get("role") == "user" else None
        if found := _REQUEST.match(request if isinstance(request, str) else ""):
            return found[1]
    raise Dropped(INCOMPLETE, "no request with an instruction among the messages")
