"""What is sampled for a task: completions and their verdicts."""
