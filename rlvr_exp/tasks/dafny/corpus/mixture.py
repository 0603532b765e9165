"""The shares that make the corpus what it is, and its sizes. Changing one changes the frozen files."""

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
"""Of the methods that have a longer way: how many are written so."""
ELABORATE_SHARE = 0.6
"""Of the methods that have annotations to spare: how many carry some."""
SPARE_SHARE = 0.8
"""Of an elaborate method's annotations to spare: how many it carries."""
PLAIN_NAME_SHARE = 0.25
"""Methods whose name says nothing."""
JOINED_SHARE = 0.2
"""Methods whose clauses of one kind are joined by `&&`."""
SIDES = {"test": 0.2, "dev": 0.08, "train": 0.72}
"""Which specifications, names and numbers of variables apart, a split may draw from."""
LEFTOVER_SIDES = {"practice": ("test", "dev")}
"""A split that draws what others left of their sides: specifications that no other split has a row of."""
MUTANT_KINDS = ("missing", "wrong_annotation", "wrong_code")
"""What is done to a proved body to get one that is refused: an annotation left out, one changed, code changed."""
MUTANTS = {"test": 0, "dev": 1, "test_unseen": 0, "train": 0, "practice": 0}
"""Refused bodies that a row of a split gets, at most, each of another kind."""
MUTANT_ATTEMPTS = 3
"""How often another change is tried where the prover accepted one."""
ROWS_OF_ONE_KEY = {"test": 2, "dev": 2, "test_unseen": 2, "train": 12, "practice": 12}
"""How many rows of a split may differ in nothing that is asked but names."""
