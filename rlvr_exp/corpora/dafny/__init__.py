"""The embedded Dafny corpus: families of small methods, draws of rows, mutants, and the frozen splits' builder."""
