"""The embedded Dafny corpus: families of small methods, how rows are drawn from them, mutants, and the frozen splits' builder."""
