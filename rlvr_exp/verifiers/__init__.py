"""What is true: one file per verifier, from a problem and a candidate to a verdict."""
