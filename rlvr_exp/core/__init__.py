"""Errors with exit codes, atomic files, hashes, counter-based seeds and statistics: the base of all other folders."""
