"""Nodes of the configuration that are read together, by stages and by what a stage's own group chooses."""

JUDGES = ("verifier", "sandbox", "cache")
"""Candidates are verified."""
ANSWERS = ("model", "engine", "data", *JUDGES, "evaluation")
"""A policy's completions are sampled and verified."""
UPDATES = ("algorithm", "optimizer", "scheduler", "tracking")
"""Weights are trained."""
LEARNS = (*ANSWERS, *UPDATES, "reward", "curriculum")
"""Weights are trained on rewards."""
