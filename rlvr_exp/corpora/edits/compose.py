"""The draft of one family, whose instruction may quote the code; and several edits of one program as one task: the instructions
one after the other, the actions as one chain."""

from collections.abc import Sequence

from rlvr_exp.corpora.edits import mixture
from rlvr_exp.corpora.edits.draw import Draw
from rlvr_exp.corpora.edits.family import FAMILIES, Draft, quoted

COMPOSITIONS = {"two_edits": 2, "three_edits": 3}
"""Names under which they are counted, and how many drafts each has."""


def drafted(d: Draw, family: str) -> Draft:
    """A draft of a family; of those that replace code of one line, a share quotes it."""
    draft = FAMILIES[family](d)
    return quoted(draft) if all(draft.replaces) and d.chance(mixture.QUOTED_SHARE) else draft


def composed(d: Draw, count: int, families: Sequence[str]) -> Draft:
    """A draft of several families, each another one. Without tests: those of one edit say nothing of the others."""
    drafts = [drafted(d, name) for name in d.shuffled(families)[:count]]
    return Draft(
        before="\n\n".join(one.before for one in drafts),
        after="\n\n".join(one.after for one in drafts),
        descriptive=" ".join(one.descriptive for one in drafts),
        lazy="; ".join(one.lazy for one in drafts),
        rules=tuple(rule for one in drafts for rule in one.rules),
        head="\n".join(one.head for one in drafts if one.head),
    )
