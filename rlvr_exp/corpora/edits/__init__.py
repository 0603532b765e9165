"""The embedded corpus of edits: families of small changes to Python programs, drawn, proved and frozen."""
