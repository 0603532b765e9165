"""Tasks as frozen data, and one domain per kind of task that loads tasks, words prompts and parses completions."""
