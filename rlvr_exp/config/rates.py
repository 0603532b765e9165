"""Learning rates that are usual for a model's size and the kind of training: what `model.path` alone takes, and what advice
on a given rate is measured by.

Sources: reinforcement learning of all weights of 1.5 to 8 billion parameters is published at about 1e-6 and imitation at
about 1e-5 (TRL's and verl's recipes), and an adapter at ten to twenty times that (Schulman et al. 2025, LoRA Without
Regret). The embedded model of a million parameters is imitated and learns at 8e-4, with an adapter at 6e-3. Between the two
the rate falls with the number of parameters. SmolLM2 (135 million), imitating MBPP, had its lowest loss on dev after 12 steps of
8 answers with an adapter at 1e-3: 0.886, and 0.904 at 2.2e-3, 0.913 at 5e-4, 0.903 with all weights at 1.1e-4. A small model that solves few tasks bears less in reinforcement learning: one of
two million parameters at 1% success lost all of it in 40 steps at 6.9e-4 and none at 1.5e-4.
"""

FACTOR, LOW, HIGH = 1500.0, 1e-6, 1e-4
"""Reinforcement learning of all weights: FACTOR divided by their number, between LOW and HIGH."""
IMITATION, IMITATION_HIGH = 10.0, 8e-4
"""Imitation: factor and highest rate."""
ADAPTER = {True: 10.0, False: 20.0}
"""Factor for an adapter, by whether it imitates."""
ADAPTER_HIGH = 6e-3


def usual_rate(parameters: int, imitates: bool, adapter: bool) -> float:
    """A usual highest rate of optimizers of Adam's kind, to two digits.

    Args:
        parameters: of the model below any adapter; 0: unknown, taken for a large model.
    """
    scale, high = (IMITATION, IMITATION_HIGH) if imitates else (1.0, HIGH)
    rate = min(high, scale * max(LOW, FACTOR / parameters if parameters else LOW))
    return float(f"{min(ADAPTER_HIGH, ADAPTER[imitates] * rate) if adapter else rate:.1e}")


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
