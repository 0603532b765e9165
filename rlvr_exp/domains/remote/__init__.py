"""Training on an OpenEnv server: its resets are the tasks, and its rewards are the verdicts."""
