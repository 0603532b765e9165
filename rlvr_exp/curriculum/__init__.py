"""Curricula: which tasks are prompted next."""
