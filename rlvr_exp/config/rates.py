"""Learning rates that are usual for a model's size and the kind of training: what `model.path` alone takes, and what advice
on a given rate is measured by.

Sources: reinforcement learning of all weights of 1.5 to 8 billion parameters is published at about 1e-6 and imitation at
about 1e-5 (TRL's and verl's recipes), and an adapter at ten to twenty times that (Schulman et al. 2025, LoRA Without
Regret). The embedded model of a million parameters learns best at 8e-4, with an adapter at 6e-3. Between the two the rate
falls with the number of parameters.
"""

FACTOR, LOW, HIGH = 1500.0, 1e-6, 8e-4
"""Reinforcement learning of all weights: FACTOR divided by their number, between LOW and HIGH."""
IMITATION, ADAPTER, ADAPTER_HIGH = 10.0, 20.0, 6e-3
"""Factors for imitation and for an adapter, and the highest rate of an adapter."""


def usual_rate(parameters: int, imitates: bool, adapter: bool) -> float:
    """A usual highest rate of optimizers of Adam's kind, to two digits.

    Args:
        parameters: of the model below any adapter; 0: unknown, taken for a large model.
    """
    scale = IMITATION if imitates else 1.0
    rate = min(HIGH, scale * max(LOW, FACTOR / parameters if parameters else LOW))
    return float(f"{min(ADAPTER_HIGH, ADAPTER * rate) if adapter else rate:.1e}")


def rate_in_words(parameters: int, imitates: bool, adapter: bool) -> str:
    """What the rate follows from."""
    what = "an adapter" if adapter else "all weights"
    how = "imitation" if imitates else "reinforcement learning"
    return f"usual for {how} that trains {what} of {size_in_words(parameters)}"


def size_in_words(parameters: int) -> str:
    if not parameters:
        return "a model of unknown size"
    count = f"{parameters / 1e9:.1f} billion" if parameters >= 1e9 else f"{parameters / 1e6:.1f} million"
    return f"{count} parameters"
