"""A pytest suite and a solution in two processes: the suite's process decides, and the solution's is behind a bridge.

`suite` has the main functions of both; its `Bridge` is the end of the bridge in the suite's process.
Between the two: `values` (plain data, and containers that both hold), `objects` (everything else: handles, and the
classes that stand for another process's, in `mirrors`), `peer` (messages, requests, coroutines) and `ambient` (output,
environment, random state, patches). `rules` decides which answers the suite's process accepts, and which requests it
serves; `moments` has what the reference did in its run. `texts` guards the evaluation of texts, `doctests` runs those of
the solution, and `session` runs pytest. Standard library and pytest only.
"""
