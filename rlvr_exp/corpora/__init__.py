"""Makers of data sets and model files for +stage=prepare. No other stage imports this folder.

A maker is a function `make(config, context)` that writes its files and returns its report with its counts. Its options
are those of `config.prepare`. Bad input is an InputError; a check that fails is a GuardStop.
"""
