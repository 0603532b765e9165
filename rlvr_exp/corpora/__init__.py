"""Makers of the embedded corpora and of data sets, run by +stage=prepare. Nothing that a run executes imports this room.

A maker is a function `make(config, context)` that writes its files and returns its report with its counts. Its options
are those of `config.prepare`. Bad input is an InputError; a check that fails is a GuardStop.
"""
