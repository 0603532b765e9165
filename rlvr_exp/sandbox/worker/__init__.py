"""The worker: a fresh interpreter whose zygote forks a process per candidate. Standard library only."""
