"""Rounds in which a policy makes its own training data: sampled, verified, refined, relabelled, chosen."""
