"""The verifier of Dafny programs, with Dafny as its judge."""
