"""A pytest suite and a solution in two processes: the suite's, which decides, and the solution's, behind a bridge.

`suite` runs in the suite's process and `solution` in the other. Between them: `values` (plain data),
`objects` (everything else: handles, and the classes that stand for another process's), `peer` (messages and requests),
`shared` (containers that both hold), `ambient` (output, environment, random state, patches) and `coroutines`. `Bridge` in
`suite` is the suite's end of it. `rules` decides what the suite's process accepts and serves. Standard
library and pytest only.
"""
