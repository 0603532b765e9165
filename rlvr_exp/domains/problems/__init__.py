"""Coding problems with a reference solution, worked out in stages of reasoning."""
