"""The page of +stage=view and the overview of +stage=index: facts of runs, an index of their samples, and a local server."""
