"""The shares and sizes of the corpus. Changing a number changes the frozen files."""

SEED = 0
SPLITS = {"test": 600, "dev": 200, "test_unseen": 200, "train": 3000, "practice": 1488}
"""Rows of each split, in the order of drawing."""
UNSEEN_FAMILIES = (
    "smaller",
    "invert",
    "difference",
    "alternating_recurrence",
    "square_root",
    "predicate_value",
    "array_min",
    "seq_reverse",
    "seq_every",
    "copy_into",
)
"""Families that only `test_unseen` has. Each has a neighbour among the others."""
WINDED_SHARE = 0.6
"""Share of the methods with a longer form that are written in it."""
ELABORATE_SHARE = 0.6
"""Share of the methods with surplus annotations that carry some."""
SPARE_SHARE = 0.8
"""Share of an elaborate method's surplus annotations that it carries."""
PLAIN_NAME_SHARE = 0.25
"""Share of methods whose name reveals nothing."""
JOINED_SHARE = 0.2
"""Share of methods whose clauses of one kind are joined by `&&`."""
SIDES = {"test": 0.2, "dev": 0.08, "train": 0.72}
"""The specifications, apart from names and numbers of variables, that a split may draw from."""
LEFTOVER_SIDES = {"practice": ("test", "dev")}
"""A split that draws from what the others left: specifications that no other split has a row of."""
MUTANT_KINDS = ("missing", "wrong_annotation", "wrong_code")
"""Changes to a proved body to get a refused body: an annotation left out, an annotation changed, code changed."""
MUTANTS = {"test": 0, "dev": 1, "test_unseen": 0, "train": 0, "practice": 0}
"""Most refused bodies of a row, by split, each of another kind."""
MUTANT_ATTEMPTS = 3
"""How often another change is tried where the prover accepted a change."""
ROWS_OF_ONE_KEY = {"test": 2, "dev": 2, "test_unseen": 2, "train": 12, "practice": 12}
"""How many rows of a split may have specifications that differ in names alone."""
