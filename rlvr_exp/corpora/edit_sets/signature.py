"""Likeness of edits: MinHash signatures (Broder, "On the resemblance and containment of documents", 1997) and their bands.

An edit is represented by the runs of five tokens in its texts before and after. The share of equal numbers in two signatures
estimates the Jaccard similarity of their sets, with a standard error of at most 0.045. Two edits are compared where
all numbers of one band are equal; bands are chosen for the bound, missing as few pairs above it as can be.
"""

import hashlib
import re
import zlib
from functools import cache

import numpy as np
from datasketch import MinHash, MinHashLSH

PERMUTATIONS, WIDTH = 128, 5
"""Numbers of a signature; tokens of a run."""
MISSED = (0.1, 0.9)
"""How pairs compared in vain and pairs missed are weighed in the choice of bands."""
Signature = np.ndarray
"""uint32, (PERMUTATIONS,)."""
_TOKEN = re.compile(r"\w+|[^\w\s]")


def signature(*texts: str) -> Signature:
    """The signature of the runs in all texts together."""
    runs = set().union(*map(_runs, texts))
    found = _new()
    found.update_batch(runs)
    return found.hashvalues.astype(np.uint32)


def bands_of(numbers: Signature, similarity: float) -> list[int]:
    """The band keys of a signature: 64-bit integers, signed; equal keys are equal bands."""
    count, width = layout(similarity)
    packed = numbers[: count * width].astype("<u4").tobytes()
    size = 4 * width
    return [_key(packed[at * size : (at + 1) * size], at) for at in range(count)]


def likeness(numbers: Signature, others: Signature) -> Signature:
    """Estimated similarity to each of `others`, (n, PERMUTATIONS): (n,)."""
    return (others == numbers).mean(axis=1)


@cache
def layout(similarity: float) -> tuple[int, int]:
    """Number of bands and numbers in a band."""
    chosen = MinHashLSH(threshold=similarity, num_perm=PERMUTATIONS, weights=MISSED)
    return chosen.b, chosen.r


def _runs(text: str) -> set[bytes]:
    tokens = _TOKEN.findall(text)
    return {" ".join(tokens[at : at + WIDTH]).encode() for at in range(max(1, len(tokens) - WIDTH + 1))}


def _key(band: bytes, at: int) -> int:
    digest = hashlib.blake2b(band, digest_size=8, key=at.to_bytes(2, "big")).digest()
    return int.from_bytes(digest, "big", signed=True)


@cache
def _permutations() -> tuple[np.ndarray, np.ndarray]:
    return MinHash(PERMUTATIONS).permutations


def _new() -> MinHash:
    # Drawing permutations takes longer than hashing a program.
    return MinHash(PERMUTATIONS, hashfunc=zlib.crc32, permutations=_permutations(), scheme="affine32")
