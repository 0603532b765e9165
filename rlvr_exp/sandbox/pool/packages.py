"""The distributions that candidates see, as a short text for the key of cached verdicts.

Reads names of folders alone: a distribution changed in place under its own name and version is not noticed.
"""

import os
from functools import cache
from hashlib import blake2b

from rlvr_exp.sandbox.pool import link

_KINDS = (".dist-info", ".egg-info")
_PROJECT = "rlvr_exp-"
"""Hidden from candidates."""


@cache
def digest() -> str:
    """Names and versions of the distributions in the visible folders; the same for the process's life."""
    seen = [
        sorted(name for name in os.listdir(folder) if name.endswith(_KINDS) and not name.startswith(_PROJECT))
        for folder in link._packages()
    ]
    return blake2b(repr(seen).encode(), digest_size=12).hexdigest()
