"""Editing code: the action in a completion, parsed and brought to a canonical form."""
