"""Rewards: named terms composed with weights, and their normalisation across tasks."""
