"""The names of the levels of isolation; isolate.py defines them."""

LEVELS = ("strict", "namespaces", "user", "process")
"""All levels, strongest first."""
AUTO = LEVELS[1:]
"""The levels tried where none is named: strict costs time for every candidate, and is used on request."""
MOUNTING = LEVELS[:2]
"""The levels with namespaces: with their own root and process table."""
OPEN_AT = {
    "strict": "nothing",
    "namespaces": "candidates of one worker share its namespaces, one after another",
    "user": (
        "candidates share the machine's process table and network names, may learn which files exist, and may fill the "
        "disk of the temporary folder"
    ),
    "process": (
        "candidates have the run's user id and share the machine's process table, may learn which files exist, and may "
        "fill the disk of the temporary folder"
    ),
}
"""What a level does not isolate, in words."""
