"""Questions whose answer is a text."""
