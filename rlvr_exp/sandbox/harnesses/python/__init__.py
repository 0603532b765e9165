"""The harness of `python_io`: `calls` runs functions, `programs` runs complete programs. Standard library only."""
