"""Verifiers, one file each: from a problem and a candidate to a verdict."""
