"""Runs that follow one another: each an ordinary run, in a directory of its own."""
