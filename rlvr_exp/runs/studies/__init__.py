"""Studies: one file for each question, with its jobs and its answer."""
