"""Training: checkpoints, selection of the best one, guards, and the log of its steps."""
