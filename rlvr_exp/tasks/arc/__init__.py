"""ARC grid puzzles: from files to tasks with prompts, and from completions to candidate programs."""
