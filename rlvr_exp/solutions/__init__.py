"""Programs that were found for tasks, kept in one file that many runs and processes share."""
