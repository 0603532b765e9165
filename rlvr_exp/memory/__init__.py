"""Estimates what a run holds in the memory of each device, phase by phase, from the model's shape alone.

`workload` lists the inputs, `counts` the bytes that stay on the device, `phases` what each phase adds, `table` prints
the estimate and `advice` searches for the nearest settings that fit. None of them imports torch; `measure` does, and
compares measured peaks with the estimate.
"""
