"""The nearest existing name to an unknown name."""

import difflib
from collections.abc import Iterable

NEAR, LIKELY, SURE = 0.5, 0.6, 0.75
"""How similar two names are that may be meant for one another, up to those that hardly mean anything else."""
OTHER_TRAINERS = {
    "learning_rate": "lr",
    "num_generations": "group_size",
    "beta": "kl_coef",
    "max_new_tokens": "max_completion_tokens",
    "max_completion_length": "max_completion_tokens",
    "max_prompt_length": "max_prompt_tokens",
    "steps": "max_steps",
    "num_steps": "max_steps",
    "output_dir": "dir",
    "model_name_or_path": "path",
}
"""Names that other trainers have for options of ours."""


def suggest(name: str, names: Iterable[str], cutoff: float = NEAR) -> str:
    """The most similar of the names, without regard to case; empty when none is near."""
    by_lower = {candidate.lower(): candidate for candidate in names}
    found = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=cutoff)
    return by_lower[found[0]] if found else ""
