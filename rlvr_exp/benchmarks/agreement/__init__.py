"""Random pairs of an honest and a wrong program, judged by a verifier and by plain Python: the two have to agree.

A pair is a random program and one mutant of it, with random inputs; the expected values of both are what the program
gives under plain Python. So a mutant that means the same passes on both sides. A disagreement is a fault of the
verifier or of its documentation. The programs come from this package and do no harm: plain Python runs them without a
sandbox.
"""
