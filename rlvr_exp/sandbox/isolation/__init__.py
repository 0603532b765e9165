"""Isolation and limits by the kernel, level by level. Standard library only."""
