"""One step of an edit: a text, what is left to change in it, and what a stretch of it becomes."""

from collections.abc import Sequence
from dataclasses import dataclass

from rlvr_exp.corpora.edit_actions.hunks import Hunk, applied, hunks_of
from rlvr_exp.corpora.edit_actions.nodes import Span, parse
from rlvr_exp.corpora.edit_actions.texts import Text


@dataclass(frozen=True)
class Step:
    language: str
    before: Text
    after: Text
    hunks: Sequence[Hunk]
    places: Sequence[Sequence[Span]]
    """Of each hunk: all places that it may be at."""

    @classmethod
    def of(cls, before: str, after: Text, language: str) -> "Step":
        """Raises Unparsed."""
        root = parse(before, language)
        hunks = hunks_of(before, after.text, (root, after.root))
        return cls(language, Text.of(before, root), after, hunks, [hunk.places(before) for hunk in hunks])

    def held(self, place: Span) -> frozenset[int] | None:
        """The numbers of the hunks that a stretch holds or touches; None where it holds only a part of one."""
        found = set()
        for number, hunk in enumerate(self.hunks):
            if any(place[0] <= start and end <= place[1] for start, end in self.places[number]):
                found.add(number)
            elif hunk.start < place[1] and place[0] < hunk.end:
                return None
        return frozenset(found)

    def place_after(self, place: Span, held: frozenset[int]) -> Span:
        """Where a stretch that holds these hunks is in the text after."""
        grown = [len(hunk.text) - (hunk.end - hunk.start) for hunk in self.hunks]
        earlier = sum(
            grown[number] for number, hunk in enumerate(self.hunks) if number not in held and hunk.end <= place[0]
        )
        return place[0] + earlier, place[1] + earlier + sum(grown[number] for number in held)

    def edited(self, held: frozenset[int]) -> str:
        """The text with these hunks applied."""
        return applied(self.before.text, [hunk for number, hunk in enumerate(self.hunks) if number in held])
