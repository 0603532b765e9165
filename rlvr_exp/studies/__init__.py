"""Questions over many runs: the table of a sweep, its seeds pooled."""
