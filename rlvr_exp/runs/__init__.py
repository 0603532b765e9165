"""Many runs: sweeps, chains and studies, which share their jobs, executors and record."""
