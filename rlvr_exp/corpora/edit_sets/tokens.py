"""Counting tokens by the tokenizer of the `model` node."""

from collections.abc import Sequence

from rlvr_exp.config.model import Model
from rlvr_exp.core.hashing import content_hash
from rlvr_exp.tasks.edits.rows import NormalizedRecord


class Tokens:
    """A tokenizer that counts.

    Raises:
        InputError: it cannot be loaded.
    """

    def __init__(self, model: Model):
        from rlvr_exp.models.policy import load_tokenizer  # Not at the top: it brings torch, which only counting needs.

        self._tokenizer = load_tokenizer(model)

    @property
    def fingerprint(self) -> str:
        """Hash of the vocabulary."""
        return content_hash(sorted(self._tokenizer.get_vocab().items()))

    def count(self, records: Sequence[NormalizedRecord]) -> list[int]:
        """Tokens of instruction, text before and text after together, of each record."""
        texts = [text for record in records for text in (record.instruction, record.before, record.after or "")]
        ids = self._tokenizer(texts, add_special_tokens=False, verbose=False).input_ids
        return [sum(map(len, ids[at : at + 3])) for at in range(0, len(ids), 3)]
