"""The harness of `python_io`: `calls` runs functions and complete programs. Standard library only."""
