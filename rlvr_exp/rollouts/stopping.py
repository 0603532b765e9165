"""How a completion ends other than by its end token: stop strings, and a domain's check that it is complete.

Stop strings are searched in the decoded text, so that it does not matter how a text is cut into tokens.

A token's text depends on its neighbours (a character may be spread over several tokens, a leading space may vanish), so
a completion is decoded from a few tokens before the new token, and the added text is searched together with the end of
the text before it: the cost of a token does not grow with the completion.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rlvr_exp.models.policy import Policy
from rlvr_exp.tasks.base import Domain

Decode = Callable[[Sequence[int]], str]
INCOMPLETE = "\N{REPLACEMENT CHARACTER}"
"""The text that a tokenizer decodes the first bytes of a character to."""


class StopStringMatcher:
    """Searches a growing completion for stop strings.

    Args:
        stops: texts that end it.
        decode: token ids to text, as the completion will be decoded.
    """

    def __init__(self, stops: Sequence[str], decode: Decode):
        self._stops, self._decode = tuple(stops), decode
        self._reach = max(map(len, self._stops)) - 1
        self._ids: list[int] = []
        self._from = self._read = 0
        self._tail = ""

    def ends(self, token: int) -> bool:
        """Whether this token completes a stop string."""
        self._ids.append(token)
        before, now = self._decode(self._ids[self._from : self._read]), self._decode(self._ids[self._from :])
        if not now.startswith(before):  # The tokenizer rewrites earlier text: decode everything.
            return self._found(self._decode(self._ids))
        text = self._tail + now[len(before) :]
        if not now.endswith(INCOMPLETE):
            self._from, self._read = self._read, len(self._ids)
            self._tail = text[max(0, len(text) - self._reach) :]
        return self._found(text)

    def _found(self, text: str) -> bool:
        return any(stop in text for stop in self._stops)


@dataclass(frozen=True)
class CompletionCheck:
    """A domain's check that a completion is complete, called only after tokens that can complete it: once or twice in a
    completion, where stop strings are searched after each token."""

    finished: Callable[[str], bool]
    tokens: tuple[int, ...]
    """Those in whose text the domain's `ends` stands."""

    @classmethod
    def of(cls, domain: Domain | None, policy: Policy) -> "CompletionCheck | None":
        """None where the domain has no stop text, or an endpoint has the tokenizer."""
        if domain is None or not domain.stop_text or policy.tokenizer is None:
            return None
        vocabulary = policy.tokenizer.get_vocab()
        return cls(
            domain.is_complete, tuple(sorted(token for text, token in vocabulary.items() if domain.stop_text in text))
        )
