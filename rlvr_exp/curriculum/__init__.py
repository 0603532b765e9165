"""Curricula: the choice and the order of tasks to prompt."""
