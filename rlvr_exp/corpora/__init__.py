"""Makers of the embedded corpora and of data sets. Nothing that a run executes imports this room."""
