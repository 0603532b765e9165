"""Kinds of problems, one file each: its data, its row in a file, its prompt, how an answer is parsed, its syntax check."""
