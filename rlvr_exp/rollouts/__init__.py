"""How answers are sampled and judged: the sampling loop, and groups of episodes ready for an algorithm."""
