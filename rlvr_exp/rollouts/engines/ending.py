"""Where a completion ends that was drawn elsewhere: at the same texts that end one of our own sampler."""

from collections.abc import Iterator, Sequence

from rlvr_exp.tasks.base import Domain


def ended_at(text: str, stops: Sequence[str], domain: Domain) -> int | None:
    """The length of the text up to where a stop string, which stays part of it, or the domain ends it; None: nothing in
    it does."""
    found = [text.find(stop) + len(stop) for stop in stops if stop in text]
    first = min(found, default=None)
    for end in _places(text, domain.stop_text):
        if first is not None and end >= first:
            break
        if domain.is_complete(text[:end]):
            return end
    return first


def _places(text: str, part: str) -> Iterator[int]:
    """Where each occurrence of a part ends."""
    start = text.find(part) if part else -1
    while start >= 0:
        yield start + len(part)
        start = text.find(part, start + 1)
