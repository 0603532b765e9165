"""Editing code: the action that an answer gives, read and brought to one canonical form."""
