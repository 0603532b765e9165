"""Counter-based randomness: every draw is a function of its key, never of earlier draws.

A key is a tuple such as (run seed, "rollout", step, prompt, sample, position). Equal keys give equal numbers on every
machine and in every order, so batch layout and worker timing change nothing.
"""

import hashlib
import random

Key = str | int | float


def derive(*key: Key) -> int:
    """A 63-bit integer that depends on the key alone; usable as a seed for any generator."""
    text = "\x1f".join(f"{type(part).__name__}:{part}" for part in key)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1


def uniform(*key: Key) -> float:
    """A number in [0, 1) that depends on the key alone."""
    return (derive(*key) >> 10) / float(1 << 53)


def stream(*key: Key) -> random.Random:
    """A generator private to its key, for code that needs many draws."""
    return random.Random(derive(*key))
