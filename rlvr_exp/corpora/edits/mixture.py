"""The shares and sizes of the corpus. Changing a number changes the frozen files."""

SEED = 0
SPLITS = {"test": 600, "test_unseen": 600, "dev": 400, "train": 12000, "practice": 4000}
"""Rows of each split, in the order of drawing."""
UNSEEN_FAMILIES = (
    "rename_method",
    "unequal_none",
    "equals_false",
    "sum_without_list",
    "format_to_fstring",
    "ends_with",
    "return_type",
    "drop_else",
    "use_items",
    "private_attribute",
    "name_argument",
    "import_name",
    "change_index",
    "limit_result",
)
"""Families that only `test_unseen` has. Each has a neighbour among those of `train`."""
PRACTISED_FAMILIES = (
    "rename_parameter",
    "rename_class",
    "negated_is",
    "filled_length",
    "augmented",
    "either_value",
    "set_display",
    "larger_of_two",
    "reversed_sort",
    "two_in_fstring",
    "found_to_in",
    "lower_compare",
    "guard_raise",
    "add_decorator",
    "lambda_to_def",
    "filtered_comprehension",
    "loop_to_any",
    "ternary_to_if",
    "raise_from",
    "open_with",
    "print_to_log",
    "make_static",
    "add_base",
    "remove_argument",
    "wrap_call",
    "path_join",
    "change_operator",
    "absolute_result",
    "reverse_order",
)
"""Families that `train` lacks, so that imitation of it never sees them. Half of the single edits of `practice`, `dev` and
`test` are theirs: what is left to learn."""
NEIGHBOURS = (0, 1, 1, 2)
"""Numbers of further functions in a program, equally likely."""
BORROWED_SHARE = 0.5
"""Share of the further functions that use names of the part that changes."""
MOST_CHARACTERS = 360
"""Of a program before its edit and after it."""
MOST_OF_ACTION = 300
"""Characters of a gold action."""
WEIGHTS = {"replace_value": 8, "replace_condition": 8, "replace_statement": 6}
"""Rows of a family for each of another's; 1 where it is not here."""
QUOTED_SHARE = 0.5
"""Share of the edits of one line of code whose instruction quotes it."""
COMPOSED = {"two_edits": 0.12, "three_edits": 0.03}
"""Shares of rows that join several edits, of every split; they join families that the split has."""
MOST_RULES = 3
"""Of a gold action."""
