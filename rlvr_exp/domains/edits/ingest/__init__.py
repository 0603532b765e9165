"""Raw sets of code edits turned into normalized rows with splits, for `+stage=prepare prepare=edits`."""
