"""The environments, one per file. `environment=NAME` selects the file NAME."""
