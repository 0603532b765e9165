"""What the kernel isolates and limits, level by level. Standard library only."""
