"""Typed schemas of every option and the check of a command line against them. Imports nothing heavy."""
