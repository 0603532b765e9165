"""Episodes: the completions sampled for a task, and their verdicts."""
