"""Dafny programs judged by Dafny itself."""
