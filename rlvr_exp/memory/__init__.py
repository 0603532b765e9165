"""Estimates the memory that a run holds on each device, phase by phase, from the model's shape.

`workload` lists the inputs and `reading` takes them from a configuration; `counts` has the bytes of each tensor, `phases` adds
them up and prints the table, `advice` searches for the nearest settings that fit, and `plan` is the text of run.dry=true. None of
them imports torch. `benchmarks/memory.py` compares measured peaks with the estimate.
"""
