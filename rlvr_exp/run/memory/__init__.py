"""What a run holds in the memory of each device, phase by phase, from the model's shape alone.

`workload` says what decides it, `counts` the bytes of what stays, `phases` what each phase adds, `table` prints it and
`advice` looks for the nearest settings that fit. None of them imports torch; `measure` does, and lays measured peaks
beside the estimate.
"""
