"""Rounds of self-play: a policy makes its own training data, which are sampled, verified, refined, relabelled and
chosen."""
