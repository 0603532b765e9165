"""The nearest existing name to an unknown name, or path to a path."""

import difflib
from collections.abc import Iterable
from pathlib import Path

NEAR, LIKELY, SURE = 0.5, 0.6, 0.75
"""How similar two names are that may be meant for one another, up to those that hardly mean anything else."""
OTHER_TRAINERS = {
    "max_new_tokens": "model.max_completion_tokens",
    "max_prompt_length": "model.max_prompt_tokens",
    "steps": "algorithm.max_steps",
    "num_steps": "algorithm.max_steps",
    "model_name_or_path": "model.path",
    "dataset_name": "data.path",
    "dataset_path": "data.path",
    "cliprange": "algorithm.clip_low",
    "clip_range": "algorithm.clip_low",
    "clip_epsilon": "algorithm.clip_low",
    "kl_beta": "algorithm.kl_coef",
}
"""Options of ours that other trainers call otherwise; TRL's own names are in `trl_names`."""


def suggest(name: str, names: Iterable[str], cutoff: float = NEAR) -> str:
    """The most similar of the names, without regard to case; empty when none is near."""
    by_lower = {candidate.lower(): candidate for candidate in names}
    found = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=cutoff)
    return by_lower[found[0]] if found else ""


def near_path(given: str) -> str:
    """The path with the most similar name in the same folder; empty if none is near."""
    path = Path(given)
    if path.exists() or not path.parent.is_dir():
        return ""
    found = suggest(path.name, (one.name for one in path.parent.iterdir()), SURE)
    return str(path.with_name(found)) if found else ""
