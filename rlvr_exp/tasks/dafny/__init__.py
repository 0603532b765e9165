"""Dafny in two roles: a writer of bodies, an annotator who makes Dafny prove them."""
