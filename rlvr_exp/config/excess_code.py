"""Names of the figures of `evaluation.excess_code`: shares of an edited program that no test runs; less is better."""

EXCESS_CODE = ("excess_code", "excess_code_strict")
"""As CanItEdit counts it, over all lines of the diff; and of the statements on added lines."""
