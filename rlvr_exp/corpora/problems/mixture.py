"""The shares and sizes of the corpus. Changing a number changes the frozen files."""

SEED = 0
SPLITS = {"test": 600, "test_unseen": 600, "dev": 400, "train": 12000, "practice": 4000}
"""Rows of each split."""
UNSEEN_FAMILIES = (
    "sum_if",
    "last_if",
    "drop_while",
    "places_if",
    "smallest_changed",
    "running_sums",
    "clamped",
    "rotated",
    "window_best",
    "sorted_by",
    "in_both",
    "digits_changed",
    "changed_below",
    "halved_or_grown",
    "count_letters",
    "before_letter",
    "padded",
    "turned_words",
    "word_lengths",
)
"""Families that only `test_unseen` has. Each has a neighbour among those of `train`."""
PRACTISED_FAMILIES = (
    "drop_if",
    "product_if",
    "largest_if",
    "take_while",
    "replace_if",
    "counted_distinct",
    "changed_largest",
    "spread",
    "weighted_sum",
    "every_step",
    "without_repeats",
    "moved_to_end",
    "pairwise",
    "dot_product",
    "is_ordered",
    "digit_sum",
    "extreme_digit",
    "divisors",
    "countdown",
    "in_range",
    "first_letter",
    "mark_letters",
    "split_letters",
    "cut_text",
    "long_words",
)
"""Families that `train` lacks, so that imitation of it never sees them. Half of the problems of `practice` and `test` are theirs: what
is left to learn. `dev`, by whose loss imitation is stopped, has those of `train`, in other programs."""
SHARES = {"test": 0.15, "dev": 0.1, "practice": 0.25}
"""Of a family's different programs, at least one of each; `train` has the others, or `practice` where the family is not in
`train`."""
FINISHED_SHARE = 0.5
"""Share of the problems with a last step of another kind."""
DRAWS = 600
"""Of a family, to know its different programs."""
SHOWN, HIDDEN, GOOD = 2, 8, 3
"""Calls in the prompt, calls that decide, and calls that a good tester writes."""
POOL = 40
"""Calls that they are chosen from."""
MUTANTS, WRONG = 12, 6
"""Wrong programs that calls are chosen to catch, and those kept to measure tests with."""
