"""Benchmarks on the user's own machine: speed in interleaved pairs against common tools, memory, and known results."""
