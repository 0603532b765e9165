"""Dafny in two roles: a writer of bodies, and an annotator who adds what Dafny needs to prove them."""
