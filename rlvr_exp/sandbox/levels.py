"""The names of the levels of isolation; isolate.py says what each holds."""

LEVELS = ("strict", "namespaces", "user", "process")
"""Strongest first."""
AUTO = LEVELS[1:]
"""The levels tried where none is named: strict costs time for every candidate, and is taken where it is asked for."""
MOUNTING = LEVELS[:2]
"""Those with namespaces: a root of their own, and a process table."""
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
"""What is not isolated there, for people."""
