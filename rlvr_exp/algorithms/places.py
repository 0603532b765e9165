"""Where in a model a parameter is, by its name."""

import re

_LAYER = re.compile(r"\.(?:layers|layer|h|blocks)\.(\d+)\.")
_OTHERS = (
    ("embeddings", re.compile(r"embed_(?!out)|\.(?:wte|wpe)\.")),
    ("head", re.compile(r"lm_head|embed_out|score\.")),
)


def place_of(name: str) -> str:
    """Where a parameter is, from its name: `layer_003`, `embeddings`, `head` or `other`."""
    if found := _LAYER.search(f".{name}"):
        return f"layer_{int(found[1]):03d}"
    return next((place for place, pattern in _OTHERS if pattern.search(f".{name}")), "other")
