"""Errors with exit codes, atomic files, content hashes and counter-based seeds: what every room stands on."""
