"""ARC: grid puzzles answered by a Python function."""
