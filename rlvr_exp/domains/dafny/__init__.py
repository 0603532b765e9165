"""Dafny: bodies to write and to annotate, with Dafny as the judge."""
