"""Every share, count and size of the corpus in one place. Changing a number here changes the corpus."""

SEED = 0
PAIRS = 4
"""Train pairs and the single test pair."""

SPLITS = {"test": 500, "dev": 400, "test_unseen": 200, "train": 12000}
"""Tasks a split, in the order of generation: `train` comes last and avoids the grids of the others."""

TWO_STEP_SHARE = {"test": 0.15, "dev": 0.15, "test_unseen": 0.3, "train": 0.15}
COMPOSITIONS, UNSEEN_COMPOSITIONS = 80, 20
"""Pairs of families composed, in the seen splits and in `test_unseen` alone."""

UNSEEN_FAMILIES = (
    "anti_transpose",
    "mirror_left",
    "crop_bottom",
    "stripe_cols",
    "fold_down_or",
    "spread_last_col",
    "pad_bottom",
    "shift_down",
    "sort_cols",
    "replace_rarest",
    "symmetric_or_ud",
    "odd_cols",
)
"""Families that occur in `test_unseen` alone, singly; its compositions are of seen families, newly paired."""

STYLES_ONE_SHAPE = {"literal": 0.65, "indexed": 0.10, "short": 0.25}
STYLES_MANY_SHAPES = {"indexed": 0.60, "short": 0.40}
"""How demonstrations are written, among the styles a family has; hard-coded sizes need inputs of one shape."""

ONE_SHAPE_SHARE = 0.65
SIDES = {2: 1, 3: 8, 4: 5, 5: 1}
"""Weights of a grid's height and of its width."""
OUTPUT_AREA = (4, 48)
MAX_CHARACTERS = {1: 210, 2: 280}
"""Longest program, by number of steps."""
